//! PM4 packets: those of compute queues that are not AQL queues, and those that an AQL packet refers to.

pub mod packet;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;
use std::time::Instant;

use self::packet::{Pm4, Store, sh};
pub use self::queue::Pm4Processor;
use crate::clock::{gpu_ticks, monotonic_ns};
use crate::queue::engine::{Engine, Halt};
use crate::queue::error::{Exception, QueueError};
use crate::truth::Seen;
use crate::vm::Fault;
use crate::waits::poll_passes;

/// The most buffers that are run within each other. Hardware allows two.
const DEPTH: usize = 4;

/// Words of commands: a ring, or a buffer elsewhere.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The address of the first word.
    base: u64,
    /// The number of words after which a ring begins again; `None` for a buffer.
    ring: Option<u64>,
    /// The position of the next packet, in words.
    at: u64,
    /// The end of what was submitted, in words.
    end: u64,
    /// The position of the last packet that was logged. A packet that was preempted is taken again.
    logged: Option<u64>,
}

/// The state of the processor: registers, and the commands that it runs.
pub struct Executor {
    registers: Box<[u32]>,
    frames: Vec<Frame>,
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            registers: vec![0; sh::END as usize].into(),
            frames: Vec::new(),
        }
    }
}

impl Executor {
    /// Runs a buffer of commands to its end. One that was preempted continues where it stopped, if it is called with it again.
    pub fn run_buffer(&mut self, engine: &mut Engine, address: u64, words: u32) -> Result<(), Halt> {
        if self.frames.is_empty() {
            self.push(address, words)?;
        }
        self.run(engine, 0)
    }

    fn push(&mut self, base: u64, words: u32) -> Result<(), QueueError> {
        if self.frames.len() == DEPTH {
            let reason = format!("buffers of commands within each other, the last at {base:#x}");
            return Err(QueueError::new(Exception::PacketUnsupported, reason));
        }
        self.frames.push(Frame {
            base,
            ring: None,
            at: 0,
            end: words.into(),
            logged: None,
        });
        Ok(())
    }

    /// Runs until only `left` frames are left.
    fn run(&mut self, engine: &mut Engine, left: usize) -> Result<(), Halt> {
        while self.frames.len() > left {
            self.step(engine)?;
        }
        Ok(())
    }

    /// Runs the next packet of the innermost frame, or leaves the frame at its end.
    fn step(&mut self, engine: &mut Engine) -> Result<(), Halt> {
        let Some(&frame) = self.frames.last() else {
            return Ok(());
        };
        if frame.at >= frame.end {
            self.frames.pop();
            return Ok(());
        }
        engine.observe();
        let words = fetch(engine, &frame)?;
        let packet = Pm4::decode(&words, engine.machine.asic.gfx_major());
        if frame.logged != Some(frame.at) {
            self.log(engine, &frame, packet.as_ref());
            if let Some(frame) = self.frames.last_mut() {
                frame.logged = Some(frame.at);
            }
        }
        let inner = match packet {
            Some(packet) => self.execute(engine, packet)?,
            None => Next::Continue,
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.at += words.len() as u64;
            if let Next::Skip(words) = inner {
                frame.at = frame.end.min(frame.at + words);
            }
        }
        if let Next::Run { address, words } = inner {
            self.push(address, words)?;
        }
        Ok(())
    }

    fn log(&self, engine: &mut Engine, frame: &Frame, packet: Option<&Pm4>) {
        let buffer = if frame.ring.is_some() { 0 } else { frame.base };
        let (time_ns, offset) = (monotonic_ns(), frame.at);
        let counts = &engine.machine.truth.counts;
        counts.pm4.fetch_add(1, Ordering::Relaxed);
        let dispatch = match packet {
            Some(Pm4::DispatchDirect { groups }) => {
                counts.pm4_dispatches.fetch_add(1, Ordering::Relaxed);
                Some((self.program(), *groups, self.threads()))
            }
            _ => None,
        };
        engine.log(|| Seen::Pm4 {
            time_ns,
            op: packet.map_or("unknown", Pm4::name),
            address: packet.map_or(0, Pm4::address),
            offset,
            buffer,
            dispatch,
        });
    }

