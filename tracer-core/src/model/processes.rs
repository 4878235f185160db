//! The traced processes.

use std::collections::VecDeque;

use super::lingered;
use crate::event::Origin;
use crate::placement::Placement;
use crate::tables::{Fact, Process};
use crate::tally::Map;

/// Processes that are alive, or exited so recently that events of theirs may still arrive.
#[derive(Debug, Default)]
pub(super) struct Processes {
    by_pid: Map<u32, Process>,
    /// Time of the last report of whether a process hands doorbells over.
    reported_ns: Map<u32, u64>,
    /// Processes that exited, in the order of their exits: time and pid.
    ended: VecDeque<(u64, u32)>,
    /// The last processes that were reported, with the times of their exits: what arrives even later is about them.
    reported: VecDeque<(u64, u32)>,
}

/// Largest number of reported processes that are kept.
const MAX_REPORTED: usize = 1024;

impl Processes {
    /// Notes that something of a process was seen, unless the process was reported already.
    pub(super) fn seen(&mut self, origin: Origin) {
        if !self.is_late(origin) {
            self.touch(origin);
        }
    }

    /// Returns whether an event is of a process that was reported: nothing would ever end the process that it would make.
    fn is_late(&self, origin: Origin) -> bool {
        let is_it = |&(end, pid): &(u64, u32)| pid == origin.pid && origin.time_ns <= end;
        !self.by_pid.contains_key(&origin.pid) && self.reported.iter().any(is_it)
    }

    /// Notes that a process was seen.
    fn touch(&mut self, origin: Origin) -> &mut Process {
        let process = self.by_pid.entry(origin.pid).or_insert_with(|| Process {
            pid: origin.pid,
            parent: None,
            comm: String::new(),
            first_ns: origin.time_ns,
            exit_ns: None,
            thunk: None,
            unit: None,
            container: None,
            pod: None,
        });
        process.first_ns = process.first_ns.min(origin.time_ns);
        process
    }

    /// Notes a process that existed before it became a traced one, with its name.
    pub(super) fn there(&mut self, origin: Origin, comm: &[u8], out: &mut impl FnMut(Fact)) {
        self.replace(origin.pid, origin.time_ns, out);
        let process = self.touch(origin);
        if process.comm.is_empty() {
            process.comm = name(comm);
        }
    }

    /// Notes that a process created another one, which runs the same program until it runs its own.
    pub(super) fn fork(&mut self, parent: Origin, child: u32, out: &mut impl FnMut(Fact)) {
        let comm = self.touch(parent).comm.clone();
        self.replace(child, parent.time_ns, out);
        let process = self.touch(Origin {
            pid: child,
            tid: child,
            ..parent
        });
        process.parent.get_or_insert(parent.pid);
        // An exec of the child may have arrived first.
        if process.comm.is_empty() {
            process.comm = comm;
        }
    }

    /// Replaces a process that exited by a new one with the same id. No more events can come from the old process.
    fn replace(&mut self, pid: u32, time_ns: u64, out: &mut impl FnMut(Fact)) {
        if let Some(old) = self.take_if(pid, |old| old.exit_ns.is_some_and(|end| end <= time_ns)) {
            out(Fact::Process(old));
        }
    }

    fn take_if(&mut self, pid: u32, is_so: impl FnOnce(&Process) -> bool) -> Option<Process> {
        self.by_pid.get(&pid).filter(|process| is_so(process))?;
        self.by_pid.remove(&pid)
    }

    /// Notes that a process runs a new program.
    pub(super) fn exec(&mut self, origin: Origin, comm: &[u8]) {
        // The holder's report about the new program may have overtaken this event.
        let is_older = self
            .reported_ns
            .get(&origin.pid)
            .is_none_or(|&reported| reported <= origin.time_ns);
        let process = self.touch(origin);
        process.comm = name(comm);
        if is_older {
            process.thunk = None;
        }
    }

    /// Notes whether the runtime of a process hands doorbells over.
    pub(super) fn thunk(&mut self, origin: Origin, hands_over: Option<bool>, out: &mut impl FnMut(Fact)) {
        if self.is_late(origin) {
            return;
        }
        // As in `placed`.
        self.replace(origin.pid, origin.time_ns, out);
        self.reported_ns.insert(origin.pid, origin.time_ns);
        self.touch(origin).thunk = hands_over;
    }

    /// Notes where a process runs.
    pub(super) fn placed(&mut self, origin: Origin, placement: &Placement, out: &mut impl FnMut(Fact)) {
        if self.is_late(origin) {
            return;
        }
        // The report may have overtaken the start of a process that got the id of one that exited.
        self.replace(origin.pid, origin.time_ns, out);
        let process = self.touch(origin);
        let Placement { unit, container, pod } = placement.clone();
        (process.unit, process.container, process.pod) = (unit, container, pod);
    }

    /// Notes that a process exited.
    pub(super) fn exit(&mut self, origin: Origin) {
        let process = self.touch(origin);
        if process.exit_ns.is_none() {
            process.exit_ns = Some(origin.time_ns);
            self.ended.push_back((origin.time_ns, origin.pid));
        }
    }

    /// Reports processes as facts that exited long enough ago.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        while let Some((end, pid)) = lingered(&mut self.ended, now) {
            // The id may belong to a younger process now.
            if let Some(process) = self.take_if(pid, |process| process.exit_ns == Some(end)) {
                self.reported_ns.remove(&pid);
                if self.reported.len() >= MAX_REPORTED {
                    self.reported.pop_front();
                }
                self.reported.push_back((end, pid));
                out(Fact::Process(process));
            }
        }
    }

    /// Ends the trace: reports every process as a fact.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        self.ended.clear();
        self.reported.clear();
        let mut all: Vec<Process> = self.by_pid.drain().map(|(_, process)| process).collect();
        all.sort_unstable_by_key(|process| (process.first_ns, process.pid));
        all.into_iter().map(Fact::Process).for_each(out);
    }

    /// Returns the processes that are known now.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }
}

/// Converts a name given by the kernel, up to the first NUL.
fn name(comm: &[u8]) -> String {
    let name = comm.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
