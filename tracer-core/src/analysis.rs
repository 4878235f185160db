//! The answers of a report: rows by kernel, by API function, by layer of time and by queue, and findings with their evidence.
//!
//! [`Analysis`] takes the facts of a trace in the order of their times, as a reader returns them. [`crate::summary`] counts the same
//! facts and decides which totals are known; the rows here are of what was recorded.

mod calls;
mod copies;
mod findings;
mod in_flight;
mod kernels;
mod nesting;
mod phases;
mod queues;
mod range;
mod slots;
mod steps;
mod threads;
mod waits;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::tables::{ApiCall, Fact};
use crate::tally::{Histogram, Stats};

pub use calls::{Function, Layer};
pub use copies::{CopyUse, SyncCopies};
pub use findings::{Finding, Level};
pub use in_flight::{Bound, Held, InFlight, StreamHeld};
pub use kernels::{Kernel, Registers};
pub use nesting::Nested;
pub use phases::{Phase, PhaseCounts, PhaseUse};
pub use queues::QueueUse;
pub use range::{Extent, Range};
pub use steps::{Step, StepTime};

/// Collects the facts of a trace.
#[derive(Debug, Default)]
pub struct Analysis {
    threads: threads::Threads,
    calls: calls::Counter,
    kernels: kernels::Counter,
    launches: Histogram,
    queues: queues::Counter,
    in_flight: in_flight::Counter,
    phases: phases::Counter,
    nesting: nesting::Counter,
    copies: copies::Counter,
    steps: steps::Counter,
    waits: waits::Counter,
    slots: slots::Counter,
    findings: findings::Counter,
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answers {
    /// Kernels, the most dispatched first.
    pub kernels: Vec<Kernel>,
    /// Dispatches that belong to none of these rows: of kernels beyond the limit, or in runs of several kernels.
    pub other_dispatches: u64,
    /// Time from the entry of the outermost recorded API call to the doorbell, over all kernels, in the way of
    /// [`Kernel::launch_ns`].
    pub launch_ns: Option<Stats>,
    /// API functions, the most time first.
    pub functions: Vec<Function>,
    /// Time by layer, the most time first.
    pub layers: Vec<Layer>,
    /// What happened on each queue, by its number in the trace.
    pub queues: Vec<QueueUse>,
    /// How long queues held work; `None` without a doorbell of an AQL queue.
    pub in_flight: Option<InFlight>,
    /// What processes did before, between and after their dispatches.
    pub phases: Vec<PhaseUse>,
    /// Calls inside calls: each row above those inside it, the most time first.
    pub nesting: Vec<Nested>,
    /// Copies and fills by what moves the bytes, the most bytes first.
    pub copies: Vec<CopyUse>,
    /// Calls of functions that return once the bytes are copied, the most bytes first.
    pub sync_copies: Vec<SyncCopies>,
    /// How long the steps of a launch took, in their order.
    pub steps: Vec<StepTime>,
    /// What a reader should know, the most serious first.
    pub findings: Vec<Finding>,
}

impl Analysis {
    /// Returns an analysis that knows how many compute queues each GPU runs at once, by its gpu id.
    #[must_use]
    pub fn with_slots(slots: BTreeMap<u32, u32>) -> Self {
        let mut analysis = Self::default();
        analysis.slots.slots = slots;
        analysis
    }

