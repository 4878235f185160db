//! The packet processor of AQL queues.
//!
//! The processor handles packets strictly in order, and completes each before it begins the next. That satisfies the barrier bit
//! and the fence scopes of any packet: memory is coherent here, so acquire and release have nothing to do.

pub mod packet;
mod validate;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::packet::{INVALID_HEADER, KernelDispatch, PACKET_BYTES, Packet, RawPacket, is_filled};
use self::validate::validate;
use crate::blit::Blit;
use crate::clock::{GPU_TICK_NS, gpu_ticks, monotonic_ns};
use crate::hip_blit::HipBlit;
use crate::ioctl::abi::CreateQueue;
use crate::kernels::Recognised;
use crate::loaded;
use crate::pm4::Executor;
use crate::queue::engine::{Engine, Halt};
use crate::queue::error::{Exception, QueueError};
use crate::queue::{Processor, Progress};
use crate::signal;
use crate::truth::Seen;
use crate::vm::{Fault, WriteBatch};

/// The distance from the write index of an `amd_queue_t` to its properties, and the bit that enables packet timestamps:
/// `amd_hsa_queue.h`.
const PROPERTIES: u64 = 0xb4 - 0x38;
const ENABLE_PROFILING: u32 = 1 << 3;

/// The number of packets fetched at a time.
const FETCH: u64 = 64;

/// The state of one AQL queue.
pub struct AqlProcessor {
    /// The index of the next packet.
    read: u64,
    /// One more than the highest index that a doorbell announced.
    limit: u64,
    /// The index of the last packet that was logged. The processor takes a preempted packet again.
    logged: Option<u64>,
    read_pointer: u64,
    write_pointer: u64,
    /// The PM4 commands that packets refer to.
    commands: Executor,
    /// Slots to mark invalid, and the read pointer. They are not written yet.
    retired: WriteBatch,
    /// Buffer for the writes of one completion.
    scratch: WriteBatch,
}

impl AqlProcessor {
    /// Returns a processor at the start of the ring.
    pub fn new(args: &CreateQueue) -> Self {
        Self {
            read: 0,
            limit: 0,
            logged: None,
            read_pointer: args.read_pointer_address,
            write_pointer: args.write_pointer_address,
            commands: Executor::default(),
            retired: WriteBatch::default(),
            scratch: WriteBatch::default(),
        }
    }

    fn take_doorbell(&mut self, engine: &Engine) {
        if let Some(highest) = engine.highest {
            self.limit = self.limit.max(highest.saturating_add(1));
        }
    }

    /// Reads the filled slots from the read index on.
    ///
    /// The slots are read twice. A producer may fill a slot while the first read passes over it; the bytes after its header may
    /// then be older than the header. Slots whose header was valid in the first read are complete in the second.
    fn fetch(&self, engine: &Engine, base: u64, slots: u64) -> Result<Vec<RawPacket>, Fault> {
        let slot = self.read % slots;
        let count = (self.limit - self.read).min(slots - slot).min(FETCH) as usize;
        let at = base.checked_add(slot * PACKET_BYTES).ok_or(Fault(base))?;
        let mut bytes = vec![0; count * PACKET_BYTES as usize];
        engine.process.space.read(at, &mut bytes)?;
        let filled = bytes
            .as_chunks()
            .0
            .iter()
            .take_while(|packet| is_filled(packet))
            .count();
        bytes.truncate(filled * PACKET_BYTES as usize);
        if filled > 0 {
            engine.process.space.read(at, &mut bytes)?;
        }
        Ok(bytes.as_chunks().0.to_vec())
    }

    /// Marks the packet's slot free. The next flush writes it.
    fn retire(&mut self, base: u64, slots: u64) {
        let slot = base + self.read % slots * PACKET_BYTES;
        self.retired.push(slot, &INVALID_HEADER.to_le_bytes());
        self.read += 1;
    }

    fn flush(&mut self, engine: &Engine) -> Result<(), Fault> {
        if self.retired.is_empty() {
            return Ok(());
        }
        self.retired.push(self.read_pointer, &self.read.to_le_bytes());
        engine.process.space.submit(&mut self.retired)
    }

