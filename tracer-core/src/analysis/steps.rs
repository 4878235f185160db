//! How long each step of a launch took, beside an ioctl of the KFD.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;

use super::calls::{WAIT, class};
use crate::tables::{ApiCall, Dispatch, Doorbell, GpuTime, Ioctl, Progress};
use crate::tally::{Histogram, Stats, bounded};

/// Number of queues that are distinguished.
const MAX_QUEUES: usize = 65_536;
/// Doorbells of a queue that wait for the moment at which their packets are taken.
const MAX_WAITING: usize = 65_536;

/// A step of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// From the entry of the outermost recorded call to the reserve of the index.
    CallToReserve,
    /// From the thread's last reserve on the queue to the doorbell.
    ReserveToDoorbell,
    /// From the entry of the outermost recorded call to the doorbell.
    CallToDoorbell,
    /// The whole call that launched, from entry to return.
    Call,
    /// From the doorbell until a sample or doorbell found its packets not taken for the last time.
    DoorbellToNotTaken,
    /// From the doorbell until a sample or doorbell found its packets taken.
    DoorbellToTaken,
    /// From the doorbell to the start of the kernel, by the GPU's clock.
    DoorbellToStart,
    /// From the start to the end of the kernel, by the GPU's clock.
    Run,
    /// An ioctl of the KFD that does not wait, for comparison.
    KfdIoctl,
}

impl Step {
    /// Every step, in the order of a launch.
    pub const ALL: [Self; 9] = [
        Self::CallToReserve,
        Self::ReserveToDoorbell,
        Self::CallToDoorbell,
        Self::Call,
        Self::DoorbellToNotTaken,
        Self::DoorbellToTaken,
        Self::DoorbellToStart,
        Self::Run,
        Self::KfdIoctl,
    ];

    /// Returns the hits of probes that lie in it, at least.
    const fn hits(self, has_reserves: bool) -> u64 {
        let reserve = has_reserves as u64;
        match self {
            Self::CallToReserve | Self::ReserveToDoorbell => 1,
            Self::CallToDoorbell => 1 + reserve,
            // The doorbell lies in it, too.
            Self::Call => 2 + reserve,
            Self::DoorbellToNotTaken | Self::DoorbellToTaken | Self::DoorbellToStart | Self::Run | Self::KfdIoctl => 0,
        }
    }
}

/// How long a step took. The cost of the probes is in the steps up to the doorbell, and in those of calls and ioctls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepTime {
    /// The step.
    pub step: Step,
    /// Launches, doorbells or ioctls whose step is known.
    pub count: u64,
    /// Time, ns.
    pub ns: Stats,
    /// Hits of probes that lie in the step, at least: one between the moments of two probes, because the rest of the first hit and
    /// the begin of the second one do, and one for each probe in between. 0 where no two probes limit the step.
    pub hits: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    times: [Histogram; Step::ALL.len()],
    queues: BTreeMap<u32, Waiting>,
}

/// Doorbells of a queue whose packets were not taken by the last moment that is known.
#[derive(Debug, Default)]
struct Waiting {
    /// One past the index, and the time of the doorbell.
    doorbells: VecDeque<(u64, u64)>,
    /// The last moment.
    seen_ns: u64,
}

impl Counter {
    fn add(&mut self, step: Step, ns: Option<u64>) {
        self.times[step as usize].add_known(ns);
    }

    /// Takes a dispatch, and the time from the entry of the outermost call around it.
    pub(super) fn dispatch(&mut self, dispatch: &Dispatch, launch_ns: Option<u64>) {
        self.add(Step::CallToDoorbell, launch_ns);
        let reserve_ns = dispatch.reserve_ns.and_then(|at| dispatch.time_ns.checked_sub(at));
        let before = launch_ns
            .zip(reserve_ns)
            .and_then(|(launch, reserve)| launch.checked_sub(reserve));
        self.add(Step::CallToReserve, before);
    }

    /// Takes a call. Whether it launched is known by its dispatches.
    pub(super) fn call(&mut self, call: &ApiCall) {
        let launched = call.parent.is_none() && call.dispatches > 0;
        let ns = call.exit_ns.and_then(|exit| exit.checked_sub(call.enter_ns));
        self.add(Step::Call, ns.filter(|_| launched));
    }

    pub(super) fn doorbell(&mut self, doorbell: &Doorbell) {
        self.add(Step::ReserveToDoorbell, doorbell.reserve_to_doorbell_ns);
        let Some(queue) = doorbell.queue else { return };
        self.see(queue, (doorbell.time_ns, doorbell.time_ns), doorbell.read_index);
        let (Some(indexes), Some(waiting)) = (doorbell.indexes(), self.queues.get_mut(&queue)) else {
            return;
        };
        if waiting.doorbells.len() < MAX_WAITING {
            let end = indexes.end().saturating_add(1);
            waiting.doorbells.push_back((end, doorbell.time_ns));
        }
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        let time = (progress.time_ns, progress.until_ns);
        self.see(progress.queue, time, progress.read_index);
    }

    pub(super) fn gpu_time(&mut self, time: &GpuTime) {
        // The error of the clock can put the start before the doorbell.
        let start = time.start_ns.map(|start| start.saturating_sub(time.time_ns));
        self.add(Step::DoorbellToStart, start);
        let run = time
            .start_ns
            .zip(time.end_ns)
            .and_then(|(start, end)| end.checked_sub(start));
        self.add(Step::Run, run);
    }

    pub(super) fn ioctl(&mut self, ioctl: &Ioctl) {
        self.add(
            Step::KfdIoctl,
            ioctl
                .duration_ns()
                .filter(|_| ioctl.device == "kfd" && class(ioctl) != WAIT),
        );
    }

    /// Returns the steps that are known, in the order of a launch.
    pub(super) fn finish(&self) -> Vec<StepTime> {
        let steps = Step::ALL.into_iter().zip(&self.times);
        let has_reserves = self.times[Step::ReserveToDoorbell as usize].count() > 0;
        let known = steps.filter_map(|(step, times)| {
            Some(StepTime {
                step,
                count: times.count(),
                ns: times.stats()?,
                hits: step.hits(has_reserves),
            })
        });
        known.collect()
    }

    /// Takes a read index of a queue, and the times before and after reading it.
    fn see(&mut self, queue: u32, (time_ns, until_ns): (u64, u64), read_index: u64) {
        let Some(waiting) = bounded(&mut self.queues, &queue, MAX_QUEUES) else {
            return;
        };
        let seen_ns = std::mem::replace(&mut waiting.seen_ns, time_ns);
        while let Some(&(_, rung_ns)) = waiting.doorbells.front().filter(|(end, _)| *end <= read_index) {
            waiting.doorbells.pop_front();
            let [not_taken, taken] = [seen_ns, until_ns].map(|at| at.saturating_sub(rung_ns));
            self.times[Step::DoorbellToTaken as usize].add(taken);
            self.times[Step::DoorbellToNotTaken as usize].add(not_taken);
        }
    }
}
