//! The buffers of all processors, and their records in the order of their times.

use std::{io, thread};

use rustix::thread::{CpuSet, sched_setaffinity};
use tracer_core::event::Origin;

use super::{
    event,
    record::{PerfRecord, parse},
    ring::Ring,
};
use crate::sys;

/// The smallest buffer of a processor that is tried, bytes. Processes without CAP_IPC_LOCK may lock this much for each processor
/// (`kernel.perf_event_mlock_kb`).
const LEAST: usize = 512 << 10;

/// A record that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time_ns: u64,
    ring: usize,
    position: u64,
}

/// The buffers.
#[derive(Default)]
pub struct Buffers {
    /// One per processor.
    pub rings: Vec<Ring>,
    /// Positions up to which each has whole records.
    heads: Vec<u64>,
    /// Positions up to which the records of this pass reach.
    ends: Vec<u64>,
    waiting: Vec<Waiting>,
    /// A record that crosses the end of its buffer.
    scratch: Vec<u8>,
    /// Records that are not understood, or that cannot be found.
    pub undecoded: u64,
}

impl Buffers {
    /// Maps one buffer per processor, all of the same size: of `bytes` together, or as much as this process may lock.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn open(processors: &[u32], bytes: usize) -> io::Result<Self> {
        let share = bytes / processors.len().max(1);
        let mut size = share.next_power_of_two().max(LEAST);
        loop {
            let open = |&processor: &u32| {
                let event = event::open(&event::side_band(), processor)?;
                Ring::new(event, size)
            };
            match processors.iter().map(open).collect::<io::Result<Vec<Ring>>>() {
                Err(error) if size > LEAST && error.raw_os_error() == Some(libc::EPERM) => size /= 2,
                opened => {
                    let rings = opened?;
                    rings.iter().try_for_each(|ring| event::enable(&ring.event))?;
                    return Ok(Self {
                        rings,
                        ..Self::default()
                    });
                }
            }
        }
    }

    /// Looks how far each buffer is written.
    pub fn look(&mut self) {
        self.heads.clear();
        self.heads.extend(self.rings.iter().map(Ring::head));
    }

    /// Lists the records that were there at the last look, up to a moment, in the order of their times. A later record ends the list
    /// of its buffer: it is for the next pass.
    pub fn list(&mut self, until_ns: u64) {
        self.ends.clear();
        self.waiting.clear();
        for (at, (ring, &head)) in self.rings.iter().zip(&self.heads).enumerate() {
            let mut position = ring.tail();
            while position < head {
                let Some(bytes) = ring.record(position, head, &mut self.scratch) else {
                    // What follows cannot be found any more.
                    self.undecoded += 1;
                    position = head;
                    break;
                };
                let length = bytes.len() as u64;
                match parse(bytes) {
                    Some((origin, _)) if origin.time_ns > until_ns => break,
                    Some((origin, _)) => self.waiting.push(Waiting {
                        time_ns: origin.time_ns,
                        ring: at,
                        position,
                    }),
                    None => self.undecoded += 1,
                }
                position += length;
            }
            self.ends.push(position);
        }
        self.waiting.sort_by_key(|waiting| waiting.time_ns);
    }

    /// Passes on the records of the list.
    pub fn each(&mut self, mut take: impl FnMut(Origin, PerfRecord<'_>)) {
        for waiting in &self.waiting {
            let (ring, head) = (&self.rings[waiting.ring], self.heads[waiting.ring]);
            let bytes = ring.record(waiting.position, head, &mut self.scratch);
            if let Some((origin, record)) = bytes.and_then(parse) {
                take(origin, record);
            }
        }
    }

    /// Gives the room of the list's records back to the kernel.
    pub fn release(&mut self) {
        for (ring, &end) in self.rings.iter_mut().zip(&self.ends) {
            ring.read_to(end);
        }
    }
}

/// Makes the kernel write the counts of lost records. It does so before the next record of a processor, and this makes one on each:
/// a thread renames itself there.
pub fn write_losses() {
    let Ok(processors) = sys::online_processors() else {
        return;
    };
    let renames = thread::Builder::new().name("losses".into()).spawn(move || {
        for processor in processors {
            let mut only = CpuSet::new();
            only.set(processor as usize);
            // If this process may not use the processor, the counts come with the next record there.
            if sched_setaffinity(None, &only).is_ok() {
                rename();
            }
        }
    });
    if let Ok(renames) = renames {
        let _ = renames.join();
    }
}

fn rename() {
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"losses".as_ptr()) };
}
