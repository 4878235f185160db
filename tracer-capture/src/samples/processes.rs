//! The traced processes, by the side band: forks, new programs, exits.

use std::collections::HashMap;

use tracer_core::event::Origin;

use crate::{sys, target::process_stat::Stat};

/// A traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Distinguishes programs that run one after the other at the same process id.
    pub generation: u32,
    /// Whether the process has used the KFD, or was attached to.
    pub is_user: bool,
    /// Threads that have not exited. For a process that ran before, their number when tracer began, and the threads that came and
    /// went since.
    threads: u32,
    /// Forks and exits before this moment are in `threads` already.
    since_ns: u64,
}

/// The end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Other threads of the process continue.
    Thread,
    /// It was the last one: the process has ended.
    Process,
}

/// The traced processes.
#[derive(Debug, Default)]
pub struct Processes {
    traced: HashMap<u32, Process>,
    follow: bool,
    generation: u32,
}

impl Processes {
    /// `follow` is whether child processes are traced too.
    #[must_use]
    pub fn new(follow: bool) -> Self {
        Self {
            follow,
            ..Self::default()
        }
    }

    /// Traces a process from now on, as the given generation.
    pub fn insert(&mut self, pid: u32, generation: u32) {
        self.generation = self.generation.max(generation);
        let threads = Stat::of_process(pid).map_or(1, |stat| stat.threads);
        let process = Process {
            generation,
            is_user: false,
            threads,
            since_ns: sys::monotonic_ns(),
        };
        self.traced.insert(pid, process);
    }

    /// Returns a traced process.
    pub fn get(&mut self, pid: u32) -> Option<&mut Process> {
        self.traced.get_mut(&pid)
    }

    /// Notes that a thread of a traced process created a thread or a process. Returns the process, if it is one that is traced from
    /// now on.
    pub fn forked(&mut self, parent: Origin, child: u32) -> Option<u32> {
        let process = self.traced.get_mut(&parent.pid)?;
        if child == parent.pid {
            if parent.time_ns < process.since_ns {
                return None;
            }
            process.threads = process.threads.saturating_add(1);
            return None;
        }
        if !self.follow {
            return None;
        }
        self.generation = self.generation.wrapping_add(1);
        let process = Process {
            generation: self.generation,
            is_user: false,
            threads: 1,
            since_ns: parent.time_ns,
        };
        self.traced.insert(child, process);
        Some(child)
    }

    /// Notes that a process runs a new program, which has one thread and has used nothing yet.
    pub fn executed(&mut self, pid: u32, time_ns: u64) {
        if let Some(process) = self.traced.get_mut(&pid) {
            self.generation = self.generation.wrapping_add(1);
            *process = Process {
                generation: self.generation,
                is_user: false,
                threads: 1,
                since_ns: time_ns,
            };
        }
    }

    /// Notes the end of a thread. A process that ended is not traced any more. Returns `None` if its process is not traced.
    pub fn exited(&mut self, thread: Origin) -> Option<End> {
        let pid = thread.pid;
        let process = self.traced.get_mut(&pid)?;
        if thread.time_ns < process.since_ns {
            return Some(End::Thread);
        }
        process.threads = process.threads.saturating_sub(1);
        if process.threads > 0 {
            return Some(End::Thread);
        }
        // A fork whose record was lost leaves a thread that was not counted.
        if let Some(stat) = Stat::of_process(pid).filter(|stat| !stat.is_exiting()) {
            process.threads = stat.threads;
            process.since_ns = sys::monotonic_ns();
            return Some(End::Thread);
        }
        self.traced.remove(&pid);
        Some(End::Process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(pid: u32) -> Origin {
        Origin {
            pid,
            tid: pid,
            time_ns: u64::MAX,
        }
    }

    /// No process has this id.
    const PARENT: u32 = u32::MAX - 1;

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut processes = Processes::new(true);
        processes.insert(PARENT, 1);
        assert_eq!(processes.forked(thread(PARENT), PARENT), None);
        assert_eq!(processes.exited(thread(PARENT)), Some(End::Thread));
        assert_eq!(processes.exited(thread(PARENT)), Some(End::Process));
        assert_eq!(processes.exited(thread(PARENT)), None);
    }

    #[test]
    fn children_are_traced_unless_the_user_says_otherwise() {
        for follow in [true, false] {
            let mut processes = Processes::new(follow);
            processes.insert(PARENT, 1);
            assert_eq!(processes.forked(thread(PARENT), 7), follow.then_some(7));
            assert_eq!(processes.get(7).is_some(), follow);
            assert_eq!(processes.forked(thread(8), 9), None);
        }
    }

    #[test]
    fn a_new_program_is_another_generation_and_no_user_yet() {
        let mut processes = Processes::new(true);
        processes.insert(PARENT, 1);
        processes.get(PARENT).unwrap().is_user = true;
        processes.forked(thread(PARENT), PARENT);
        processes.executed(PARENT, u64::MAX);
        let process = *processes.get(PARENT).unwrap();
        assert!(!process.is_user && process.generation != 1);
        assert_eq!(processes.exited(thread(PARENT)), Some(End::Process));
    }
}
