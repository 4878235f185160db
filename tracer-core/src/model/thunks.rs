//! Processes whose runtimes hand doorbells to the driver's library instead of storing to them.

use std::collections::HashMap;

use super::LINGER_NS;
use crate::event::Event;
use crate::fact::{Fact, Path};

/// Processes that are kept; they are few.
const MAX_PROCESSES: usize = 4096;

/// Those that do.
#[derive(Debug, Default)]
pub(super) struct Thunks {
    by_pid: HashMap<u32, Span>,
}

/// From when to when. Rows of a process come some time after its end, too.
#[derive(Debug)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Thunks {
    /// An event may tell of it, or end it.
    pub(super) fn apply(&mut self, event: &Event<'_>) {
        match event {
            Event::Thunk(origin, true) => self.begin(origin.pid, origin.time_ns),
            Event::Thunk(origin, false) => drop(self.by_pid.remove(&origin.pid)),
            // What the holder tells overtakes records: that of an earlier end may come after it.
            Event::Exec(origin, _) | Event::Exit(origin) => {
                let span = self.by_pid.get_mut(&origin.pid);
                if let Some(span) = span.filter(|span| span.from_ns <= origin.time_ns) {
                    span.to_ns = span.to_ns.min(origin.time_ns);
                }
            }
            _ => {}
        }
    }

    /// Told again, it is true since it was told first.
    fn begin(&mut self, pid: u32, time_ns: u64) {
        if self.by_pid.len() >= MAX_PROCESSES {
            self.by_pid
                .retain(|_, span| span.to_ns.saturating_add(LINGER_NS) > time_ns);
        }
        let span = Span {
            from_ns: time_ns,
            to_ns: u64::MAX,
        };
        let fits = self.by_pid.len() < MAX_PROCESSES;
        match self.by_pid.get_mut(&pid) {
            Some(known) if known.to_ns == u64::MAX => {}
            Some(ended) => *ended = span,
            None if fits => drop(self.by_pid.insert(pid, span)),
            None => {}
        }
    }

    /// What was published by a doorbell function of theirs went by the thunk.
    pub(super) fn path(&self, mut fact: Fact) -> Fact {
        let (pid, time_ns, path) = match &mut fact {
            Fact::Dispatch(dispatch) => (dispatch.pid, dispatch.time_ns, &mut dispatch.path),
            Fact::Packet(packet) => (packet.pid, packet.time_ns, &mut packet.path),
            _ => return fact,
        };
        let span = self.by_pid.get(&pid);
        if *path == Path::Doorbell && span.is_some_and(|span| (span.from_ns..=span.to_ns).contains(&time_ns)) {
            *path = Path::Thunk;
        }
        fact
    }
}
