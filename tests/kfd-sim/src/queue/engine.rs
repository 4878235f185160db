//! The parts that every queue's thread has: its doorbell, its client, its part of the truth log, and ways to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::error::QueueError;
use crate::clock::monotonic_ns;
use crate::machine::Machine;
use crate::process::Process;
use crate::truth::Seen;
use crate::vm::Fault;

/// How long a thread polls its doorbell without sleeping after the last activity.
const SPIN: Duration = Duration::from_micros(150);

/// How long a thread sleeps between two samples of memory that it waits for.
const NAP: Duration = Duration::from_micros(50);

/// The number of observations passed to the truth log at a time.
const LOG_BATCH: usize = 512;

/// The reason why a processor stopped before completion.
#[derive(Debug)]
pub enum Halt {
    /// The queue is being updated or destroyed; the packet is not consumed.
    Preempted,
    /// The queue is in error.
    Error(QueueError),
}

impl From<QueueError> for Halt {
    fn from(error: QueueError) -> Self {
        Self::Error(error)
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Error(QueueError::from(fault))
    }
}

/// The driver's instructions to the queue's thread.
#[derive(Debug, Default)]
pub struct Control {
    /// The queue is being destroyed.
    pub stop: AtomicBool,
    /// The queue has a ring and a share of the device.
    pub active: AtomicBool,
    /// Address of the ring.
    pub ring_base: AtomicU64,
    /// Bytes of the ring.
    pub ring_size: AtomicU64,
    /// Whether the thread is outside the processor.
    pub at_rest: AtomicBool,
}

/// The surroundings of a packet processor.
pub struct Engine {
    /// The whole device.
    pub machine: Arc<Machine>,
    /// The client.
    pub process: Arc<Process>,
    /// KFD's queue id.
    pub queue_id: u32,
    /// The driver's instructions.
    pub control: Arc<Control>,
    /// The doorbell.
    pub bell: Arc<Bell>,
    /// The value last seen in the doorbell.
    pub rung: u64,
    /// The highest value seen in the doorbell; `None` before the first. Of several producers, one may store a lower value right
    /// after another's higher one, and both may be seen during one packet.
    pub highest: Option<u64>,
    seen: Vec<Seen>,
}

impl Engine {
    /// Returns an engine of these parts.
    pub fn new(
        machine: Arc<Machine>,
        process: Arc<Process>,
        queue_id: u32,
        control: Arc<Control>,
        bell: Arc<Bell>,
    ) -> Self {
        let (rung, _) = bell.look();
        Self {
            machine,
            process,
            queue_id,
            control,
            bell,
            rung,
            highest: None,
            seen: Vec::new(),
        }
    }

    /// Samples the doorbell. Returns whether it changed.
    pub fn observe(&mut self) -> bool {
        let (value, changed) = self.bell.look();
        if changed {
            self.rung = value;
            // The value of an AQL doorbell before it is rung.
            if value != u64::MAX {
                self.highest = self.highest.max(Some(value));
            }
            self.machine.truth.counts.doorbells.fetch_add(1, Ordering::Relaxed);
            self.log(|| Seen::Doorbell {
                time_ns: monotonic_ns(),
                value,
            });
        }
        changed
    }

    /// Records an observation for the truth log.
    pub fn log(&mut self, seen: impl FnOnce() -> Seen) {
        if self.machine.truth.is_on() {
            self.seen.push(seen());
            if self.seen.len() >= LOG_BATCH {
                self.flush_log();
            }
        }
    }

    /// Passes the observations to the log. Called before anything that may take time.
    pub fn flush_log(&mut self) {
        self.machine
            .truth
            .batch(self.process.pid, self.queue_id, &mut self.seen);
    }

    /// Returns whether the driver wants the processor to stop at its position.
    pub fn is_preempted(&self) -> bool {
        self.control.stop.load(Ordering::Relaxed) || !self.control.active.load(Ordering::Relaxed)
    }

    /// Waits for a condition on memory, and watches the doorbell while it waits.
    pub fn wait_until(&mut self, mut condition: impl FnMut(&Process) -> Result<bool, Fault>) -> Result<(), Halt> {
        let process = Arc::clone(&self.process);
        let mut pause = Pause::default();
        while !condition(&process)? {
            if self.is_preempted() {
                return Err(Halt::Preempted);
            }
            self.observe();
            if pause.wait() {
                self.flush_log();
            }
        }
        Ok(())
    }

    /// Waits until a kernel's time is over, unless the queue is destroyed.
    pub fn be_busy_until(&mut self, end: Instant) {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.control.stop.load(Ordering::Relaxed) {
                return;
            }
            self.observe();
            if left > NAP * 4 {
                self.flush_log();
                std::thread::sleep((left - NAP * 2).min(Duration::from_millis(5)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// A wait that is quick at first and cheap later.
#[derive(Default)]
pub struct Pause(Option<Instant>);

impl Pause {
    /// Makes the wait quick again, after activity.
    pub fn reset(&mut self) {
        self.0 = None;
    }

    /// Returns whether the quick time is over.
    pub fn is_long(&mut self) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() > SPIN
    }

    /// Waits briefly. Returns true if that was a sleep.
    pub fn wait(&mut self) -> bool {
        let long = self.is_long();
        if long {
            std::thread::sleep(NAP);
        } else {
            std::hint::spin_loop();
        }
        long
    }
}
