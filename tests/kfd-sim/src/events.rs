//! KFD events: interrupts set them, and WAIT_EVENTS waits for them.
//!
//! A wait that cannot be answered at once is kept here with its FUSE request, so no thread blocks for it. The thread that sets the
//! event (a packet processor, as the interrupt) answers the request.

mod waiter;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::waiter::{Awaited, Outcome, Waiter};
use crate::ioctl::Errno;
use crate::ioctl::abi::{EventData, WaitEvents};
use crate::ioctl::request::PendingIoctl;
use crate::vm::AddressSpace;

/// The number of events of a process that the GPU can signal. It is also the number of slots in the event page.
pub const SIGNAL_EVENT_LIMIT: u32 = 4096;

/// `KFD_IOC_EVENT_*`.
pub const TYPE_SIGNAL: u32 = 0;
const TYPE_DEBUG: u32 = 5;

/// The content of an event page slot that is not signalled.
pub const UNSIGNALED_SLOT: u64 = u64::MAX;

#[derive(Debug)]
struct Event {
    kind: u32,
    auto_reset: bool,
    signaled: bool,
    /// Starts at 1 and grows with every set, so that a waiter notices a set that came before its wait.
    age: u64,
}

#[derive(Default)]
struct State {
    events: BTreeMap<u32, Event>,
    waiters: Vec<Waiter>,
    /// Address of the event page in the client, once it is known.
    page: Option<u64>,
}

/// The events of one process.
#[derive(Default)]
pub struct Events(Mutex<State>);

/// Returns whether the GPU, and user space with SET_EVENT, may signal an event of this type.
pub fn is_signal_type(kind: u32) -> bool {
    kind == TYPE_SIGNAL || kind == TYPE_DEBUG
}

impl Events {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the event page. A process can do this once.
    pub fn set_page(&self, va: u64) -> Result<(), Errno> {
        let mut state = self.state();
        if state.page.is_some() {
            return Err(Errno::EINVAL);
        }
        state.page = Some(va);
        Ok(())
    }

    /// Creates an event and returns its id.
    pub fn create(&self, kind: u32, auto_reset: bool) -> Result<u32, Errno> {
        let mut state = self.state();
        let ids = if is_signal_type(kind) {
            1..SIGNAL_EVENT_LIMIT
        } else {
            SIGNAL_EVENT_LIMIT..SIGNAL_EVENT_LIMIT * 2
        };
        let id = ids
            .into_iter()
            .find(|id| !state.events.contains_key(id))
            .ok_or(Errno::ENOSPC)?;
        state.events.insert(
            id,
            Event {
                kind,
                auto_reset,
                signaled: false,
                age: 1,
            },
        );
        Ok(id)
    }

    /// Removes an event. Waits for it fail.
    pub fn destroy(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        state.events.remove(&id).ok_or(Errno::EINVAL)?;
        for waiter in &mut state.waiters {
            waiter
                .events
                .iter_mut()
                .filter(|event| event.id == id)
                .for_each(|event| event.destroyed = true);
        }
        state.answer_ready();
        Ok(())
    }

    /// Performs SET_EVENT.
    pub fn set(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        let event = state.events.get(&id).ok_or(Errno::EINVAL)?;
        if event.kind != TYPE_SIGNAL {
            return Err(Errno::EINVAL);
        }
        state.signal(id);
        Ok(())
    }

    /// Performs RESET_EVENT.
    pub fn reset(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        let event = state.events.get_mut(&id).ok_or(Errno::EINVAL)?;
        if event.kind != TYPE_SIGNAL {
            return Err(Errno::EINVAL);
        }
        event.signaled = false;
        Ok(())
    }

    /// Raises the GPU's interrupt for an event. An event that does not exist, or no longer exists, is ignored, as by the driver.
    pub fn interrupt(&self, space: &AddressSpace, id: u32) {
        let mut state = self.state();
        if state.events.get(&id).is_some_and(|event| is_signal_type(event.kind)) {
            if let Some(page) = state.page {
                // A slot in a page that the client has unmapped cannot be acknowledged. The event is set all the same.
                let _ = space.write(page + u64::from(id) * 8, &UNSIGNALED_SLOT.to_le_bytes());
            }
            state.signal(id);
        }
    }

    /// Performs WAIT_EVENTS: answers the request now, or keeps it until it can be answered.
    pub fn wait(&self, request: PendingIoctl, args: WaitEvents, list: &[(u64, EventData)]) {
        let mut state = self.state();
        if list.iter().any(|(_, data)| !state.events.contains_key(&data.event_id)) {
            request.finish_with(
                Err(Errno::EINVAL),
                &WaitEvents {
                    wait_result: Outcome::Fail as u32,
                    ..args
                },
            );
            return;
        }
        let events = list
            .iter()
            .map(|(address, data)| Awaited::begin(&mut state.events, *address, data))
            .collect();
        let deadline = match args.timeout {
            u32::MAX => None,
            ms => Some(Instant::now() + Duration::from_millis(u64::from(ms))),
        };
        let waiter = Waiter {
            events,
            all: args.wait_for_all != 0,
            deadline,
            request,
            args,
        };
        if args.timeout == 0 && waiter.outcome().is_none() {
            waiter.answer(Outcome::Timeout, &state.events);
            return;
        }
        state.waiters.push(waiter);
        state.answer_ready();
    }

