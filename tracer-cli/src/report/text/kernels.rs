//! Kernels.

use std::io::{self, Write};

use tracer_core::{
    analysis::{Answers, Extent, Kernel, Range},
    foreign,
    summary::Report,
    units::{bytes, duration},
    words::Named,
};

use super::super::layout::{Layout, Table, name, number, text};
use super::percent;

/// Order of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// The most dispatches first
    #[default]
    Count,
    /// The most time on the GPU first
    Gpu,
    /// The most time from call to doorbell first
    Launch,
    /// By name
    Name,
}

/// Writes the kernels with what they need and how long they took.
pub fn table(out: &mut impl Write, answers: &Answers, report: &Report, sort: Sort, layout: Layout) -> io::Result<()> {
    let columns = [
        name("KERNELS"),
        number("COUNT"),
        number("SHARE"),
        text("PATH"),
        number("GPU TIME").spare(2),
        number("GPU MEAN").spare(4),
        number("LAUNCH").spare(1),
        number("VGPR").spare(3),
        number("AGPR").spare(13),
        number("SGPR").spare(8),
        number("LDS").spare(5),
        number("SCRATCH").spare(9),
        number("ARGS").spare(10),
        text("GRID").spare(6),
        text("WORKGROUP").spare(7),
        number("WAVE").spare(12),
        text("QUEUES").spare(11),
    ];
    let mut kernels: Vec<&Kernel> = answers.kernels.iter().collect();
    match sort {
        Sort::Count => {}
        Sort::Gpu => kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.gpu_ns.map(|ns| ns.total))),
        Sort::Launch => kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.launch_ns.map(|ns| ns.total))),
        Sort::Name => kernels.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    let counts = kernels.iter().map(|kernel| kernel.count);
    let total = counts.fold(answers.other_dispatches, u64::saturating_add);
    let mut table = Table::new(&columns);
    for kernel in kernels {
        let gpu = kernel.gpu_ns;
        let registers = &kernel.registers;
        table.row(vec![
            called(kernel),
            kernel.count.to_string(),
            percent(kernel.count, total),
            paths(kernel),
            gpu.map_or_else(dash, |ns| duration(ns.total)),
            gpu.map_or_else(dash, |ns| duration(ns.total / ns.count.max(1))),
            kernel.launch_ns.map_or_else(dash, |ns| duration(ns.p50)),
            range(registers.vgprs, |n| n.to_string()),
            range(registers.agprs, |n| n.to_string()),
            range(registers.sgprs, |n| n.to_string()),
            range(kernel.lds_bytes, bytes),
            range(kernel.scratch_bytes, bytes),
            range(registers.kernarg_bytes, bytes),
            extent(kernel.grid),
            extent(kernel.workgroup),
            range(registers.wavefront, |n| n.to_string()),
            numbers(&kernel.queues),
        ]);
    }
    let is_empty = answers.kernels.is_empty();
    table.write(out, layout)?;
    if is_empty {
        return Ok(());
    }
    if answers.other_dispatches > 0 {
        let others = answers.other_dispatches;
        let text = format!("{others} more dispatches are in runs of several kernels, which have no names here.");
        layout.note(out, &text)?;
    }
    let notes = [unknown_times(answers), unknown_launches(answers, report)];
    for note in notes.into_iter().flatten() {
        layout.note(out, &note)?;
    }
    Ok(())
}

/// Returns why the GPU times of kernels are unknown; `None` if all are known.
fn unknown_times(answers: &Answers) -> Option<String> {
    let kernels = &answers.kernels;
    let sum = |of: fn(&Kernel) -> u64| kernels.iter().map(of).fold(0, u64::saturating_add);
    let (count, timed, dated) = (
        sum(|kernel| kernel.count),
        sum(|kernel| kernel.timed),
        sum(|kernel| kernel.gpu_ns.map_or(0, |ns| ns.count)),
    );
    match (timed, dated) {
        (0, _) => Some(
            "GPU TIME is unknown: no dispatch had a completion signal to itself on a queue that the runtime profiles."
                .to_owned(),
        ),
        (_, 0) => Some("GPU TIME is unknown in ns: the process read the GPU's clock too seldom.".to_owned()),
        (_, dated) if dated < count => Some(format!("GPU TIME is of the {dated} of {count} dispatches with a time.")),
        _ => None,
    }
}

/// Returns why the times from call to doorbell are unknown, or what they are.
fn unknown_launches(answers: &Answers, report: &Report) -> Option<String> {
    let known = answers.kernels.iter().any(|kernel| kernel.launch_ns.is_some());
    match (known, report.api_calls.total, report.api_calls.counted_only) {
        (true, ..) => Some("LAUNCH is the median from the API call to the doorbell, probes included.".to_owned()),
        (false, Some(_), Some(false)) => Some("LAUNCH is unknown: no doorbell was in a recorded call.".to_owned()),
        _ => Some("LAUNCH is unknown: calls were not recorded (`record --api all`).".to_owned()),
    }
}

/// Returns the kernel's name, or its address.
pub fn called(kernel: &Kernel) -> String {
    match (&kernel.name, kernel.kernel_object) {
        (Some(name), _) => foreign::line(name),
        (None, Some(object)) => format!("{object:#x}"),
        (None, None) => "unknown".to_owned(),
    }
}

fn paths(kernel: &Kernel) -> String {
    let names: Vec<&str> = kernel.by_path.keys().map(|path| path.name()).collect();
    names.join(", ")
}

fn range(range: Option<Range>, format: impl Fn(u64) -> String) -> String {
    match range {
        None => dash(),
        Some(Range { min, max }) if min == max => format(min),
        Some(Range { min, max }) => format!("{} to {}", format(min), format(max)),
    }
}

fn extent(extent: Option<Extent>) -> String {
    match extent {
        None => dash(),
        Some(Extent { min, max }) if min == max => size(min),
        Some(Extent { min, max }) => format!("{} to {}", size(min), size(max)),
    }
}

/// Formats a size without the dimensions that are 1 at its end.
fn size([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    }
}

fn numbers<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    const MOST: usize = 4;
    let mut numbers = numbers.into_iter();
    let mut text: Vec<String> = numbers.by_ref().take(MOST).map(|n| n.to_string()).collect();
    text.extend(numbers.next().map(|_| "..".to_owned()));
    text.join(",")
}

fn dash() -> String {
    "-".to_owned()
}
