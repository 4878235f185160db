//! The packet processor of SDMA queues: a ring of packets of different lengths. Doorbell and pointers count bytes.

pub mod packet;
mod rect;

use std::sync::atomic::Ordering;

use self::packet::{MAX_DWORDS, Sdma};
use self::rect::{Rect, RectForm, Window};
use crate::clock::{gpu_ticks, monotonic_ns};
use crate::ioctl::abi::CreateQueue;
use crate::queue::engine::{Engine, Halt};
use crate::queue::error::{Exception, QueueError};
use crate::queue::{Processor, Progress};
use crate::truth::Seen;
use crate::vm::{AddressSpace, Fault};
use crate::waits::poll_passes;

/// The state of one SDMA queue.
pub struct SdmaProcessor {
    read: u64,
    limit: u64,
    logged: Option<u64>,
    read_pointer: u64,
}

impl SdmaProcessor {
    /// Returns a processor at the start of the ring.
    pub fn new(args: &CreateQueue) -> Self {
        Self {
            read: 0,
            limit: 0,
            logged: None,
            read_pointer: args.read_pointer_address,
        }
    }

    /// Returns the dwords at the read offset, with zeros beyond what was submitted.
    fn fetch(&self, space: &AddressSpace, base: u64, size: u64) -> Result<[u32; MAX_DWORDS], Fault> {
        let mut bytes = [0; MAX_DWORDS * 4];
        let want = (self.limit - self.read).min(bytes.len() as u64) & !3;
        let at = self.read % size;
        let first = want.min(size - at) as usize;
        space.read(base.wrapping_add(at), &mut bytes[..first])?;
        if first < want as usize {
            space.read(base, &mut bytes[first..want as usize])?;
        }
        let words = bytes.as_chunks::<4>().0;
        Ok(std::array::from_fn(|i| u32::from_le_bytes(words[i])))
    }
}

fn execute(engine: &mut Engine, packet: Sdma) -> Result<(), Halt> {
    let space = &engine.process.space;
    match packet {
        Sdma::Nop | Sdma::HdpFlush | Sdma::Gcr => {}
        Sdma::Copy { src, dst, bytes } => space.copy(dst, src, bytes)?,
        Sdma::CopyRect(Rect {
            src,
            dst,
            x,
            y,
            z,
            element,
        }) => {
            for slice in 0..z {
                for line in 0..y {
                    let at = |window: &Window| {
                        let [ox, oy, oz] = window.offset;
                        let elements = ox + (oy + line) * window.pitch + (oz + slice) * window.slice;
                        window.base.wrapping_add(elements * element)
                    };
                    space.copy(at(&dst), at(&src), x * element)?;
                }
            }
        }
        Sdma::Fence { dst, data } => space.write(dst, &data.to_le_bytes())?,
        Sdma::Trap { context } => engine.process.events.interrupt(space, context),
        Sdma::Poll {
            src,
            function,
            reference,
            mask,
        } => {
            engine.wait_until(|process| {
                Ok(poll_passes(
                    function,
                    process.space.read_u32(src)? & mask,
                    reference & mask,
                ))
            })?;
        }
        Sdma::AtomicAdd64 { dst, operand } => {
            space.add_u64(dst, operand)?;
        }
        Sdma::Fill { dst, value, bytes } => space.fill_u32(dst, value, bytes / 4)?,
        Sdma::Timestamp { dst } => space.write(dst, &gpu_ticks().to_le_bytes())?,
    }
    Ok(())
}

impl Processor for SdmaProcessor {
    fn step(&mut self, engine: &mut Engine) -> Result<Progress, Halt> {
        self.limit = self.limit.max(engine.rung);
        let base = engine.control.ring_base.load(Ordering::SeqCst);
        let size = engine.control.ring_size.load(Ordering::SeqCst);
        if self.read >= self.limit || size < 4 {
            return Ok(Progress::Idle);
        }
        if self.limit - self.read > size || !self.limit.is_multiple_of(4) {
            let reason = format!(
                "write offset {:#x} with {:#x} bytes read of a ring of {size:#x}",
                self.limit, self.read
            );
            return Err(QueueError::new(Exception::PacketUnsupported, reason).into());
        }
        let rect = RectForm::of(engine.machine.asic.gfx_major());
        while self.read < self.limit {
            engine.observe();
            let dwords = self.fetch(&engine.process.space, base, size)?;
            let decoded = Sdma::decode(&dwords, rect).filter(|(_, len)| *len as u64 * 4 <= self.limit - self.read);
            let Some((packet, len)) = decoded else {
                let reason = format!("copy engine packet {dwords:x?} at offset {:#x}", self.read);
                return Err(QueueError::new(Exception::PacketUnsupported, reason).into());
            };
            if self.logged != Some(self.read) {
                self.logged = Some(self.read);
                let (src, dst, bytes) = packet.operands();
                let (op, offset, time_ns) = (packet.name(), self.read, monotonic_ns());
                engine.machine.truth.counts.sdma.fetch_add(1, Ordering::Relaxed);
                engine.log(|| Seen::Sdma {
                    time_ns,
                    op,
                    src,
                    dst,
                    bytes,
                    offset,
                });
            }
            execute(engine, packet)?;
            self.read += len as u64 * 4;
            engine
                .process
                .space
                .write(self.read_pointer, &self.read.to_le_bytes())?;
        }
        Ok(Progress::Worked)
    }

    fn position(&self) -> u64 {
        self.read
    }
}
