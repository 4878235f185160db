//! The summary of a run through HIP.

use std::path::Path;

use serde::Serialize;

use super::runtime::Runtime;
use crate::error::Result;
use crate::report::{self, AgentInfo, RuntimeInfo};

/// The operations that a workload requested from HIP.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Kernels launched, including the kernels of each graph launch. HIP may launch more in order to copy and to fill.
    pub dispatches: u64,
    /// Copies.
    pub copies: u64,
    /// Bytes of these copies.
    pub copied_bytes: u64,
    /// Fills.
    pub fills: u64,
    /// Bytes of these fills.
    pub filled_bytes: u64,
    /// `end_ns - start_ns`.
    pub elapsed_ns: u64,
    /// `CLOCK_MONOTONIC` before the workload's first launch or copy.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` when the whole workload was complete.
    pub end_ns: u64,
}

impl Outcome {
    /// Adds copies of `bytes` bytes each.
    pub fn add_copies(&mut self, copies: u64, bytes: usize) {
        self.copies += copies;
        self.copied_bytes += copies * bytes as u64;
    }

    /// Adds a fill.
    pub fn add_fill(&mut self, bytes: usize) {
        self.fills += 1;
        self.filled_bytes += bytes as u64;
    }

    /// Sets when the work began and completed.
    pub fn set_times(&mut self, start_ns: u64, end_ns: u64) {
        (self.start_ns, self.end_ns, self.elapsed_ns) = (start_ns, end_ns, end_ns - start_ns);
    }
}

/// The printed summary.
#[derive(Debug, Serialize)]
pub struct Summary {
    api: &'static str,
    workload: &'static str,
    runtime: RuntimeInfo,
    agent: AgentInfo,
    kernels: String,
    pid: u32,
    #[serde(flatten)]
    outcome: Outcome,
    results: String,
}

impl Summary {
    /// Returns the summary of these parts.
    pub fn new(
        workload: &'static str,
        runtime: &Runtime,
        kernels: String,
        outcome: Outcome,
        result: &Result<()>,
    ) -> Self {
        Self {
            api: "hip",
            workload,
            runtime: RuntimeInfo {
                library: runtime.library.display().to_string(),
                version: runtime.version.to_string(),
            },
            agent: AgentInfo {
                name: runtime.name.clone(),
                gfx: runtime.gfx.clone(),
            },
            kernels,
            pid: std::process::id(),
            outcome,
            results: result
                .as_ref()
                .err()
                .map_or_else(|| "ok".to_owned(), ToString::to_string),
        }
    }

    /// Writes the summary to `path`. If that is a file, a line of text goes to standard output.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn print(&self, path: &Path) -> Result<()> {
        report::print(self, path, || {
            let outcome = &self.outcome;
            format!(
                "{} by HIP on {}: {} kernels, {} copies, {} fills in {} us: {}",
                self.workload,
                self.agent.gfx,
                outcome.dispatches,
                outcome.copies,
                outcome.fills,
                outcome.elapsed_ns / 1000,
                self.results,
            )
        })
    }
}
