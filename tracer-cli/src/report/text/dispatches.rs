//! Runs of equal dispatches.

use std::io::{self, Write};

use tracer_core::{foreign::Terminal, words::Named};

use super::super::{
    layout::{Layout, Table, name, number, text},
    runs::Runs,
};

/// Writes the runs of each queue, in the order of their indexes.
pub fn table(out: &mut impl Write, runs: &Runs, layout: Layout) -> io::Result<()> {
    let columns = [
        number("QUEUE"),
        text("INDEX"),
        number("COUNT"),
        text("GRID").spare(2),
        text("WORKGROUP").spare(3),
        text("PATH"),
        text("EVIDENCE").spare(1),
        name("KERNEL"),
    ];
    let mut table = Table::new(&columns);
    let all = runs
        .queues
        .iter()
        .flat_map(|(queue, runs)| runs.iter().map(move |run| (queue, run)));
    for (queue, run) in all {
        let kind = &run.kind;
        table.row(vec![
            queue.to_string(),
            run.indexes(),
            run.count.to_string(),
            kind.grid(),
            kind.workgroup(),
            kind.path.name().to_owned(),
            kind.evidence.name().to_owned(),
            Terminal(&kind.kernel()).to_string(),
        ]);
    }
    table.write(out, layout)
}
