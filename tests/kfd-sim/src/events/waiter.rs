//! A thread that waits for events.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Event, TYPE_SIGNAL};
use crate::ioctl::Errno;
use crate::ioctl::abi::{EventData, WaitEvents};
use crate::ioctl::request::PendingIoctl;

/// `KFD_IOC_WAIT_RESULT_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The events were signalled.
    Complete = 0,
    /// The events were not signalled in time.
    Timeout = 1,
    /// An event was destroyed.
    Fail = 2,
}

/// One event of a wait.
pub struct Awaited {
    /// Its id.
    pub id: u32,
    /// The address of the event's kfd_event_data in the client.
    pub data: u64,
    /// Whether the client counts the event's age.
    pub with_age: bool,
    /// Whether it was signalled.
    pub activated: bool,
    /// Whether it was destroyed during the wait.
    pub destroyed: bool,
}

/// A WAIT_EVENTS call that is not answered yet.
pub struct Waiter {
    /// The events.
    pub events: Vec<Awaited>,
    /// Whether all must be signalled.
    pub all: bool,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// The call.
    pub request: PendingIoctl,
    /// Its arguments.
    pub args: WaitEvents,
}

impl Awaited {
    /// Begins to wait, and consumes the signal of an event that is already set.
    pub(super) fn begin(events: &mut BTreeMap<u32, Event>, address: u64, data: &EventData) -> Self {
        let id = data.event_id;
        let mut awaited = Self {
            id,
            data: address,
            with_age: false,
            activated: false,
            destroyed: false,
        };
        if let Some(event) = events.get_mut(&id) {
            awaited.with_age = data.last_event_age != 0 && event.kind == TYPE_SIGNAL;
            awaited.activated = event.signaled;
            event.signaled &= !event.auto_reset;
            awaited.activated |= awaited.with_age && data.last_event_age != event.age;
        }
        awaited
    }
}

impl Waiter {
    /// Returns the result of the wait, if the wait is over.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.events.iter().any(|event| event.destroyed) {
            return Some(Outcome::Fail);
        }
        let activated = self.events.iter().filter(|event| event.activated).count();
        let enough = if self.all {
            activated == self.events.len()
        } else {
            activated > 0
        };
        enough.then_some(Outcome::Complete)
    }

    /// Answers the call.
    pub(super) fn answer(mut self, outcome: Outcome, events: &BTreeMap<u32, Event>) {
        self.args.wait_result = outcome as u32;
        let mut result = if outcome == Outcome::Fail {
            Err(Errno::EIO)
        } else {
            Ok(())
        };
        if outcome == Outcome::Complete {
            for awaited in self
                .events
                .iter()
                .filter(|awaited| awaited.activated && awaited.with_age)
            {
                let age = events.get(&awaited.id).map_or(0, |event| event.age);
                if self.request.write_client(awaited.data, &age.to_le_bytes()).is_err() {
                    result = Err(Errno::EFAULT);
                }
            }
        }
        self.request.finish_with(result, &self.args);
    }
}