    fn register(&self, at: u32) -> u32 {
        self.registers.get(at as usize).copied().unwrap_or(0)
    }

    /// Returns the address of the code that a dispatch would run.
    fn program(&self) -> u64 {
        (u64::from(self.register(sh::PGM_LO)) | u64::from(self.register(sh::PGM_LO + 1)) << 32) << 8
    }

    /// Returns the threads of a work-group of a dispatch.
    fn threads(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.register(sh::NUM_THREAD_X + i as u32) & 0xffff)
    }

    fn execute(&mut self, engine: &mut Engine, packet: Pm4) -> Result<Next, Halt> {
        let space = &engine.process.space;
        match packet {
            Pm4::Nop | Pm4::SetUconfigReg | Pm4::WaitReg | Pm4::AcquireMem | Pm4::EventWrite => {}
            Pm4::SetShReg { first, values } => {
                for (register, value) in self.registers.iter_mut().skip(first as usize).zip(values) {
                    *register = value;
                }
            }
            Pm4::DispatchDirect { .. } => {
                let end = Instant::now() + engine.machine.dispatch_time;
                engine.be_busy_until(end);
            }
            Pm4::ReleaseMem {
                address,
                store,
                interrupt,
            } => {
                match store {
                    Store::None => {}
                    Store::Low(value) => space.write(address, &value.to_le_bytes())?,
                    Store::Both(value) => space.write(address, &value.to_le_bytes())?,
                    Store::Clock => space.write(address, &gpu_ticks().to_le_bytes())?,
                }
                if let Some(event) = interrupt {
                    engine.process.events.interrupt(space, event);
                }
            }
            Pm4::WriteData {
                address,
                values,
                to_memory: true,
            } => {
                for (at, value) in values.iter().enumerate() {
                    space.write(address.wrapping_add(at as u64 * 4), &value.to_le_bytes())?;
                }
            }
            Pm4::WriteData { to_memory: false, .. } => {}
            Pm4::WaitMem {
                address,
                function,
                reference,
                mask,
            } => engine.wait_until(|process| {
                Ok(poll_passes(
                    function,
                    process.space.read_u32(address)? & mask,
                    reference & mask,
                ))
            })?,
            Pm4::IndirectBuffer { address, words } => return Ok(Next::Run { address, words }),
            // The first die does the work of all.
            Pm4::PredExec { dies, words } if dies & 1 == 0 => return Ok(Next::Skip(words.into())),
            Pm4::PredExec { .. } => {}
            // Registers and counters read as zero.
            Pm4::CopyData { address, wide } => space.write(address, &[0; 8][..if wide { 8 } else { 4 }])?,
        }
        Ok(Next::Continue)
    }
}

/// What follows a packet.
enum Next {
    /// The packet after it.
    Continue,
    /// The packet after so many words.
    Skip(u64),
    /// A buffer, and then the packet after it.
    Run { address: u64, words: u32 },
}

/// Reads the packet at the frame's position.
fn fetch(engine: &Engine, frame: &Frame) -> Result<Vec<u32>, Halt> {
    let read = |at: u64| -> Result<u32, Fault> {
        let at = frame.ring.map_or(at, |words| at % words);
        engine.process.space.read_u32(frame.base.wrapping_add(at * 4))
    };
    let header = read(frame.at)?;
    let refused = |what: &str| {
        let reason = format!("{what}: {header:#x} at word {} of {:#x}", frame.at, frame.base);
        QueueError::new(Exception::PacketUnsupported, reason)
    };
    let words = packet::length(header).ok_or_else(|| refused("no PM4 packet"))?;
    if u64::from(words) > frame.end - frame.at {
        return Err(refused("a PM4 packet beyond what was submitted").into());
    }
    let rest = (1..u64::from(words)).map(|word| read(frame.at + word));
    let packet = std::iter::once(Ok(header)).chain(rest).collect::<Result<_, _>>()?;
    Ok(packet)
}
