//! The conversion of a row's fields to cells, and back.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use strum::VariantArray;

use super::{
    Column, CopiedBy, CopyOp, Direction, Durations, Evidence, Form, Kind, PacketKind, Path, QueueOrigin, RingMemory,
    Unread,
};
use crate::code_object::{CodeObjectOrigin, KernelsUnread};
use crate::event::Occasion;
use crate::words::Named;

/// The contents of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing: null.
    Missing,
    /// A number or a truth value, by its bits; signed numbers in 64 bits.
    Number(u64),
    /// Text or bytes.
    Bytes(&'a [u8]),
}

/// Takes the cells of a row, from left to right.
pub trait Target {
    /// Takes the next cell.
    fn put(&mut self, value: Value<'_>);
}

/// Has the cells of a row, from left to right.
pub trait Source {
    /// Reads the next cell, which is of this kind, with `read`, which returns `None` if the field does not allow this value.
    ///
    /// # Errors
    ///
    /// There is no such cell, or the field does not allow its value.
    fn cell<T>(&mut self, kind: Kind, read: impl FnOnce(Value<'_>) -> Option<T>) -> Result<T, Misfit>;
}

/// A cell has a value that its field does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Position of the column in its table.
    pub column: usize,
}

/// A field of a row: one column, or several (an array).
pub(super) trait Field: Sized {
    const KIND: Kind;
    const NULLABLE: bool = false;
    fn put(&self, to: &mut impl Target);
    fn get(from: &mut impl Source) -> Result<Self, Misfit>;
}

/// A value that is never missing, in one column.
trait Cell: Sized {
    const KIND: Kind;
    fn put(&self, to: &mut impl Target);
    fn get(value: Value<'_>) -> Option<Self>;
}

impl<C: Cell> Field for C {
    const KIND: Kind = C::KIND;

    fn put(&self, to: &mut impl Target) {
        Cell::put(self, to);
    }

    fn get(from: &mut impl Source) -> Result<Self, Misfit> {
        from.cell(<C as Cell>::KIND, <C as Cell>::get)
    }
}

impl<C: Cell> Field for Option<C> {
    const KIND: Kind = C::KIND;
    const NULLABLE: bool = true;

    fn put(&self, to: &mut impl Target) {
        match self {
            Some(value) => Cell::put(value, to),
            None => to.put(Value::Missing),
        }
    }

    fn get(from: &mut impl Source) -> Result<Self, Misfit> {
        from.cell(C::KIND, |value| match value {
            Value::Missing => Some(None),
            value => C::get(value).map(Some),
        })
    }
}

impl<C: Cell + Default + Copy, const N: usize> Field for [C; N] {
    const KIND: Kind = C::KIND;

    fn put(&self, to: &mut impl Target) {
        for value in self {
            Cell::put(value, to);
        }
    }

    fn get(from: &mut impl Source) -> Result<Self, Misfit> {
        let mut values = [C::default(); N];
        for value in &mut values {
            *value = from.cell(C::KIND, C::get)?;
        }
        Ok(values)
    }
}

/// Values that are all missing, or none is.
impl<C: Cell + Default + Copy, const N: usize> Field for Option<[C; N]> {
    const KIND: Kind = C::KIND;
    const NULLABLE: bool = true;

    fn put(&self, to: &mut impl Target) {
        match self {
            Some(values) => Field::put(values, to),
            None => (0..N).for_each(|_| to.put(Value::Missing)),
        }
    }

    fn get(from: &mut impl Source) -> Result<Self, Misfit> {
        let mut values = [C::default(); N];
        let mut missing = 0;
        for value in &mut values {
            match <Option<C> as Field>::get(from)? {
                Some(present) => *value = present,
                None => missing += 1,
            }
        }
        Ok((missing == 0).then_some(values))
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

macro_rules! number {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            fn put(&self, to: &mut impl Target) {
                to.put(Value::Number($to(*self)));
            }

            fn get(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::Number(bits) => $from(bits),
                    _ => None,
                }
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

macro_rules! bytes {
    ($($type:ty, $kind:ident, $it:ident => $bytes:expr, $from:expr;)*) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            fn put(&self, to: &mut impl Target) {
                let $it = self;
                to.put(Value::Bytes($bytes));
            }

            fn get(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::Bytes(bytes) => $from(bytes),
                    _ => None,
                }
            }
        }
    )*};
}

fn string(bytes: &[u8]) -> Option<String> {
    str::from_utf8(bytes).ok().map(str::to_owned)
}

/// The number of texts that a thread keeps.
const KEPT: usize = 64;

thread_local! {
    /// Texts that this thread read last, until it ends. Names of kernels repeat from row to row: they are neither copied nor checked
    /// again.
    static RECENT: RefCell<[Option<Arc<str>>; KEPT]> = const { RefCell::new([const { None }; KEPT]) };
}

/// Returns the text that was read before, or a copy.
fn shared(bytes: &[u8]) -> Option<Arc<str>> {
    let at = |at: usize| bytes.get(at).map_or(0, |&byte| usize::from(byte));
    let place = bytes.len() ^ at(bytes.len() / 2) ^ (at(bytes.len().wrapping_sub(1)) << 2);
    RECENT.with_borrow_mut(|recent| {
        let kept = recent.get_mut(place % KEPT)?;
        match kept {
            Some(text) if text.as_bytes() == bytes => Some(Arc::clone(text)),
            _ => {
                let text: Arc<str> = str::from_utf8(bytes).ok()?.into();
                Some(Arc::clone(kept.insert(text)))
            }
        }
    })
}

/// Finds a word of a closed set.
fn word<W: Named + VariantArray + Copy>(bytes: &[u8]) -> Option<W> {
    W::VARIANTS.iter().copied().find(|word| word.name().as_bytes() == bytes)
}

fn durations(bytes: &[u8]) -> Option<Durations> {
    str::from_utf8(bytes).ok().and_then(Durations::parse)
}

/// Parses a device class, which rows name by static strings.
fn device(bytes: &[u8]) -> Option<&'static str> {
    ["kfd", "drm"].into_iter().find(|name| name.as_bytes() == bytes)
}

bytes! {
    Vec<u8>, Bytes, it => it, |bytes: &[u8]| Some(bytes.to_vec());
    String, Text, it => it.as_bytes(), string;
    Arc<str>, Text, it => it.as_bytes(), shared;
    Cow<'static, str>, Text, it => it.as_bytes(), |bytes| string(bytes).map(Cow::Owned);
    &'static str, Text, it => it.as_bytes(), device;
    Durations, Text, it => it.text().as_bytes(), durations;
    Path, Text, it => it.name().as_bytes(), word;
    Evidence, Text, it => it.name().as_bytes(), word;
    Form, Text, it => it.name().as_bytes(), word;
    PacketKind, Text, it => it.name().as_bytes(), word;
    CopiedBy, Text, it => it.name().as_bytes(), word;
    CopyOp, Text, it => it.name().as_bytes(), word;
    Direction, Text, it => it.name().as_bytes(), word;
    CodeObjectOrigin, Text, it => it.name().as_bytes(), word;
    KernelsUnread, Text, it => it.name().as_bytes(), word;
    Unread, Text, it => it.name().as_bytes(), word;
    Occasion, Text, it => it.name().as_bytes(), word;
    QueueOrigin, Text, it => it.name().as_bytes(), word;
    RingMemory, Text, it => it.name().as_bytes(), word;
}