    /// Answers waits whose time is over, or whose thread has a signal to handle.
    pub fn reap(&self) {
        let mut state = self.state();
        let now = Instant::now();
        state.answer_ready();
        let over = |waiter: &mut Waiter| waiter.deadline.is_some_and(|deadline| deadline <= now);
        for waiter in state.waiters.extract_if(.., over).collect::<Vec<_>>() {
            waiter.answer(Outcome::Timeout, &state.events);
        }
        for mut waiter in state
            .waiters
            .extract_if(.., |waiter| waiter.request.is_interrupted())
            .collect::<Vec<_>>()
        {
            if let Some(deadline) = waiter.deadline {
                waiter.args.timeout = deadline.saturating_duration_since(now).as_millis() as u32;
            }
            state.undo(&waiter);
            waiter.request.finish_with(Err(Errno::EINTR), &waiter.args);
        }
    }

    /// Fails all waits, because the process is gone.
    pub fn abandon(&self) {
        for waiter in self.state().waiters.drain(..) {
            waiter.request.finish_with(Err(Errno::EINTR), &waiter.args);
        }
    }
}

impl State {
    fn signal(&mut self, id: u32) {
        let mut woken = false;
        for awaited in self.waiters.iter_mut().flat_map(|waiter| &mut waiter.events) {
            if awaited.id == id && !awaited.activated {
                awaited.activated = true;
                woken = true;
            }
        }
        if let Some(event) = self.events.get_mut(&id) {
            event.signaled = !event.auto_reset || !woken;
            // 0 means "no age" to the client, and 1 is the age of an event that was never set.
            event.age = event.age.checked_add(1).unwrap_or(2);
        }
        self.answer_ready();
    }

    fn answer_ready(&mut self) {
        let ready = |waiter: &mut Waiter| waiter.outcome().is_some();
        for waiter in self.waiters.extract_if(.., ready).collect::<Vec<_>>() {
            if let Some(outcome) = waiter.outcome() {
                waiter.answer(outcome, &self.events);
            }
        }
    }

    /// Sets an auto-reset event again that a wait consumed and could not deliver.
    fn undo(&mut self, waiter: &Waiter) {
        for awaited in waiter.events.iter().filter(|awaited| awaited.activated) {
            if let Some(event) = self.events.get_mut(&awaited.id)
                && event.auto_reset
            {
                event.signaled = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_start_at_one_and_are_reused() {
        let events = Events::default();
        assert_eq!(events.create(TYPE_SIGNAL, true), Ok(1));
        assert_eq!(events.create(TYPE_SIGNAL, true), Ok(2));
        assert_eq!(events.destroy(1), Ok(()));
        assert_eq!(events.create(TYPE_SIGNAL, true), Ok(1));
        assert_eq!(events.create(8, false), Ok(SIGNAL_EVENT_LIMIT));
    }

    #[test]
    fn errnos_are_the_drivers() {
        let events = Events::default();
        assert_eq!(events.set(3), Err(Errno::EINVAL));
        assert_eq!(events.reset(3), Err(Errno::EINVAL));
        assert_eq!(events.destroy(3), Err(Errno::EINVAL));
        let memory = events.create(8, false).unwrap();
        assert_eq!(
            events.set(memory),
            Err(Errno::EINVAL),
            "user space cannot set a memory exception"
        );
        assert_eq!(events.set_page(0x1000), Ok(()));
        assert_eq!(events.set_page(0x2000), Err(Errno::EINVAL));
        for _ in 1..SIGNAL_EVENT_LIMIT {
            events.create(TYPE_SIGNAL, true).unwrap();
        }
        assert_eq!(events.create(TYPE_SIGNAL, true), Err(Errno::ENOSPC));
    }

    #[test]
    fn a_set_before_the_wait_is_not_lost() {
        let events = Events::default();
        let file = std::sync::Arc::new(crate::memory::SharedFile::new("test", 1 << 20).unwrap());
        let space = AddressSpace::new(std::process::id() as i32, file);
        let id = events.create(TYPE_SIGNAL, true).unwrap();
        events.interrupt(&space, id);
        let data = EventData {
            last_event_age: 1,
            event_id: id,
            ..EventData::default()
        };
        let mut state = events.state();
        assert!(Awaited::begin(&mut state.events, 0, &data).activated, "signalled");
        assert!(
            Awaited::begin(&mut state.events, 0, &data).activated,
            "auto-reset took the signal, but the age has grown"
        );
        let data = EventData {
            last_event_age: 2,
            ..data
        };
        assert!(!Awaited::begin(&mut state.events, 0, &data).activated);
    }
}
