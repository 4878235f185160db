//! Processes whose runtimes hand doorbells to the driver's library instead of storing to them.

use std::collections::HashSet;

use crate::event::Event;
use crate::fact::{Fact, Path};

/// Those that do.
#[derive(Debug, Default)]
pub(super) struct Thunks {
    pids: HashSet<u32>,
}

impl Thunks {
    /// An event may tell of it, or end it.
    pub(super) fn apply(&mut self, event: &Event<'_>) {
        match event {
            Event::Thunk(origin, true) => drop(self.pids.insert(origin.pid)),
            Event::Thunk(origin, false) | Event::Exec(origin, _) | Event::Exit(origin) => {
                self.pids.remove(&origin.pid);
            }
            _ => {}
        }
    }

    /// What was published by a doorbell function of theirs went by the thunk.
    pub(super) fn path(&self, mut fact: Fact) -> Fact {
        let (pid, path) = match &mut fact {
            Fact::Dispatch(dispatch) => (dispatch.pid, &mut dispatch.path),
            Fact::Packet(packet) => (packet.pid, &mut packet.path),
            _ => return fact,
        };
        if *path == Path::Doorbell && self.pids.contains(&pid) {
            *path = Path::Thunk;
        }
        fact
    }
}
