//! The view of copies and fills.

use tracer_core::live::{CopyRow, Picture};
use tracer_core::tables::{CopiedBy, CopyOp};
use tracer_core::units::{bytes, count, rate};
use tracer_core::words::Named;

use crate::{
    cells::{UNKNOWN, known},
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The initial sort column: what moved the most bytes is at the top.
pub const FIRST: usize = 6;

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<CopyRow>] = columns! {
    "copies" 6 0 right: |c, _| count(c.count), |a, b| b.count.cmp(&a.count);
    "copies/s" 8 4 right: |c, _| rate(c.per_s), |a, b| greatest(Some(a.per_s), Some(b.per_s));
    "commands" 9 3 left: |c, _| op(c), |a, b| op(a).cmp(&op(b));
    "direction" 9 0 left: |c, _| direction(c), |a, b| direction(a).cmp(&direction(b));
    "engine" 7 5 left: |c, _| engine(c), |a, b| engine(a).cmp(&engine(b));
    "path" 8 6 left: |c, _| c.path.name().to_owned(), |a, b| a.path.cmp(&b.path);
    "bytes" 10 1 right: |c, _| sum(c), |a, b| greatest(a.bytes, b.bytes);
    "bytes/s" 10 2 right: |c, _| known(c.bytes_per_s, |n| format!("{}/s", bytes(n.round() as u64))),
        |a, b| greatest(a.bytes_per_s, b.bytes_per_s);
    "unknown size" 12 7 right: |c, _| count(c.unknown), |a, b| b.unknown.cmp(&a.unknown);
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a CopyRow> {
    rows::of(&picture.copies, COLUMNS, choice, |copy| {
        format!("{} {} {} {}", op(copy), direction(copy), engine(copy), copy.path.name())
    })
}

/// Formats the sum of the known sizes. A question mark behind it means that there are more bytes.
fn sum(copy: &CopyRow) -> String {
    let mark = if copy.unknown > 0 { "+?" } else { "" };
    known(copy.bytes, |n| format!("{}{mark}", bytes(n)))
}

fn op(copy: &CopyRow) -> String {
    known(copy.op, |op| op.name().to_owned())
}

/// Waits and padding move nothing, and have no direction.
fn direction(copy: &CopyRow) -> String {
    match (copy.direction, copy.op) {
        (Some(direction), _) => direction.name(),
        (None, Some(CopyOp::None)) => "-",
        (None, _) => UNKNOWN,
    }
    .to_owned()
}

fn engine(copy: &CopyRow) -> String {
    match (copy.by, copy.engine) {
        (Some(CopiedBy::Sdma), Some(engine)) => format!("sdma {engine}"),
        (by, _) => known(by, |by| by.name().to_owned()),
    }
}
