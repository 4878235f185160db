//! The workloads. Each checks its results and reports what it did in an [`Outcome`], even when a check fails.

pub(crate) mod accumulator;
mod all;
mod barriers;
mod batch;
mod burst;
mod churn;
mod clusters;
pub(crate) mod compute;
mod cooperative;
pub(crate) mod copy;
mod direct_doorbell;
mod fail;
mod inference;
mod long;
pub(crate) mod mixed;
mod multi_queue;
mod multi_thread;
pub mod reload;
mod share;
pub(crate) mod steady;
mod wrap;

use std::fmt::Display;

use clap::Subcommand;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::hip::workloads as hip;
use crate::report::Outcome;

/// The most dispatches of one accumulator, for which sums stay exact (see `accumulator`).
const MAX_DISPATCHES: i64 = 5_000_000;

/// The workload to run.
#[derive(Debug, Subcommand)]
pub enum Workload {
    /// Kernels only, no copy: `vector_add` repeatedly on host memory.
    ComputeOnly(compute::ComputeOnly),
    /// Copies only, no kernel: host to GPU and back.
    CopyOnly(copy::CopyOnly),
    /// Copies in, kernels (`vector_add`, saxpy, reduce), copies out.
    Mixed(mixed::Mixed),
    /// Rounds of one copy in, many kernels, one copy out: as many of each operation as in an inference.
    Inference(inference::Inference),
    /// Several queues, served in turn by one thread.
    MultiQueue(multi_queue::MultiQueue),
    /// Several threads that share one queue.
    MultiThread(multi_thread::MultiThread),
    /// Barrier packets: and, or, between queues, AMD's barrier-value.
    Barriers(barriers::Barriers),
    /// Kernels on grids of clusters of workgroups: AMD's extended kernel dispatch. Few GPUs have it.
    Clusters(clusters::OfClusters),
    /// Several packets under one reservation and one doorbell.
    Batch(batch::Batch),
    /// A ring of 64 packets, used many times over.
    Wrap(wrap::Wrap),
    /// Queues created, used and destroyed repeatedly.
    Churn(churn::Churn),
    /// Code objects loaded and unloaded repeatedly, with kernels of other names at the same addresses.
    Reload(reload::Reload),
    /// GPU memory that a child process attaches and fills.
    Share(share::Share),
    /// Kernels on the queue of cooperative launches, which has global wave sync.
    Cooperative(cooperative::Cooperative),
    /// As many dispatches per second as possible, one doorbell each.
    Burst(burst::Burst),
    /// Kernels that take long.
    Long(long::Long),
    /// Doorbells that the program itself rings, by stores to their registers: no function of the runtime runs.
    DirectDoorbell(direct_doorbell::DirectDoorbell),
    /// A kernel launched by each of HIP's launch functions (only with --api hip).
    Launches(hip::Launches),
    /// A graph of kernels, launched several times (only with --api hip).
    Graph(hip::Graph),
    /// Several streams, each with a thread (only with --api hip).
    Streams(hip::Streams),
    /// Launches and calls that must fail, and how they are reported.
    Fail(fail::Fail),
    /// Dispatches that continue until a file exists: a program to attach to.
    Steady(steady::Steady),
    /// A sample of each workload, one after the other.
    All(all::All),
}

impl Workload {
    /// Returns the name, as on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ComputeOnly(_) => "compute-only",
            Self::CopyOnly(_) => "copy-only",
            Self::Mixed(_) => "mixed",
            Self::Inference(_) => "inference",
            Self::MultiQueue(_) => "multi-queue",
            Self::MultiThread(_) => "multi-thread",
            Self::Barriers(_) => "barriers",
            Self::Clusters(_) => "clusters",
            Self::Batch(_) => "batch",
            Self::Wrap(_) => "wrap",
            Self::Churn(_) => "churn",
            Self::Reload(_) => "reload",
            Self::Share(_) => "share",
            Self::Cooperative(_) => "cooperative",
            Self::Burst(_) => "burst",
            Self::Long(_) => "long",
            Self::DirectDoorbell(_) => "direct-doorbell",
            Self::Launches(_) => "launches",
            Self::Graph(_) => "graph",
            Self::Streams(_) => "streams",
            Self::Fail(_) => "fail",
            Self::Steady(_) => "steady",
            Self::All(_) => "all",
        }
    }

    /// Runs the workload.
    ///
    /// # Errors
    /// Fails if a call of the runtime fails, a wait takes too long, or a result is wrong.
    pub fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        match self {
            Self::ComputeOnly(workload) => workload.run(context, outcome),
            Self::CopyOnly(workload) => workload.run(context, outcome),
            Self::Mixed(workload) => workload.run(context, outcome),
            Self::Inference(workload) => workload.run(context, outcome),
            Self::MultiQueue(workload) => workload.run(context, outcome),
            Self::MultiThread(workload) => workload.run(context, outcome),
            Self::Barriers(workload) => workload.run(context, outcome),
            Self::Clusters(workload) => workload.run(context, outcome),
            Self::Batch(workload) => workload.run(context, outcome),
            Self::Wrap(workload) => workload.run(context, outcome),
            Self::Churn(workload) => workload.run(context, outcome),
            Self::Reload(workload) => workload.run(context, outcome),
            Self::Share(workload) => workload.run(context, outcome),
            Self::Cooperative(workload) => workload.run(context, outcome),
            Self::Burst(workload) => workload.run(context, outcome),
            Self::Long(workload) => workload.run(context, outcome),
            Self::DirectDoorbell(workload) => workload.run(context, outcome),
            Self::Launches(_) | Self::Graph(_) | Self::Streams(_) => Err(Error::OtherApi {
                workload: self.name(),
                api: "hip",
            }),
            Self::Fail(workload) => workload.run(context, outcome),
            Self::Steady(workload) => workload.run(context, outcome),
            Self::All(workload) => workload.run(context, outcome),
        }
    }
}

/// Fails at the first element of `found` that differs from what `expected` returns for its index.
pub(crate) fn check<T: PartialEq + Display>(what: &str, found: &[T], expected: impl Fn(usize) -> T) -> Result<()> {
    let mut wrong = (0..found.len()).filter(|&i| found[i] != expected(i));
    let Some(index) = wrong.next() else {
        return Ok(());
    };
    Err(Error::Mismatch {
        what: what.to_owned(),
        index,
        found: found[index].to_string(),
        expected: expected(index).to_string(),
        wrong: 1 + wrong.count(),
        total: found.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_tells_the_first_difference() {
        assert!(check("c", &[0, 2, 4], |i| 2 * i).is_ok());
        let Err(Error::Mismatch {
            what,
            index,
            found,
            expected,
            wrong,
            total,
        }) = check("c", &[0, 9, 9], |i| 2 * i)
        else {
            panic!("they differ");
        };
        assert_eq!(
            (what.as_str(), index, found.as_str(), expected.as_str()),
            ("c", 1, "9", "2")
        );
        assert_eq!((wrong, total), (2, 3));
    }
}
