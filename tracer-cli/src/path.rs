//! `tracer path`: prints the whole path of one packet, with the evidence for each step.

mod text;

use std::process::ExitCode;

use anyhow::{Context, bail};
use tracer_core::{
    packet_path::{Packet, PacketPath},
    tables::{Fact, Table},
};
use tracer_store::Trace;

use crate::{
    cli::{Path, PathFormat, Place},
    report::layout::Layout,
    say,
};

/// Finds the packet and prints its path.
pub fn run(options: &Path) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let (index, packet) = match (options.place, &options.kernel) {
        (Some(place), _) => at(&trace, place)?,
        (None, Some(name)) => of_kernel(&trace, name, options.nth)?,
        (None, None) => bail!("no packet is given: write QUEUE:INDEX, or --kernel NAME"),
    };
    let mut path = PacketPath::new(index, packet);
    let mut facts = trace.facts(&PacketPath::TABLES)?.skip_damaged();
    for fact in &mut facts {
        path.add(&fact?);
    }
    for damage in facts.damaged() {
        log::warn!("{damage}");
    }
    let path = path.finish();
    let written = match options.format {
        PathFormat::Json => say::json(&path)?,
        PathFormat::Text => text::path(&path, trace.manifest(), Layout::of(&std::io::stdout())),
    };
    say::print(&written).map(|()| ExitCode::SUCCESS)
}

/// Returns the packet at a place.
fn at(trace: &Trace, place: Place) -> anyhow::Result<(u64, Packet)> {
    let Place { queue, index } = place;
    let mut of_queue = None;
    for fact in trace.facts(&Packet::TABLES)?.skip_damaged() {
        let fact = fact?;
        if let Some(packet) = Packet::of(&fact, queue, index) {
            return Ok((index, packet));
        }
        if let Some((first, last)) = indexes(&fact, queue) {
            let (lowest, highest) = of_queue.unwrap_or((first, last));
            of_queue = Some((first.min(lowest), last.max(highest)));
        }
    }
    match of_queue {
        Some((first, last)) => {
            bail!("queue {queue} has no packet {index} in this trace: its indexes are {first} to {last}")
        }
        None => bail!("the trace has no packet of queue {queue}; `tracer report --by queue` lists the queues"),
    }
}

/// Returns the indexes of a row, if it is of this queue.
fn indexes(fact: &Fact, queue: u32) -> Option<(u64, u64)> {
    let (of, first, last) = match fact {
        Fact::Dispatch(row) => (row.queue, row.index, row.index),
        Fact::DispatchRun(row) => (row.queue, row.first_index, row.last_index),
        Fact::Packet(row) => (
            row.queue,
            row.index,
            row.index.saturating_add(row.count.saturating_sub(1)),
        ),
        _ => return None,
    };
    (of == queue).then_some((first, last))
}

/// Returns the nth dispatch of a kernel.
fn of_kernel(trace: &Trace, name: &str, nth: u64) -> anyhow::Result<(u64, Packet)> {
    let mut found = 0_u64;
    for fact in trace.facts(&[Table::Dispatches])?.skip_damaged() {
        let Fact::Dispatch(dispatch) = fact? else { continue };
        if dispatch.kernel.as_deref().is_some_and(|kernel| kernel.contains(name)) {
            found += 1;
            if found == nth {
                return Ok((dispatch.index, Packet::Dispatch(Box::new(dispatch))));
            }
        }
    }
    Err(match found {
        0 => anyhow::anyhow!("no kernel has {name} in its name; `tracer report --by kernel --all` lists the kernels"),
        _ => anyhow::anyhow!("the trace has {found} dispatches of kernels with {name} in their names, not {nth}"),
    })
    .context("finding the dispatch")
}
