//! What processes did before their first dispatch, while they dispatched, and after it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::tables::{ApiCall, Fact, Ioctl};
use crate::tally::{Map, more};

/// Number of processes that are distinguished.
const MAX_PROCESSES: usize = 16_384;
/// Number of names of ioctls that are distinguished.
const MAX_NAMES: usize = 1024;

/// A phase of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the first dispatch; of a process without one, all of its time.
    SetUp,
    /// From the first dispatch to the last one.
    Steady,
    /// From the last dispatch on.
    End,
}

/// What happened in a phase of all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseUse {
    /// The phase.
    pub phase: Phase,
    /// Time between its first and last event, summed over processes, ns.
    pub ns: u64,
    /// What processes did in it.
    #[serde(flatten)]
    pub counts: PhaseCounts,
    /// Ioctls by name.
    pub by_ioctl: BTreeMap<String, u64>,
}

/// Counts of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseCounts {
    /// Ioctls.
    pub ioctls: u64,
    /// Time in those that returned, summed over threads, ns.
    pub ioctl_ns: u64,
    /// API calls that have rows, not counting those inside others.
    pub api_calls: u64,
    /// Time in those that returned, with everything inside, summed over threads, ns.
    pub api_ns: u64,
    /// Dispatches.
    pub dispatches: u64,
    /// Copies on SDMA queues.
    pub copies: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    processes: Map<u32, Process>,
    names: Vec<String>,
    numbers: Map<String, u16>,
    ns: [u64; 3],
    counts: [Counts; 3],
}

#[derive(Clone, Debug, Default)]
struct Counts {
    counts: PhaseCounts,
    /// Ioctls by the number of their name.
    ioctls: BTreeMap<u16, u64>,
}

/// A process. What it does before its first dispatch is counted at once; then what it did since the last one waits for the next.
#[derive(Debug)]
struct Process {
    first_ns: u64,
    dispatched: Option<(u64, u64)>,
    last_ns: u64,
    since: Counts,
}

impl Counter {
    /// Takes a fact: those that say what a process does count.
    pub(super) fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Ioctl(ioctl) => self.ioctl(ioctl),
            Fact::ApiCall(call) => self.call(call),
            Fact::Copy(copy) if !copy.is_kernel() => {
                let add = |counts: &mut Counts| counts.counts.copies += 1;
                self.count(copy.pid, copy.time_ns, copy.time_ns, add);
            }
            Fact::Dispatch(dispatch) => self.dispatched(dispatch.pid, (dispatch.time_ns, dispatch.time_ns), 1),
            Fact::DispatchRun(run) => self.dispatched(run.pid, (run.begin_ns, run.end_ns), run.count),
            _ => {}
        }
    }

    /// Returns the phases, in the order of time. A phase without any event is left out.
    pub(super) fn finish(mut self) -> Vec<PhaseUse> {
        for process in std::mem::take(&mut self.processes).into_values() {
            match process.dispatched {
                None => more(&mut self.ns[0], process.last_ns.saturating_sub(process.first_ns)),
                Some((first, last)) => {
                    more(&mut self.ns[0], first.saturating_sub(process.first_ns));
                    more(&mut self.ns[1], last.saturating_sub(first));
                    more(&mut self.ns[2], process.last_ns.saturating_sub(last));
                    self.counts[2].add(&process.since);
                }
            }
        }
        let phases = [Phase::SetUp, Phase::Steady, Phase::End];
        let with = |((phase, counts), ns): ((Phase, Counts), u64)| PhaseUse {
            phase,
            ns,
            counts: counts.counts,
            by_ioctl: counts
                .ioctls
                .iter()
                .map(|(&number, &count)| {
                    let name = self.names.get(usize::from(number));
                    (name.cloned().unwrap_or_default(), count)
                })
                .collect(),
        };
        let phases = phases.into_iter().zip(self.counts).zip(self.ns).map(with);
        phases
            .filter(|row| row.counts != PhaseCounts::default() || row.ns > 0)
            .collect()
    }

    fn ioctl(&mut self, ioctl: &Ioctl) {
        let number = self.name(&ioctl.name);
        self.count(ioctl.pid, ioctl.enter_ns, ioctl.exit_ns, |counts| {
            counts.counts.ioctls += 1;
            more(&mut counts.counts.ioctl_ns, ioctl.duration_ns().unwrap_or(0));
            *counts.ioctls.entry(number).or_default() += 1;
        });
    }

    fn call(&mut self, call: &ApiCall) {
        if call.parent.is_some() {
            return;
        }
        let end = call.exit_ns.unwrap_or(call.enter_ns);
        self.count(call.pid, call.enter_ns, end, |counts| {
            counts.counts.api_calls += 1;
            more(&mut counts.counts.api_ns, end.saturating_sub(call.enter_ns));
        });
    }

    fn count(&mut self, pid: u32, begin_ns: u64, end_ns: u64, add: impl FnOnce(&mut Counts)) {
        let Some(process) = process(&mut self.processes, pid, begin_ns) else {
            return;
        };
        process.last_ns = process.last_ns.max(end_ns);
        match process.dispatched {
            None => add(&mut self.counts[0]),
            Some(_) => add(&mut process.since),
        }
    }

    fn dispatched(&mut self, pid: u32, (begin, end): (u64, u64), count: u64) {
        let Some(process) = process(&mut self.processes, pid, begin) else {
            return;
        };
        process.last_ns = process.last_ns.max(end);
        let (first, last) = process.dispatched.unwrap_or((begin, end));
        process.dispatched = Some((first, last.max(end)));
        let steady = &mut self.counts[1];
        steady.add(&std::mem::take(&mut process.since));
        more(&mut steady.counts.dispatches, count);
    }

    /// Returns the number of a name; names beyond the limit share one.
    fn name(&mut self, name: &str) -> u16 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let is_full = self.names.len() >= MAX_NAMES;
        let name = if is_full { "others" } else { name };
        let next = u16::try_from(self.names.len()).unwrap_or(u16::MAX);
        let number = *self.numbers.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.names.push(name.to_owned());
        }
        number
    }
}

fn process(processes: &mut Map<u32, Process>, pid: u32, begin_ns: u64) -> Option<&mut Process> {
    if processes.len() >= MAX_PROCESSES && !processes.contains_key(&pid) {
        return None;
    }
    Some(processes.entry(pid).or_insert_with(|| Process {
        first_ns: begin_ns,
        dispatched: None,
        last_ns: begin_ns,
        since: Counts::default(),
    }))
}

impl Counts {
    fn add(&mut self, other: &Self) {
        let (counts, by) = (&mut self.counts, other.counts);
        more(&mut counts.ioctls, by.ioctls);
        more(&mut counts.ioctl_ns, by.ioctl_ns);
        more(&mut counts.api_calls, by.api_calls);
        more(&mut counts.api_ns, by.api_ns);
        more(&mut counts.dispatches, by.dispatches);
        more(&mut counts.copies, by.copies);
        for (&number, &count) in &other.ioctls {
            more(self.ioctls.entry(number).or_default(), count);
        }
    }
}
