//! The conversion of a fact's values to cells of columns, and back.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as Unknown;
use tracer_core::code_object::{CodeObjectOrigin, KernelsUnread};
use tracer_core::event::Occasion;
use tracer_core::fact::{CopyOp, Direction, Durations, Evidence, PacketKind, Path, QueueOrigin, Unread};

use super::{Column, Kind};
use crate::columns::Buffer;

/// A cell has a value that its column does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Position of the column in its table.
    pub column: usize,
}

/// Cells of one row that is being written, from left to right.
pub(super) type Put<'a> = slice::IterMut<'a, Buffer>;

/// Cells of one row that is being read, from left to right.
pub(super) struct Get<'a> {
    columns: &'a [Buffer],
    row: usize,
    next: usize,
}

impl<'a> Get<'a> {
    pub(super) const fn new(columns: &'a [Buffer], row: usize) -> Self {
        Self { columns, row, next: 0 }
    }

    /// Reads the next field.
    pub(super) fn field<F: Field>(&mut self) -> Result<F, Misfit> {
        F::get(self)
    }

    /// Reads the next cell with `read`.
    fn cell<T>(&mut self, read: impl FnOnce(&Buffer, usize) -> Option<T>) -> Result<T, Misfit> {
        let column = self.next;
        self.next += 1;
        self.columns
            .get(column)
            .and_then(|buffer| read(buffer, self.row))
            .ok_or(Misfit { column })
    }
}

/// A field of a fact: one column, or several (an array).
pub(super) trait Field: Sized {
    const KIND: Kind;
    const NULLABLE: bool = false;
    fn put(&self, to: &mut Put<'_>);
    fn get(from: &mut Get<'_>) -> Result<Self, Misfit>;
}

/// A value that is never missing, in one column.
pub(super) trait Cell: Sized {
    const KIND: Kind;
    fn put(&self, to: &mut Buffer);
    /// Reads a cell; `None` if this type does not allow its value.
    fn get(from: &Buffer, row: usize) -> Option<Self>;
}

impl<C: Cell> Field for C {
    const KIND: Kind = C::KIND;

    fn put(&self, to: &mut Put<'_>) {
        if let Some(buffer) = to.next() {
            Cell::put(self, buffer);
        }
    }

    fn get(from: &mut Get<'_>) -> Result<Self, Misfit> {
        from.cell(<C as Cell>::get)
    }
}

impl<C: Cell> Field for Option<C> {
    const KIND: Kind = C::KIND;
    const NULLABLE: bool = true;

    fn put(&self, to: &mut Put<'_>) {
        if let Some(buffer) = to.next() {
            buffer.push_validity(self.is_some());
            match self {
                Some(value) => value.put(buffer),
                None => buffer.push_missing(),
            }
        }
    }

    fn get(from: &mut Get<'_>) -> Result<Self, Misfit> {
        from.cell(|buffer, row| {
            if buffer.is_missing(row) {
                Some(None)
            } else {
                C::get(buffer, row).map(Some)
            }
        })
    }
}

impl<C: Cell + Default + Copy, const N: usize> Field for [C; N] {
    const KIND: Kind = C::KIND;

    fn put(&self, to: &mut Put<'_>) {
        for value in self {
            Field::put(value, to);
        }
    }

    fn get(from: &mut Get<'_>) -> Result<Self, Misfit> {
        let mut values = [C::default(); N];
        for value in &mut values {
            *value = from.field()?;
        }
        Ok(values)
    }
}

/// Describes the columns of the field that `of` names; `of` is never called.
pub(super) fn describe<R, F: Field>(
    columns: &mut Vec<Column>,
    _of: fn(&R) -> &F,
    names: &[&'static str],
    unit: &'static str,
    meaning: &'static str,
) {
    columns.extend(names.iter().map(|name| Column {
        name,
        kind: F::KIND,
        nullable: F::NULLABLE,
        unit,
        meaning,
    }));
}

/// Numbers, by their bits in 64.
macro_rules! number {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            fn put(&self, to: &mut Buffer) {
                to.push_number($to(*self));
            }

            fn get(from: &Buffer, row: usize) -> Option<Self> {
                from.number(row).and_then($from)
            }
        }
    )*};
}

number! {
    u16, U32, u64::from, |bits| u16::try_from(bits).ok();
    u32, U32, u64::from, |bits| u32::try_from(bits).ok();
    u64, U64, u64::from, Some;
    i32, I32, |value| i64::from(value).cast_unsigned(), |bits: u64| i32::try_from(bits.cast_signed()).ok();
    i64, I64, i64::cast_unsigned, |bits: u64| Some(bits.cast_signed());
    bool, Bool, u64::from, |bits| Some(bits != 0);
}

/// Strings and bytes.
macro_rules! text {
    ($($type:ty, $kind:ident, $it:ident => $bytes:expr, $from:expr;)*) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            fn put(&self, to: &mut Buffer) {
                let $it = self;
                to.push_bytes($bytes);
            }

            fn get(from: &Buffer, row: usize) -> Option<Self> {
                from.bytes(row).and_then($from)
            }
        }
    )*};
}

fn string(bytes: &[u8]) -> Option<String> {
    str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Parses a word of a closed set, by serde's names.
fn word<'a, W: Deserialize<'a>>(bytes: &'a [u8]) -> Option<W> {
    let name = str::from_utf8(bytes).ok()?;
    W::deserialize(IntoDeserializer::<Unknown>::into_deserializer(name)).ok()
}

fn durations(bytes: &[u8]) -> Option<Durations> {
    str::from_utf8(bytes).ok().and_then(Durations::parse)
}

/// Parses a device class, which facts name by static strings.
fn device(bytes: &[u8]) -> Option<&'static str> {
    ["kfd", "drm"].into_iter().find(|name| name.as_bytes() == bytes)
}

text! {
    Vec<u8>, Bytes, it => it, |bytes| Some(bytes.to_vec());
    String, Text, it => it.as_bytes(), string;
    Arc<str>, Text, it => it.as_bytes(), |bytes| string(bytes).map(Arc::from);
    Cow<'static, str>, Text, it => it.as_bytes(), |bytes| string(bytes).map(Cow::Owned);
    &'static str, Text, it => it.as_bytes(), device;
    Durations, Text, it => it.text().as_bytes(), durations;
    Path, Text, it => it.name().as_bytes(), word;
    Evidence, Text, it => it.name().as_bytes(), word;
    PacketKind, Text, it => it.name().as_bytes(), word;
    CopyOp, Text, it => it.name().as_bytes(), word;
    Direction, Text, it => it.name().as_bytes(), word;
    CodeObjectOrigin, Text, it => it.name().as_bytes(), word;
    KernelsUnread, Text, it => it.name().as_bytes(), word;
    Unread, Text, it => it.name().as_bytes(), word;
    Occasion, Text, it => it.name().as_bytes(), word;
    QueueOrigin, Text, it => origin_name(*it).as_bytes(), word;
}

/// Returns the name in data.
const fn origin_name(origin: QueueOrigin) -> &'static str {
    match origin {
        QueueOrigin::Created => "created",
        QueueOrigin::Adopted => "adopted",
    }
}
