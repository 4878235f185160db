//! One thread's submissions to one queue, and the records of them.

use std::thread;
use std::time::Duration;

use crate::clock::{self, Deadline};
use crate::error::{Error, Result};
use crate::hsa::{Direct, Queue};
use crate::packet::{Kind, Packet};

/// The number of polls of the read index of a full ring before the producer yields the CPU.
const EAGER_POLLS: u32 = 64;

/// One packet as it was submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The packet.
    pub packet: Packet,
    /// Its index in the queue.
    pub index: u64,
    /// The doorbell value that published it.
    pub doorbell: u64,
    /// The time just before its index was reserved.
    pub reserve_ns: u64,
    /// The time just after the doorbell was stored.
    pub time_ns: u64,
    /// Whether this program, and not the runtime, stored to the doorbell.
    pub direct: bool,
}

/// What to record about each submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Time one of this many submissions. Reading the clock twice costs more than submitting.
    pub time_every: u32,
    /// Keep each packet.
    pub log: bool,
}

/// The totals of one producer.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Kernel dispatch packets.
    pub dispatches: u64,
    /// Barrier packets of any kind.
    pub barriers: u64,
    /// Packets of other kinds.
    pub others: u64,
    /// Doorbell stores.
    pub doorbells: u64,
    /// Doorbell stores without the runtime, among these.
    pub direct: u64,
    /// The lowest and highest index used.
    pub indexes: Option<(u64, u64)>,
    /// How often the ring was full.
    pub full: u64,
    /// Durations of the timed submissions: reserve to doorbell.
    pub submit_ns: Vec<u64>,
    /// The packets, if they are logged.
    pub log: Vec<Submission>,
}

/// A thread's right to submit to a queue.
pub struct Producer<'q> {
    queue: &'q Queue,
    timeout: Duration,
    notes: Notes,
    /// Submissions until the next timed one.
    untimed: u32,
    /// The read index when it was last read. There is room at least up to this index plus the ring's size.
    read: u64,
    bypass: Bypass<'q>,
    /// The shortest time between two submissions.
    pace: Duration,
    tally: Tally,
}

/// The parts of a submission that a producer does without the runtime.
#[derive(Default)]
struct Bypass<'q> {
    reserve: Option<Direct<'q>>,
    ring: Option<Direct<'q>>,
}

impl<'q> Producer<'q> {
    /// Returns a producer that is expected to submit about `expected` packets. It allocates the memory for its records now.
    #[must_use]
    pub fn new(queue: &'q Queue, timeout: Duration, notes: Notes, expected: usize) -> Self {
        let empty = Submission {
            packet: Packet::of_no_type(),
            index: 0,
            doorbell: 0,
            reserve_ns: 0,
            time_ns: 0,
            direct: false,
        };
        let tally = Tally {
            submit_ns: set_aside(expected / notes.time_every.max(1) as usize + 1, 0),
            log: set_aside(if notes.log { expected } else { 0 }, empty),
            ..Tally::default()
        };
        Self {
            queue,
            timeout,
            notes,
            untimed: 0,
            read: 0,
            bypass: Bypass::default(),
            pace: Duration::ZERO,
            tally,
        }
    }

    /// Makes the producer wait before each submission.
    pub fn pace(&mut self, pace: Duration) {
        self.pace = pace;
    }

    /// Makes the producer reserve indexes without the runtime from now on.
    pub fn reserve_directly(&mut self, direct: Direct<'q>) {
        self.bypass.reserve = Some(direct);
    }

    /// Makes the producer ring the doorbell without the runtime from now on.
    pub fn ring_directly(&mut self, direct: Direct<'q>) {
        self.bypass.ring = Some(direct);
    }

