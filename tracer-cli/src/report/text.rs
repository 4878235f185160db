//! The report for people.

mod api;
mod copies;
mod dispatches;
mod driver;
mod findings;
mod headline;
pub mod in_flight;
pub mod kernels;
mod launches;
pub mod nothing;
mod queues;
#[cfg(test)]
mod tests;
mod unread;

use std::io::{self, Write};

use tracer_core::{
    analysis::Answers,
    summary::{Nothing, Report},
    units::share,
};

use super::{layout::Layout, runs::Runs};
pub use headline::{simulated, summary, wall_ns};

/// Writes the tables: what matters most first.
pub fn details(out: &mut impl Write, read: &Read<'_>, how: &How) -> io::Result<()> {
    if read.report.nothing == Some(Nothing::NoKfd) {
        return Ok(());
    }
    let all = [
        By::Kernel,
        By::Layer,
        By::Step,
        By::Queue,
        By::Stream,
        By::Copy,
        By::Finding,
        By::Phase,
        By::Api,
        By::Ioctl,
        By::Ring,
        By::Driver,
    ];
    some(out, read, how, &all)?;
    writeln!(out)?;
    let more = "More tables: --by nesting (calls inside calls), phase, process, gpu, dispatch. Whole names and all columns: --wide.";
    out.write_all(how.layout.wrap(more, 0).as_bytes())
}

/// Writes some kinds of tables. Runs of dispatches are too long beside others.
pub fn some(out: &mut impl Write, read: &Read<'_>, how: &How, tables: &[By]) -> io::Result<()> {
    let short = tables.iter().filter(|&&by| by != By::Dispatch);
    short.into_iter().try_for_each(|&by| table(out, read, how, by))
}

/// Writes one kind of table, with everything that belongs to it.
pub fn by_one(out: &mut impl Write, read: &Read<'_>, how: &How, by: By) -> io::Result<()> {
    table(out, read, how, by)?;
    match by {
        By::Phase => launches::phases_of_ioctls(out, read.answers, how.layout),
        _ => Ok(()),
    }
}

fn table(out: &mut impl Write, read: &Read<'_>, how: &How, by: By) -> io::Result<()> {
    let &Read { report, answers, runs } = read;
    let layout = how.layout;
    match by {
        By::Kernel => kernels::table(out, answers, report, how.sort, layout),
        By::Layer => api::layers(out, answers, how.wall_ns, layout),
        By::Queue => queues::table(out, report, answers, layout),
        By::Stream => api::streams(out, report, answers, layout),
        By::Step => launches::steps(out, answers, how.hit_ns, layout),
        By::Phase => launches::phases(out, answers, report, layout),
        By::Nesting => launches::nesting(out, answers, layout),
        By::Copy => copies::tables(out, answers, layout),
        By::Finding => findings::list(out, answers, layout),
        By::Api => api::calls(out, answers, layout),
        By::Process => driver::processes(out, report, layout),
        By::Gpu => driver::gpus(out, report, layout),
        By::Ioctl => driver::ioctls(out, report, layout),
        By::Ring => driver::rings(out, report, layout),
        By::Driver => {
            driver::calls(out, report, layout)?;
            driver::events(out, report, layout)
        }
        By::Dispatch => dispatches::table(out, runs, layout),
    }
}

/// What was read from a trace.
#[derive(Debug)]
pub struct Read<'a> {
    /// The counts.
    pub report: &'a Report,
    /// Rows by kernel, function, layer and queue.
    pub answers: &'a Answers,
    /// Runs of equal dispatches.
    pub runs: &'a Runs,
}

/// How tables are written.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Width and rows.
    pub layout: Layout,
    /// Order of the kernels.
    pub sort: kernels::Sort,
    /// Time from the start to the end of the recording, ns; `None` if its end is unknown.
    pub wall_ns: Option<u64>,
    /// What a hit of a probe costs by itself, ns, at least; `None` if it was not measured.
    pub hit_ns: Option<u64>,
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Kernels, with registers and times
    Kernel,
    /// User queues
    Queue,
    /// Processes
    Process,
    /// Streams, with their queues
    Stream,
    /// Layers of time: API classes and ioctls
    Layer,
    /// API functions
    Api,
    /// Steps of launches: call, reserve, doorbell, taken
    Step,
    /// Set-up, steady phase and end of processes
    Phase,
    /// Calls inside calls: API functions, ioctls, driver functions
    Nesting,
    /// Copies and fills, with the bandwidth of synchronous ones
    Copy,
    /// GPUs
    Gpu,
    /// Ioctls
    Ioctl,
    /// Rings of the kernel driver
    Ring,
    /// Functions and trace events of the kernel driver
    Driver,
    /// Runs of equal dispatches, in the order of their indexes
    Dispatch,
    /// Findings
    Finding,
}

/// Columns of a label in the headline.
pub const LABEL: usize = 11;

/// Returns the text of a cell without a value.
fn dash() -> String {
    "-".to_owned()
}

/// Formats a number of which two bounds are known.
fn between(at_least: u64, at_most: u64) -> String {
    match at_least == at_most {
        true => at_least.to_string(),
        false => format!("{at_least} to {at_most}"),
    }
}

/// Formats a share; `-` of nothing.
fn percent(part: u64, of: u64) -> String {
    share(part, of).unwrap_or_else(dash)
}