    /// Returns whether packets are timed. The runtime may change this at any time.
    fn is_profiled(&self, engine: &Engine) -> Result<bool, Fault> {
        let mut properties = [0; 4];
        let at = self
            .write_pointer
            .checked_add(PROPERTIES)
            .ok_or(Fault(self.write_pointer))?;
        engine.process.space.read(at, &mut properties)?;
        Ok(u32::from_le_bytes(properties) & ENABLE_PROFILING != 0)
    }

    /// Executes the packet, except its completion.
    fn execute(&mut self, engine: &mut Engine, packet: &Packet) -> Result<(), Halt> {
        match packet {
            Packet::KernelDispatch(dispatch) => self.dispatch(engine, dispatch),
            Packet::ExtKernelDispatch { dispatch, dependency } => {
                if *dependency != 0 {
                    self.flush(engine)?;
                    engine.wait_until(|process| Ok(signal::value(&process.space, *dependency)? == 0))?;
                }
                self.dispatch(engine, dispatch)
            }
            Packet::BarrierAnd(barrier) => {
                self.flush(engine)?;
                for dependency in barrier.dependencies.into_iter().filter(|&signal| signal != 0) {
                    engine.wait_until(|process| Ok(signal::value(&process.space, dependency)? == 0))?;
                }
                Ok(())
            }
            Packet::BarrierOr(barrier) => {
                self.flush(engine)?;
                let signals: Vec<_> = barrier.dependencies.into_iter().filter(|&signal| signal != 0).collect();
                if signals.is_empty() {
                    return Ok(());
                }
                engine.wait_until(|process| {
                    for &signal in &signals {
                        if signal::value(&process.space, signal)? == 0 {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                })
            }
            Packet::BarrierValue(barrier) => {
                if barrier.passes(0).is_none() {
                    let reason = format!("barrier-value packet with condition {}", barrier.condition);
                    return Err(QueueError::new(Exception::VendorUnsupported, reason).into());
                }
                self.flush(engine)?;
                if barrier.signal == 0 {
                    return Ok(());
                }
                engine.wait_until(|process| {
                    Ok(barrier.passes(signal::value(&process.space, barrier.signal)?) == Some(true))
                })
            }
            Packet::AgentDispatch { .. } => Ok(()),
            Packet::Pm4Ib { address, words, .. } => {
                self.flush(engine)?;
                self.commands.run_buffer(engine, *address, *words)
            }
            Packet::UnknownVendor { format } => {
                let reason = format!("vendor packet of unknown format {format}");
                Err(QueueError::new(Exception::VendorUnsupported, reason).into())
            }
            Packet::Invalid | Packet::Unknown { .. } => {
                let reason = format!("packet of unknown kind {packet:?}");
                Err(QueueError::new(Exception::PacketUnsupported, reason).into())
            }
        }
    }

    fn dispatch(&mut self, engine: &mut Engine, dispatch: &KernelDispatch) -> Result<(), Halt> {
        validate(dispatch)?;
        let begin = Instant::now();
        let machine = Arc::clone(&engine.machine);
        let process = Arc::clone(&engine.process);
        let space = &process.space;
        machine.truth.counts.dispatches.fetch_add(1, Ordering::Relaxed);
        let kernel = machine
            .kernels
            .recognise(space, dispatch.kernel_object)
            .map_err(|Fault(va)| {
                QueueError::new(
                    Exception::DispatchCodeInvalid,
                    format!("the kernel's code at {va:#x} is not readable"),
                )
            })?;
        let mut busy = machine.dispatch_time;
        let blit = (kernel == Recognised::PerhapsBlit)
            .then(|| Blit::decode(space, dispatch))
            .flatten();
        match (kernel, blit) {
            (Recognised::Known(effect), _) => busy = busy.max(effect.run(space, dispatch)?),
            (_, Some(blit)) => {
                machine.truth.counts.blits.fetch_add(1, Ordering::Relaxed);
                blit.run(space)?;
            }
            _ if own_of_hip(engine, self.read, dispatch)? => {
                machine.truth.counts.blits.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                machine.truth.counts.unknown_kernels.fetch_add(1, Ordering::Relaxed);
                if dispatch.kernarg_address != 0 && space.direct(dispatch.kernarg_address, 1).is_none() {
                    space.read(dispatch.kernarg_address, &mut [0])?;
                }
            }
        }
        if busy > Duration::ZERO {
            self.flush(engine)?;
            engine.be_busy_until(begin + busy);
        }
        Ok(())
    }
}

/// Executes one of HIP's own kernels. Returns false if the kernel is not one that copies or fills. The kernel's name is logged in
/// any case, after the packet at this index.
fn own_of_hip(engine: &mut Engine, index: u64, dispatch: &KernelDispatch) -> Result<bool, Halt> {
    let process = Arc::clone(&engine.process);
    let space = &process.space;
    let kernel_object = dispatch.kernel_object;
    let Some(name) = loaded::kernel_name(space, kernel_object) else {
        return Ok(false);
    };
    let blit = HipBlit::decode(space, &name, dispatch.kernarg_address);
    engine.log(|| Seen::Kernel {
        time_ns: monotonic_ns(),
        index,
        kernel_object,
        name,
    });
    match blit {
        Some(blit) => blit.run(space).map(|()| true).map_err(Halt::from),
        None => Ok(false),
    }
}

impl Processor for AqlProcessor {
    fn step(&mut self, engine: &mut Engine) -> Result<Progress, Halt> {
        self.take_doorbell(engine);
        if self.read >= self.limit {
            return Ok(Progress::Idle);
        }
        let base = engine.control.ring_base.load(Ordering::SeqCst);
        let slots = engine.control.ring_size.load(Ordering::SeqCst) / PACKET_BYTES;
        if slots == 0 {
            return Ok(Progress::Idle);
        }
        let packets = self.fetch(engine, base, slots)?;
        let last = self.read + (packets.len() as u64).saturating_sub(1);
        for bytes in &packets {
            engine.observe();
            let index = self.read;
            let packet = Packet::decode(bytes);
            if self.logged != Some(index) {
                self.logged = Some(index);
                engine.machine.truth.counts.packets.fetch_add(1, Ordering::Relaxed);
                engine.log(|| Seen::Packet {
                    time_ns: monotonic_ns(),
                    index,
                    bytes: *bytes,
                });
            }
            let start = gpu_ticks();
            if let Err(halt) = self.execute(engine, &packet) {
                self.flush(engine)?;
                return Err(halt);
            }
            self.retire(base, slots);
            if let Some(completion) = packet.completion_signal().filter(|&signal| signal != 0) {
                let ended = gpu_ticks().max(start + 1000 / GPU_TICK_NS);
                let ticks = self.is_profiled(engine)?.then_some((start, ended));
                if ticks.is_some() {
                    engine.log(|| Seen::Timed {
                        time_ns: monotonic_ns(),
                        index,
                        start,
                        end: ended,
                    });
                }
                // Within a batch, slots are freed late, as the hardware does; but a lone packet's slot is free when its signal
                // completes.
                let before = if index == last {
                    &mut self.retired
                } else {
                    &mut self.scratch
                };
                if index == last {
                    before.push(self.read_pointer, &self.read.to_le_bytes());
                }
                let process = &engine.process;
                signal::complete(&process.space, &process.events, completion, ticks, before)?;
            }
        }
        self.flush(engine)?;
        Ok(if packets.is_empty() {
            Progress::Stalled
        } else {
            Progress::Worked
        })
    }

    fn position(&self) -> u64 {
        self.read
    }

    /// Of two producers, the one that reserved first may ring last, and then only its lower value is ever seen. The processor takes
    /// every packet that is reserved and filled by now, because a device would have received both values.
    fn look_again(&mut self, engine: &Engine) -> Result<bool, Halt> {
        let base = engine.control.ring_base.load(Ordering::SeqCst);
        let slots = engine.control.ring_size.load(Ordering::SeqCst) / PACKET_BYTES;
        if slots == 0 || self.read < self.limit {
            return Ok(false);
        }
        let rung = self.limit;
        self.limit = rung.max(engine.process.space.read_u64(self.write_pointer)?);
        // Takes only the packets that are filled now. The doorbells of the others are still to come.
        let filled = self.fetch(engine, base, slots);
        self.limit = rung.max(self.read + filled.as_ref().map_or(0, Vec::len) as u64);
        Ok(!filled?.is_empty())
    }
}
