//! The workloads through HIP. Each checks its results and reports what it did, even when a check fails.

mod accumulator;
mod compute;
mod copy;
mod graph;
mod launches;
mod mixed;
mod steady;
mod streams;

use super::Context;
use super::report::Outcome;
use crate::error::{Error, Result};
use crate::workloads::Workload;

pub use graph::Graph;
pub use launches::Launches;
pub use streams::Streams;

/// Runs the workload.
///
/// # Errors
/// Fails if a HIP call fails, if a result is wrong, or if the workload needs the HSA runtime.
pub fn run(workload: &Workload, context: &Context, outcome: &mut Outcome) -> Result<()> {
    match workload {
        Workload::ComputeOnly(options) => compute::run(options, context, outcome),
        Workload::CopyOnly(options) => copy::run(options, context, outcome),
        Workload::Mixed(options) => mixed::run(options, context, outcome),
        Workload::Launches(options) => options.run(context, outcome),
        Workload::Graph(options) => options.run(context, outcome),
        Workload::Steady(options) => steady::run(options, context, outcome),
        Workload::Streams(options) => options.run(context, outcome),
        other => Err(Error::OtherApi {
            workload: other.name(),
            api: "hsa",
        }),
    }
}
