//! Steps of launches, phases of processes, and calls inside calls.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use tracer_core::{
    analysis::{Answers, Nested, Phase, Step},
    foreign::Terminal,
    summary::Report,
    units::duration,
};

use super::super::layout::{Layout, Table, name, number};
use super::dash;
use crate::units::known;

/// Writes how long each step of a launch took; and without the hits of probes in it, each of which costs at least `hit_ns`.
pub fn steps(out: &mut impl Write, answers: &Answers, hit_ns: Option<u64>, layout: Layout) -> io::Result<()> {
    let columns = [
        name("STEPS OF A LAUNCH"),
        number("COUNT"),
        number("MIN").spare(2),
        number("P50"),
        number("P99"),
        number("MAX").spare(1),
        number("HITS").spare(3),
        number("P50 LESS"),
    ];
    let mut table = Table::new(&columns);
    for row in &answers.steps {
        let ns = row.ns;
        let times = [ns.min, ns.p50, ns.p99, ns.max].map(duration);
        let cells = [title(row.step).to_owned(), row.count.to_string()];
        let less = hit_ns.filter(|_| row.hits > 0).map(|ns| ns.saturating_mul(row.hits));
        let less = less.map_or_else(dash, |hits| duration(ns.p50.saturating_sub(hits)));
        let hits = match row.hits {
            0 => dash(),
            hits => hits.to_string(),
        };
        table.row(cells.into_iter().chain(times).chain([hits, less]).collect());
    }
    let is_empty = table.is_empty();
    table.write(out, layout)?;
    if !is_empty {
        let text = "Steps up to the doorbell, calls and ioctls include the cost of probes. The GPU took a packet between the \
                    last moment at which it was not taken, and the first one at which it was. Ioctls are those that do not wait.";
        layout.note(out, text)?;
        layout.note(out, &cost(hit_ns))?;
    }
    Ok(())
}

/// Says what the probes cost.
fn cost(hit_ns: Option<u64>) -> String {
    let Some(ns) = hit_ns else {
        return "The trace does not say what a hit of a probe costs.".to_owned();
    };
    let ns = duration(ns);
    format!(
        "A hit of a probe cost at least {ns} here, measured with a program that only counts. P50 LESS is P50 without \
         the 1 to 3 hits that lie in the step at least (`--wide`)."
    )
}

const fn title(step: Step) -> &'static str {
    match step {
        Step::CallToReserve => "call to reserve",
        Step::ReserveToDoorbell => "reserve to doorbell",
        Step::CallToDoorbell => "call to doorbell",
        Step::Call => "whole call that launched",
        Step::DoorbellToNotTaken => "doorbell to taken, at least",
        Step::DoorbellToTaken => "doorbell to taken, at most",
        Step::DoorbellToStart => "doorbell to kernel start",
        Step::Run => "kernel start to end",
        Step::KfdIoctl => "a KFD ioctl, to compare",
    }
}

/// Writes what processes did before, between and after their dispatches.
pub fn phases(out: &mut impl Write, answers: &Answers, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("PHASES"),
        number("TIME"),
        number("DISPATCHES"),
        number("IOCTLS"),
        number("IOCTL TIME"),
        number("API CALLS").spare(1),
        number("API TIME").spare(2),
        number("COPIES").spare(3),
    ];
    let mut table = Table::new(&columns);
    // A source that was not watched counted nothing.
    let (ioctls, calls) = (report.ioctls.total, report.api_calls.total);
    for row in &answers.phases {
        let counts = row.counts;
        table.row(vec![
            phase(row.phase).to_owned(),
            duration(row.ns),
            counts.dispatches.to_string(),
            known(ioctls.map(|_| counts.ioctls)),
            known(ioctls.map(|_| duration(counts.ioctl_ns))),
            known(calls.map(|_| counts.api_calls)),
            known(calls.map(|_| duration(counts.api_ns))),
            counts.copies.to_string(),
        ]);
    }
    let is_empty = table.is_empty();
    table.write(out, layout)?;
    if !is_empty {
        let text = "set-up is until a process's first dispatch, steady until its last one. TIME is summed over processes, the \
                    times of ioctls and calls over threads.";
        layout.note(out, text)?;
    }
    Ok(())
}

/// Writes the ioctls of each phase, by name.
pub fn phases_of_ioctls(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let phases = [Phase::SetUp, Phase::Steady, Phase::End];
    let columns = [
        name("IOCTLS BY PHASE"),
        number("SET-UP"),
        number("STEADY"),
        number("END"),
    ];
    let mut names: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for row in &answers.phases {
        let at = phases.iter().position(|&phase| phase == row.phase).unwrap_or(0);
        for (name, count) in &row.by_ioctl {
            names.entry(name).or_default()[at] += count;
        }
    }
    let mut names: Vec<(&str, [u64; 3])> = names.into_iter().collect();
    // Those of the steady phase are on the launch path.
    names.sort_by_key(|&(name, [set_up, steady, end])| (Reverse(steady), Reverse(set_up + end), name));
    let mut table = Table::new(&columns);
    for (name, counts) in names {
        let counts = counts.map(|n| n.to_string());
        table.row([Terminal(name).to_string()].into_iter().chain(counts).collect());
    }
    table.write(out, layout)
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::SetUp => "set-up",
        Phase::Steady => "steady",
        Phase::End => "end",
    }
}

/// Writes calls with those inside them: the rows with the most time, each below the row that it is inside.
pub fn nesting(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let columns = [
        name("CALLS, AND CALLS INSIDE THEM"),
        number("CALLS"),
        number("TOTAL"),
        number("OWN").spare(1),
        number("MAX").spare(2),
    ];
    let rows = &answers.nesting;
    let shown = most(rows, layout.rows);
    let mut table = Table::new(&columns);
    for row in shown.iter().filter_map(|&at| rows.get(at)) {
        table.row(vec![
            "  ".repeat(row.depth) + &called(row),
            row.calls.to_string(),
            duration(row.total_ns),
            duration(row.own_ns),
            duration(row.max_ns),
        ]);
    }
    table.write(out, layout)?;
    match rows.len().saturating_sub(shown.len()) {
        0 => Ok(()),
        more => layout.more(out, more),
    }
}

fn called(row: &Nested) -> String {
    let name = Terminal(&row.name).to_string();
    match &*row.layer {
        "ioctl" => format!("ioctl {name}"),
        _ => name,
    }
}

/// Returns the rows with the most time, in their order. What is around a row took at least as long, unless it did not return.
fn most(rows: &[Nested], limit: usize) -> BTreeSet<usize> {
    let mut by_time: Vec<usize> = (0..rows.len()).collect();
    by_time.sort_by_key(|&at| (Reverse(rows[at].total_ns), at));
    let mut shown = BTreeSet::new();
    for at in by_time {
        let around = around(rows, at);
        let new = around.iter().filter(|at| !shown.contains(*at)).count();
        if shown.len() + new > limit {
            break;
        }
        shown.extend(around);
    }
    shown
}

/// Returns a row and those around it.
fn around(rows: &[Nested], at: usize) -> Vec<usize> {
    let mut found = vec![at];
    let mut depth = rows[at].depth;
    for before in (0..at).rev() {
        if depth == 0 {
            break;
        }
        if rows[before].depth < depth {
            depth = rows[before].depth;
            found.push(before);
        }
    }
    found
}
