//! The answers of a report: rows by kernel, by API function, by layer of time and by queue, and findings with their evidence.
//!
//! [`Analysis`] takes the facts of a trace in the order of their times, as a reader returns them. [`crate::summary`] counts the same
//! facts and decides which totals are known; the rows here are of what was recorded.

mod calls;
mod findings;
mod kernels;
mod queues;
mod range;
mod threads;

use serde::Serialize;

use crate::tables::Fact;

pub use calls::{Function, Layer};
pub use findings::{Finding, Level};
pub use kernels::{Kernel, Registers};
pub use queues::QueueUse;
pub use range::{Extent, Range};

/// Collects the facts of a trace.
#[derive(Debug, Default)]
pub struct Analysis {
    threads: threads::Threads,
    calls: calls::Counter,
    kernels: kernels::Counter,
    queues: queues::Counter,
    findings: findings::Counter,
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answers {
    /// Kernels, the most dispatched first.
    pub kernels: Vec<Kernel>,
    /// Dispatches that belong to none of these rows: of kernels beyond the limit, or in runs of several kernels.
    pub other_dispatches: u64,
    /// API functions, the most time first.
    pub functions: Vec<Function>,
    /// Time by layer, the most time first.
    pub layers: Vec<Layer>,
    /// What happened on each queue, by its number in the trace.
    pub queues: Vec<QueueUse>,
    /// What a reader should know, the most serious first.
    pub findings: Vec<Finding>,
}

impl Analysis {
    /// Adds a fact. Facts come in the order of their times.
    pub fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) => {
                let launch = self.threads.launch_ns(dispatch);
                let is_first = self.kernels.add(dispatch, launch);
                self.queues.dispatch(dispatch);
                self.findings.launch(is_first, launch);
            }
            Fact::DispatchRun(run) => self.kernels.add_run(run),
            Fact::Kernel(kernel) => self.kernels.loaded(kernel),
            Fact::GpuTime(time) => self.kernels.time(time),
            Fact::Packet(packet) => self.queues.packet(packet),
            Fact::Doorbell(doorbell) => self.queues.doorbell(doorbell),
            Fact::Copy(copy) => self.findings.copy(copy),
            Fact::Queue(queue) => self.queues.queue(queue),
            Fact::ApiCall(call) => {
                let number = self.calls.begin(call);
                let calls = &mut self.calls;
                self.threads.enter(call, number, &mut |done| calls.end(done));
            }
            Fact::ApiStats(stats) => self.calls.add_stats(stats),
            Fact::Ioctl(ioctl) => {
                let launching = self.threads.ioctl(ioctl, |function| self.calls.submits(function));
                self.calls.ioctl(ioctl);
                self.findings.ioctl(launching);
            }
            _ => {}
        }
    }

    /// Returns the answers.
    #[must_use]
    pub fn finish(mut self) -> Answers {
        let calls = &mut self.calls;
        self.threads.finish(&mut |done| calls.end(done));
        let (kernels, other_dispatches) = self.kernels.finish();
        let queues = self.queues.finish();
        let (functions, layers) = self.calls.finish();
        Answers {
            findings: self.findings.finish(&queues),
            kernels,
            other_dispatches,
            functions,
            layers,
            queues,
        }
    }
}

#[cfg(test)]
mod tests;
