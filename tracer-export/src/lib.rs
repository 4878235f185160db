//! Traces in the formats of other tools: Perfetto, Chrome JSON, JSON lines, CSV, AMD's rocpd, and folded stacks.
//!
//! An [`Exporter`] takes the facts of a trace in the order of their times, as a reader returns them, and writes them as they come.
//! It keeps only names, and the state of each thread, queue and track, so a trace of any length needs little memory.
//!
//! No exporter adds knowledge. A time that is not known is not written as a time, what was not watched is absent or null and never
//! 0, and every format says in its metadata what was lost, what was not watched, and whether the GPU is simulated ([`About`]).

mod about;
pub mod chrome;
pub mod csv;
mod error;
pub mod folded;
mod joined;
pub mod jsonl;
mod lanes;
mod nest;
pub mod perfetto;
pub mod rocpd;
mod timeline;
mod written;

use tracer_core::tables::{Fact, Table};

pub use about::{About, Clocks, Gpu, Window};
pub use error::ExportError;
pub use timeline::Timeline;
pub use written::Written;

/// Writes a trace in one format. A constructor takes the output and what the manifest says ([`About`]).
pub trait Exporter {
    /// Writes a fact. Facts come in the order of their times.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError>;

    /// Writes what is left, and completes the output. `damage` describes the parts of the trace that could not be read.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>, damage: &[String]) -> Result<Written, ExportError>;
}

/// Returns whether the rows of a table describe things that later rows name: processes, queues, kernels. Formats that draw a timeline,
/// and rocpd, need them also from before their window.
#[must_use]
pub const fn describes(table: Table) -> bool {
    matches!(
        table,
        Table::Processes | Table::Queues | Table::Proxies | Table::CodeObjects | Table::Kernels
    )
}

#[cfg(test)]
mod tests;
