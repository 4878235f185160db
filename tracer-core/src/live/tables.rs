//! Rings of the kernel driver, ioctls and processes.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::picture::{IoctlRow, ProcessRow, RingRow};
use super::rate::Rate;
use crate::tables::{Ioctl, Process, RingJob};
use crate::tally::{Histogram, bounded};

/// Number of names of one kind (rings with reasons, ioctls) that are distinguished.
const MAX_NAMES: usize = 512;
/// Number of processes that are distinguished.
const MAX_PROCESSES: usize = 16_384;

/// Jobs by ring and reason.
#[derive(Debug, Default)]
pub struct Rings {
    all: BTreeMap<(String, String), Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    class: String,
    jobs: Rate,
    waiting: Histogram,
    running: Histogram,
    traced: u64,
}

impl Rings {
    /// Counts a job. A job comes when it ends.
    pub fn add(&mut self, job: &RingJob) {
        let ring = job.ring.clone().unwrap_or_else(|| "unknown".to_owned());
        let key = (ring, job.reason.clone().unwrap_or_default());
        let Some(ring) = bounded(&mut self.all, &key, MAX_NAMES) else {
            return;
        };
        ring.class.clone_from(&job.class);
        ring.jobs.add(job.done_ns.or(job.run_ns).unwrap_or(job.time_ns), 1);
        ring.traced += u64::from(job.traced == Some(true));
        ring.waiting.add_known(job.queued_ns());
        ring.running.add_known(job.running_ns());
    }

    pub fn rows(&self, now: u64) -> Vec<RingRow> {
        let rows = self.all.iter().map(|((ring, reason), state)| RingRow {
            ring: ring.clone(),
            class: state.class.clone(),
            reason: (!reason.is_empty()).then(|| reason.clone()),
            jobs: state.jobs.total(),
            traced: state.traced,
            per_s: state.jobs.per_second(now),
            waiting_ns: state.waiting.stats().map(|s| (s.p50, s.p99)),
            running_ns: state.running.stats().map(|s| (s.p50, s.p99)),
        });
        rows.collect()
    }
}

/// Calls by device and name.
#[derive(Debug, Default)]
pub struct Ioctls {
    all: BTreeMap<(&'static str, String), Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    rate: Rate,
    errors: u64,
    ns: Histogram,
}

impl Ioctls {
    pub fn add(&mut self, ioctl: &Ioctl) {
        let key = (ioctl.device, ioctl.name.clone().into_owned());
        if let Some(calls) = bounded(&mut self.all, &key, MAX_NAMES) {
            calls.rate.add(ioctl.exit_ns, 1);
            calls.errors += u64::from(ioctl.failed());
            calls.ns.add_known(ioctl.duration_ns());
        }
    }

    pub fn rows(&self, now: u64) -> Vec<IoctlRow> {
        let rows = self.all.iter().map(|((device, name), calls)| IoctlRow {
            device: (*device).to_owned(),
            name: name.clone(),
            count: calls.rate.total(),
            per_s: calls.rate.per_second(now),
            errors: calls.errors,
            ns: calls.ns.stats().map(|s| (s.p50, s.p99)),
        });
        rows.collect()
    }
}

/// Processes by id.
#[derive(Debug, Default)]
pub struct Processes {
    all: BTreeMap<u32, LiveProcess>,
    /// Takes the facts of processes beyond the limit.
    beyond: LiveProcess,
}

/// The activity of one process.
#[derive(Debug, Default)]
pub struct LiveProcess {
    known: Option<Process>,
    pub counts: Counts,
    pub ioctls: u64,
}

impl LiveProcess {
    /// Returns the name of its program, if it is known.
    fn comm(&self) -> Option<String> {
        let comm = self.known.as_ref()?.comm.clone();
        Some(comm).filter(|comm| !comm.is_empty())
    }

    /// Returns when the process exited, if that was before `now`: a replay knows the exits of processes that still run.
    fn ended_ns(&self, now: u64) -> Option<u64> {
        let exit = self.known.as_ref()?.exit_ns;
        exit.filter(|&exit| exit <= now)
    }
}

impl Processes {
    /// Returns the process with this id, or the entry for all processes beyond the limit.
    pub fn at(&mut self, pid: u32) -> &mut LiveProcess {
        bounded(&mut self.all, &pid, MAX_PROCESSES).unwrap_or(&mut self.beyond)
    }

    pub fn numbers(&mut self, process: &Process) {
        let known = &mut self.at(process.pid).known;
        // Ids are used again: the later process is shown.
        if known.as_ref().is_none_or(|known| known.first_ns <= process.first_ns) {
            *known = Some(process.clone());
        }
    }

    /// Removes processes that exited at least `after` ns before `now`.
    pub fn forget(&mut self, now: u64, after: u64) {
        self.all
            .retain(|_, process| process.ended_ns(now).is_none_or(|ended| now - ended < after));
    }

    pub fn rows(&self, now: u64, queues: &impl Fn(u32) -> usize) -> Vec<ProcessRow> {
        let rows = self.all.iter().map(|(&pid, process)| ProcessRow {
            pid,
            parent: process.known.as_ref().and_then(|known| known.parent),
            comm: process.comm(),
            ended: process.ended_ns(now).is_some(),
            queues: queues(pid),
            dispatches: process.counts.tally.all_dispatches(),
            dispatches_per_s: process.counts.dispatches.per_second(now),
            doorbells: process.counts.tally.doorbells,
            copies: process.counts.tally.all_copies(),
            ioctls: process.ioctls,
        });
        rows.collect()
    }
}