    /// Adds a fact. Facts come in the order of their times. Returns the time from the outermost recorded API call to the doorbell, of
    /// a dispatch in such a call.
    pub fn add(&mut self, fact: &Fact) -> Option<u64> {
        self.phases.add(fact);
        match fact {
            Fact::Dispatch(dispatch) => {
                let launch = self.threads.launch_ns(dispatch);
                let is_first = self.kernels.add(dispatch, launch);
                self.queues.dispatch(dispatch);
                let of = (dispatch.pid, dispatch.completion_signal);
                let place = (dispatch.queue, dispatch.index);
                let queues = &mut self.queues;
                self.waits.uses(of, place, dispatch.time_ns, &mut |queue, wait| {
                    queues.waits(queue, wait);
                });
                self.in_flight.dispatch(dispatch);
                self.steps.dispatch(dispatch, launch);
                self.launches.add_known(launch);
                self.findings.launch(is_first, launch);
                return launch;
            }
            Fact::DispatchRun(run) => {
                self.kernels.add_run(run);
                self.in_flight.dispatch_run(run.count);
            }
            Fact::Kernel(kernel) => self.kernels.loaded(kernel),
            Fact::GpuTime(time) => {
                self.kernels.time(time);
                self.in_flight.time(time);
                self.steps.gpu_time(time);
            }
            Fact::Packet(packet) => {
                self.queues.packet(packet);
                let queues = &mut self.queues;
                self.waits.packet(packet, &mut |queue, wait| queues.waits(queue, wait));
                self.in_flight.packet(packet);
            }
            Fact::Doorbell(doorbell) => {
                self.queues.doorbell(doorbell);
                if let Some(queue) = doorbell.queue {
                    self.taken((queue, doorbell.read_index), doorbell.time_ns);
                }
                self.in_flight.doorbell(doorbell);
                self.steps.doorbell(doorbell);
            }
            Fact::DoorbellRun(run) => self.in_flight.doorbell_run(run),
            Fact::Progress(progress) => {
                self.in_flight.progress(progress);
                self.taken((progress.queue, progress.read_index), progress.time_ns);
                self.steps.progress(progress);
            }
            Fact::Copy(copy) => {
                self.copies.copy(copy);
                self.findings.copy(copy);
            }
            Fact::Queue(queue) => {
                self.queues.queue(queue);
                self.slots.queue(queue);
                self.in_flight.queue(queue);
            }
            Fact::ApiCall(call) => self.call(call),
            Fact::ApiStats(stats) => self.calls.add_stats(stats),
            Fact::Ioctl(ioctl) => {
                let around = self.threads.ioctl(ioctl, |function| self.calls.submits(function));
                self.calls.ioctl(ioctl);
                self.steps.ioctl(ioctl);
                self.nesting.ioctl(around.node, ioctl);
                self.findings.ioctl(around.is_wanted);
            }
            Fact::DriverCall(call) => self.nesting.driver(call),
            Fact::RingJob(job) => self.findings.ring_job(job),
            _ => {}
        }
        None
    }

    /// Notes the read index of a queue.
    fn taken(&mut self, place: (u32, u64), time_ns: u64) {
        let queues = &mut self.queues;
        self.waits
            .read_index(place, time_ns, &mut |queue, wait| queues.waits(queue, wait));
    }

    fn call(&mut self, call: &ApiCall) {
        let Self {
            calls,
            nesting,
            threads,
            ..
        } = self;
        let function = calls.begin(call);
        let node = nesting.api(threads.around(call), function);
        threads.enter(call, function, node, &mut |done| {
            nesting.end(done.node, done.ns);
            calls.end(done);
        });
        self.copies.call(call);
        self.steps.call(call);
    }

    /// Returns the answers.
    #[must_use]
    pub fn finish(mut self) -> Answers {
        let Self {
            calls,
            nesting,
            threads,
            ..
        } = &mut self;
        threads.finish(&mut |done| {
            nesting.end(done.node, done.ns);
            calls.end(done);
        });
        let nesting = self.nesting.finish(|number| self.calls.name(number));
        let (kernels, other_dispatches) = self.kernels.finish();
        let queues = &mut self.queues;
        self.waits.finish(&mut |queue, wait| queues.waits(queue, wait));
        let queues = self.queues.finish();
        let oversubscribed = self.slots.finish();
        let (functions, layers) = self.calls.finish();
        let (copies, sync_copies) = self.copies.finish();
        Answers {
            findings: self.findings.finish(&queues, oversubscribed),
            kernels,
            other_dispatches,
            launch_ns: self.launches.stats(),
            functions,
            layers,
            queues,
            in_flight: self.in_flight.finish(),
            phases: self.phases.finish(),
            nesting,
            copies,
            sync_copies,
            steps: self.steps.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
