//! The packet processor of PM4 queues. Doorbell and pointers count words; the read pointer counts within the ring.

use std::sync::atomic::Ordering;

use super::{Executor, Frame};
use crate::ioctl::abi::CreateQueue;
use crate::queue::engine::{Engine, Halt};
use crate::queue::error::{Exception, QueueError};
use crate::queue::{Processor, Progress};

/// Bytes of a word.
const WORD: u64 = 4;

/// The state of one PM4 queue.
pub struct Pm4Processor {
    executor: Executor,
    read_pointer: u64,
}

impl Pm4Processor {
    /// Returns a processor at the start of the ring.
    pub fn new(args: &CreateQueue) -> Self {
        let mut executor = Executor::default();
        executor.frames.push(Frame {
            base: args.ring_base_address,
            ring: Some(1),
            at: 0,
            end: 0,
            logged: None,
        });
        Self {
            executor,
            read_pointer: args.read_pointer_address,
        }
    }
}

impl Processor for Pm4Processor {
    fn step(&mut self, engine: &mut Engine) -> Result<Progress, Halt> {
        let words = engine.control.ring_size.load(Ordering::SeqCst) / WORD;
        let ring = &mut self.executor.frames[0];
        ring.end = ring.end.max(engine.rung);
        ring.base = engine.control.ring_base.load(Ordering::SeqCst);
        ring.ring = Some(words.max(1));
        let (at, end) = (ring.at, ring.end);
        // Within a buffer if the queue was preempted there.
        let inside = self.executor.frames.len() > 1;
        if words == 0 || at >= end && !inside {
            return Ok(Progress::Idle);
        }
        if end - at > words {
            let reason = format!("write index {end} with {at} words read of a ring of {words}");
            return Err(QueueError::new(Exception::PacketUnsupported, reason).into());
        }
        loop {
            // The packets of a buffer belong to the packet that refers to it.
            self.executor.run(engine, 1)?;
            let read = (self.executor.frames[0].at % words) as u32;
            engine.process.space.write(self.read_pointer, &read.to_le_bytes())?;
            if self.executor.frames[0].at >= self.executor.frames[0].end {
                break;
            }
            self.executor.step(engine)?;
        }
        Ok(Progress::Worked)
    }

    fn position(&self) -> u64 {
        self.executor.frames[0].at
    }
}
