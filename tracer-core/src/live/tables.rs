//! Rings of the kernel driver, ioctls and processes.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::picture::{IoctlRow, ProcessRow, RingRow};
use super::rate::Rate;
use crate::known::{Basis, Total};
use crate::tables::{Ioctl, Process, RingJob};
use crate::tally::{Histogram, Tally, bounded};

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

    /// Returns whether it is known whether its runtime passes doorbells to the thunk library.
    fn thunk_is_known(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.thunk.is_some())
    }

    /// Returns whether it submitted anything, and it is unknown whether its runtime passes doorbells to the thunk library.
    fn hides_thunk(&self) -> bool {
        let tally = &self.counts.tally;
        (tally.rows() > 0 || tally.doorbells > 0) && !self.thunk_is_known()
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

    /// Returns the name of a process's program, if it is known.
    pub fn comm(&self, pid: u32) -> Option<String> {
        self.all.get(&pid)?.comm()
    }

    /// Returns whether it is known of every process with submissions whether its runtime passes doorbells to the thunk library.
    pub fn thunks_are_known(&self) -> bool {
        !self.beyond.hides_thunk() && !self.all.values().any(LiveProcess::hides_thunk)
    }

    /// Returns whether it is known of this process.
    pub fn thunk_is_known(&self, pid: u32) -> bool {
        self.all.get(&pid).is_some_and(LiveProcess::thunk_is_known)
    }

    /// Removes processes that exited at least `after` ns before `now`. Returns whether it is unknown of one with submissions whether
    /// its runtime passes doorbells to the thunk library.
    pub fn forget(&mut self, now: u64, after: u64) -> bool {
        let mut hidden = false;
        self.all.retain(|_, process| {
            let shown = process.ended_ns(now).is_none_or(|ended| now - ended < after);
            hidden |= !shown && process.hides_thunk();
            shown
        });
        hidden
    }

    /// Returns the processes. `of` returns the number of queues of a process, and what decides whether its counts are known.
    pub fn rows<'a>(&self, now: u64, of: impl Fn(u32, &Tally) -> (usize, Basis<'a>)) -> Vec<ProcessRow> {
        let rows = self.all.iter().map(|(&pid, process)| {
            let tally = &process.counts.tally;
            let (queues, basis) = of(pid, tally);
            let known = process.known.as_ref();
            ProcessRow {
                pid,
                parent: known.and_then(|known| known.parent),
                comm: process.comm(),
                unit: known.and_then(|known| known.unit.clone()),
                container: known.and_then(|known| known.container.clone()),
                pod: known.and_then(|known| known.pod.clone()),
                ended: process.ended_ns(now).is_some(),
                queues,
                dispatches: basis.when(Total::Dispatches, tally.all_dispatches()),
                dispatches_per_s: basis.when(Total::Dispatches, process.counts.dispatches.per_second(now)),
                doorbells: basis.when(Total::Doorbells, tally.doorbells),
                copies: basis.when(Total::Copies, tally.all_copies()),
                ioctls: basis.when(Total::Ioctls, process.ioctls),
            }
        });
        rows.collect()
    }
}
