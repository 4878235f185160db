//! Copies and fills, and the bandwidth of synchronous copies.

use std::io::{self, Write};

use tracer_core::{
    analysis::Answers,
    foreign::Terminal,
    tables::CopyOp,
    units::{bytes, duration},
    words::Named,
};

use super::super::layout::{Layout, Table, name, number, text};
use super::dash;
use crate::units::known;

/// Writes the copies and fills by kind, and the calls that wait for them.
pub fn tables(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    kinds(out, answers, layout)?;
    sync(out, answers, layout)
}

fn kinds(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let columns = [
        text("COPIES BY"),
        text("DIRECTION"),
        text("DOES").spare(1),
        number("COUNT"),
        number("BYTES"),
        number("SMALLEST").spare(2),
        number("LARGEST").spare(2),
        number("OF UNKNOWN SIZE").spare(3),
        text("ENGINE").spare(4),
        text("PATH").spare(3),
    ];
    let mut table = Table::new(&columns);
    for row in &answers.copies {
        let all_unknown = row.unknown == row.count;
        table.row(vec![
            known(row.by.map(Named::name)),
            known(row.direction.map(Named::name)),
            match row.op {
                Some(CopyOp::None) => "nothing".to_owned(),
                op => known(op.map(Named::name)),
            },
            row.count.to_string(),
            known((!all_unknown).then(|| bytes(row.bytes))),
            row.size.map_or_else(dash, |size| bytes(size.min)),
            row.size.map_or_else(dash, |size| bytes(size.max)),
            row.unknown.to_string(),
            row.engine.map_or_else(dash, |engine| engine.to_string()),
            known(row.path.map(Named::name)),
        ]);
    }
    let by_kernels = answers
        .copies
        .iter()
        .any(|row| row.by.map(Named::name) == Some("kernel"));
    table.write(out, layout)?;
    if by_kernels {
        layout.note(out, "Copies by kernels are dispatches, too.")?;
    }
    Ok(())
}

fn sync(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let columns = [
        name("SYNCHRONOUS COPIES"),
        text("DIRECTION"),
        number("CALLS"),
        number("BYTES"),
        number("TOTAL").spare(1),
        number("PER SECOND"),
        number("P50").spare(2),
        number("MAX").spare(3),
    ];
    let mut table = Table::new(&columns);
    for row in &answers.sync_copies {
        let Some(ns) = row.ns else { continue };
        let per_second = (u128::from(row.bytes) * 1_000_000_000)
            .checked_div(u128::from(ns.total))
            .map(|rate| u64::try_from(rate).unwrap_or(u64::MAX));
        table.row(vec![
            Terminal(&row.function).to_string(),
            match row.submitted {
                true => known(row.direction.map(Named::name)),
                false => "no submission".to_owned(),
            },
            row.calls.to_string(),
            bytes(row.bytes),
            duration(ns.total),
            per_second.map_or_else(dash, bytes),
            duration(ns.p50),
            duration(ns.max),
        ]);
    }
    let is_empty = table.is_empty();
    table.write(out, layout)?;
    if !is_empty {
        layout.note(out, "The time is that of whole calls, probes included.")?;
    }
    Ok(())
}
