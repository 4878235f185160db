//! Changes of the runtimes' lists of code objects.
//!
//! A process calls a function before each change of its list and after it. The recorder learns of it a moment later, stops the
//! process, and has the list read. What the process did since the change waits until then: its dispatches have the names of the new
//! list. If the list changed more than once before the process stood still, the lists in between are unknown, and said to be unread.

use std::{collections::HashMap, sync::Arc};

use tracer_common::{
    r_debug::{R_STATE, RT_CONSISTENT},
    record::hold_reason,
};
use tracer_core::event::Origin;

use super::record::half;
use crate::{decode::fetch::Fetch, pause::keeper::Pauses, sys, target::process_stat::Stat};

/// The time within which a process stops, ns. After that its list is read although it runs.
const STOPPING_NS: u64 = 250_000_000;
/// Most processes that are behind.
const MAX_BEHIND: usize = 4096;
/// Calls of the function around one change.
const CALLS: u32 = 2;

/// A list that is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    /// The thread that changed the list last, and when.
    pub origin: Origin,
    /// Address of the list.
    pub debug: u64,
    /// Generation of the process.
    pub generation: u32,
    /// If the list had other states before, which nobody read: the time from the first of them to the last change, ns.
    pub behind_ns: Option<u64>,
}

/// The entry of a pause: its index and token.
pub type Pause = (u32, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The stop is on its way since this moment.
    Stopping(u64),
    /// The process stood still at this moment.
    Stopped(u64),
    /// The list is being read.
    Announced,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    changed: Changed,
    pause: Pause,
    first_ns: u64,
    calls: u32,
    state: State,
}

/// The processes whose lists change.
pub struct Changes {
    by_process: HashMap<u32, Change>,
    /// Processes that stopped in the middle of a change, after others that nobody read: when the first one was.
    behind: HashMap<u32, u64>,
    pauses: Arc<Pauses>,
}

impl Changes {
    /// Prepares for processes that are stopped with these pauses.
    #[must_use]
    pub fn new(pauses: Arc<Pauses>) -> Self {
        Self {
            by_process: HashMap::new(),
            behind: HashMap::new(),
            pauses,
        }
    }

    /// Returns whether what a process did is to wait.
    #[must_use]
    pub fn holds(&self, pid: u32) -> bool {
        self.by_process.contains_key(&pid)
    }

    /// Returns whether no process is stopped for its list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_process.is_empty()
    }

    /// Notes a call of the function. Returns the change if the process could not be stopped for it, and is to be announced at once.
    pub fn called(&mut self, origin: Origin, debug: u64, generation: u32) -> Option<Changed> {
        let known = self.by_process.get_mut(&origin.pid);
        if let Some(change) = known.filter(|change| change.state != State::Announced) {
            change.calls += 1;
            change.changed.origin = origin;
            return None;
        }
        let changed = Changed {
            origin,
            debug,
            generation,
            behind_ns: None,
        };
        let reason = hold_reason::CODE_OBJECTS;
        let Some(pause) = self.pauses.stop((origin.pid, origin.tid), origin.time_ns, reason) else {
            return Some(changed);
        };
        let behind = self.behind.remove(&origin.pid);
        let change = Change {
            changed,
            pause,
            first_ns: behind.unwrap_or(origin.time_ns),
            calls: if behind.is_some() { CALLS + 1 } else { 1 },
            // The recorder may come late: the change can be longer ago than a stop may take.
            state: State::Stopping(sys::monotonic_ns()),
        };
        self.by_process.insert(origin.pid, change);
        None
    }

    /// Goes a step on. What happened before `done_ns` was handed over. `announce` takes the lists that are to be read,
    /// each with the pause of its process; `None` if the process was not stopped.
    pub fn advance(&mut self, done_ns: u64, memory: &mut impl Fetch, mut announce: impl FnMut(Changed, Option<Pause>)) {
        let (pauses, behind) = (&self.pauses, &mut self.behind);
        self.by_process.retain(|&pid, change| {
            match change.state {
                State::Stopping(since_ns) => {
                    let state = Stat::of_process(pid).map(|stat| stat.state);
                    let now_ns = sys::monotonic_ns();
                    if !matches!(state, Some('R' | 'S' | 'D')) {
                        change.state = State::Stopped(now_ns);
                    } else if now_ns.saturating_sub(since_ns) > STOPPING_NS {
                        pauses.serve(change.pause.0, change.pause.1);
                        announce(change.changed, None);
                        return false;
                    }
                    true
                }
                // What it did before it stood still is to come first.
                State::Stopped(since_ns) if done_ns <= since_ns => true,
                State::Stopped(_) => {
                    let mut state = [0; 4];
                    let debug = change.changed.debug;
                    let is_there = memory.fetch(pid, &mut [(debug.wrapping_add(R_STATE as u64), &mut state)]);
                    if is_there && half(&state, 0) != Some(RT_CONSISTENT) {
                        // It stopped in the middle of a change. The call after the change is still to come.
                        if change.calls > 1 && behind.len() < MAX_BEHIND {
                            behind.insert(pid, change.first_ns);
                        }
                        pauses.serve(change.pause.0, change.pause.1);
                        return false;
                    }
                    change.state = State::Announced;
                    let behind_ns = change.changed.origin.time_ns.saturating_sub(change.first_ns);
                    let changed = Changed {
                        behind_ns: (change.calls > CALLS).then_some(behind_ns),
                        ..change.changed
                    };
                    announce(changed, Some(change.pause));
                    true
                }
                State::Announced => !pauses.entries.is_served(change.pause.0, change.pause.1),
            }
        });
    }

    /// Lets a process go on whose program has ended.
    pub fn forget(&mut self, pid: u32) {
        self.behind.remove(&pid);
        if let Some(change) = self.by_process.remove(&pid) {
            self.pauses.serve(change.pause.0, change.pause.1);
        }
    }

    /// Lets every process go on, and waits for none any more.
    pub fn give_up(&mut self) {
        for (_, change) in self.by_process.drain() {
            self.pauses.serve(change.pause.0, change.pause.1);
        }
    }
}