    /// Submits `packets` under one reservation and one doorbell. Returns the index of the first.
    ///
    /// # Errors
    /// Fails if there is no packet, or more than the ring holds; or if the queue was destroyed, has stopped, or stays full for
    /// longer than the timeout.
    pub fn submit(&mut self, packets: &[Packet]) -> Result<u64> {
        let count = packets.len() as u64;
        if count == 0 || count > u64::from(self.queue.size()) {
            return Err(Error::Unexpected(format!(
                "{count} packets at once do not suit {}",
                self.queue
            )));
        }
        if !self.pace.is_zero() {
            thread::sleep(self.pace);
        }
        let timed = self.notes.log || self.untimed == 0;
        let reserve_ns = if timed { clock::now() } else { 0 };
        let first = match &self.bypass.reserve {
            Some(direct) => direct.reserve(count),
            None => self.queue.reserve(count)?,
        };
        self.wait_for_room(first + count)?;
        let last = first + count - 1;
        // SAFETY: the reservation has shown that the queue is alive, and the queue cannot be destroyed while it is borrowed; there
        // is room. Workloads create the objects that their packets refer to before the queue, so that these outlive it.
        unsafe {
            self.queue.write(first, packets);
            match &self.bypass.ring {
                Some(direct) => direct.ring(last),
                None => self.queue.ring(last),
            }
        }
        let time_ns = if timed { clock::now() } else { 0 };
        self.note(packets, first, last, timed.then_some((reserve_ns, time_ns)));
        Ok(first)
    }

    /// Returns the totals.
    #[must_use]
    pub fn finish(self) -> Tally {
        self.tally
    }

    /// Waits until all indexes below `end` are free or reserved by the caller.
    fn wait_for_room(&mut self, end: u64) -> Result<()> {
        let size = u64::from(self.queue.size());
        if end - self.read <= size {
            return Ok(());
        }
        self.read = self.queue.read_index()?;
        if end - self.read <= size {
            return Ok(());
        }
        self.tally.full += 1;
        let deadline = Deadline::after(self.timeout);
        let mut polls = 0_u32;
        loop {
            self.read = self.queue.read_index()?;
            if end - self.read <= size {
                return Ok(());
            }
            polls = polls.saturating_add(1);
            if polls < EAGER_POLLS {
                std::hint::spin_loop();
                continue;
            }
            self.queue.check()?;
            if deadline.passed() {
                return Err(Error::Timeout {
                    what: format!("room for packet {}", end - 1),
                    seconds: self.timeout.as_secs(),
                    state: self.queue.to_string(),
                });
            }
            std::thread::yield_now();
        }
    }

    fn note(&mut self, packets: &[Packet], first: u64, last: u64, times: Option<(u64, u64)>) {
        let tally = &mut self.tally;
        let direct = self.bypass.ring.is_some();
        tally.doorbells += 1;
        tally.direct += u64::from(direct);
        tally.indexes = Some((tally.indexes.map_or(first, |(lowest, _)| lowest), last));
        for packet in packets {
            match packet.kind() {
                Kind::Dispatch | Kind::ExtDispatch => tally.dispatches += 1,
                Kind::BarrierAnd | Kind::BarrierOr | Kind::BarrierValue => tally.barriers += 1,
                Kind::Other => tally.others += 1,
            }
        }
        if self.untimed == 0 {
            if let Some((reserve_ns, time_ns)) = times {
                tally.submit_ns.push(time_ns - reserve_ns);
            }
            self.untimed = self.notes.time_every;
        }
        self.untimed = self.untimed.saturating_sub(1);
        if self.notes.log
            && let Some((reserve_ns, time_ns)) = times
        {
            for (index, &packet) in (first..).zip(packets) {
                tally.log.push(Submission {
                    packet,
                    index,
                    doorbell: last,
                    reserve_ns,
                    time_ns,
                    direct,
                });
            }
        }
    }
}

/// Returns an empty vector for `len` elements in memory that has been touched, so that filling it causes no page fault.
fn set_aside<T: Clone>(len: usize, filler: T) -> Vec<T> {
    let mut room = vec![filler; len];
    room.clear();
    room
}
