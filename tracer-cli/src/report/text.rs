//! The report for people.

mod api;
mod dispatches;
mod driver;
mod findings;
mod headline;
pub mod kernels;
mod nothing;
mod queues;
mod unread;

use std::io::{self, Write};

use tracer_core::{
    analysis::Answers,
    summary::{Nothing, Report},
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
        By::Queue,
        By::Stream,
        By::Finding,
        By::Api,
        By::Ioctl,
        By::Ring,
        By::Driver,
    ];
    some(out, read, how, &all)
}

/// Writes some kinds of tables. Runs of dispatches are too long beside others.
pub fn some(out: &mut impl Write, read: &Read<'_>, how: &How, tables: &[By]) -> io::Result<()> {
    let short = tables.iter().filter(|&&by| by != By::Dispatch);
    short.into_iter().try_for_each(|&by| by_one(out, read, how, by))
}

/// Writes one kind of table.
pub fn by_one(out: &mut impl Write, read: &Read<'_>, how: &How, by: By) -> io::Result<()> {
    let &Read { report, answers, runs } = read;
    let layout = how.layout;
    match by {
        By::Kernel => kernels::table(out, answers, report, how.sort, layout),
        By::Layer => api::layers(out, answers, how.wall_ns, layout),
        By::Queue => queues::table(out, report, answers, layout),
        By::Stream => api::streams(out, report, layout),
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

/// Returns the text of a cell without a value.
fn dash() -> String {
    "-".to_owned()
}

/// Formats a share; `-` of nothing. Neither nothing nor everything is claimed of a number that is only near it.
fn percent(part: u64, of: u64) -> String {
    let percent = part as f64 * 100.0 / of as f64;
    match of {
        0 => dash(),
        _ if part > 0 && percent < 0.05 => "<0.1 %".to_owned(),
        _ if part < of && percent >= 99.95 => ">99.9 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}
