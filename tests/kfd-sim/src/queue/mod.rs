//! User queues. Each has one thread, which runs the packet processor of the queue's type.

pub mod bell;
pub mod engine;
pub mod error;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use self::bell::Bell;
use self::engine::{Control, Engine, Halt, Pause};
use crate::aql::AqlProcessor;
use crate::clock::use_precise_naps;
use crate::ioctl::abi::CreateQueue;
use crate::machine::Machine;
use crate::pm4::Pm4Processor;
use crate::process::Process;
use crate::sdma::SdmaProcessor;

/// `KFD_IOC_QUEUE_TYPE_*`.
pub mod kind {
    pub const COMPUTE: u32 = 0;
    pub const SDMA: u32 = 1;
    pub const COMPUTE_AQL: u32 = 2;
    pub const SDMA_XGMI: u32 = 3;
    pub const SDMA_BY_ENG_ID: u32 = 4;
}

/// The progress of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It processed packets. The caller should call it again at once.
    Worked,
    /// A packet was announced but is not written yet. The caller should call it again soon.
    Stalled,
    /// There is nothing to do until the doorbell changes.
    Idle,
}

/// A packet processor. It is called repeatedly, and keeps its position in the ring.
pub trait Processor: Send {
    /// Processes the packets that are ready.
    fn step(&mut self, engine: &mut Engine) -> Result<Progress, Halt>;
    /// Returns its position: the packet index, or the offset in bytes.
    fn position(&self) -> u64;
    /// Takes packets that were announced by a doorbell value that another one overwrote before it was seen. Called when the queue
    /// has been idle for a while since its doorbell last changed, and again while it finds packets.
    fn look_again(&mut self, _engine: &Engine) -> Result<bool, Halt> {
        Ok(false)
    }
}

/// How long a queue is idle before it checks again. This is longer than a thread is likely to be interrupted between its packet's
/// header and its doorbell.
const REST: Duration = Duration::from_millis(100);

/// A user queue with its thread.
pub struct Queue {
    /// The arguments it was created with, with the results filled in.
    pub args: CreateQueue,
    control: Arc<Control>,
    bell: Arc<Bell>,
    machine: Arc<Machine>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    /// Starts a queue. `args` is complete, with the queue id and the doorbell's place in its file.
    pub fn start(
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        args: CreateQueue,
        doorbell: u64,
    ) -> std::io::Result<Self> {
        let is_aql = args.queue_type == kind::COMPUTE_AQL;
        // Index 0 must be visible as a change of an AQL doorbell. The others' doorbell is a write offset that starts at 0.
        let initial = if is_aql { u64::MAX } else { 0 };
        let bell = Arc::new(Bell::new(machine.doorbells.file(), doorbell, initial));
        let control = Arc::new(Control::default());
        let mut queue = Self {
            args,
            control,
            bell,
            machine: Arc::clone(machine),
            thread: None,
        };
        queue.update(args.ring_base_address, args.ring_size, args.queue_percentage);
        let processor: Option<Box<dyn Processor>> = match args.queue_type {
            kind::COMPUTE_AQL => Some(Box::new(AqlProcessor::new(&args))),
            kind::SDMA | kind::SDMA_XGMI | kind::SDMA_BY_ENG_ID => Some(Box::new(SdmaProcessor::new(&args))),
            kind::COMPUTE => Some(Box::new(Pm4Processor::new(&args))),
            _ => None,
        };
        let engine = Engine::new(
            Arc::clone(machine),
            Arc::clone(process),
            args.queue_id,
            Arc::clone(&queue.control),
            Arc::clone(&queue.bell),
        );
        let name = format!("queue {}.{}", process.pid, args.queue_id);
        queue.thread = Some(
            std::thread::Builder::new()
                .name(name)
                .spawn(move || run(engine, processor, &args))?,
        );
        machine.bells.add(&queue.bell);
        Ok(queue)
    }

    /// Changes the ring and the share of the device. A queue that loses them is at rest when this returns.
    pub fn update(&mut self, ring_base: u64, ring_size: u32, percentage: u32) {
        self.control.active.store(false, Ordering::SeqCst);
        self.bell.wake();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && !self.control.at_rest.load(Ordering::SeqCst)
        {
            std::thread::yield_now();
        }
        self.control.ring_base.store(ring_base, Ordering::SeqCst);
        self.control.ring_size.store(u64::from(ring_size), Ordering::SeqCst);
        let active = ring_base != 0 && ring_size != 0 && percentage != 0;
        self.control.active.store(active, Ordering::SeqCst);
        self.bell.wake();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.machine.bells.remove(&self.bell);
        self.control.stop.store(true, Ordering::SeqCst);
        self.bell.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error!("the thread of queue {} panicked", self.args.queue_id);
        }
    }
}

fn run(mut engine: Engine, mut processor: Option<Box<dyn Processor>>, args: &CreateQueue) {
    use_precise_naps();
    let control = Arc::clone(&engine.control);
    let mut pause = Pause::default();
    // Whether a doorbell change was seen after which the queue has not checked again.
    let mut unsure = false;
    while !control.stop.load(Ordering::SeqCst) {
        if engine.observe() {
            pause.reset();
            unsure = true;
        }
        control.at_rest.store(false, Ordering::SeqCst);
        let progress = match &mut processor {
            Some(processor) if control.active.load(Ordering::SeqCst) => processor.step(&mut engine),
            _ => Ok(Progress::Idle),
        };
        control.at_rest.store(true, Ordering::SeqCst);
        match progress {
            Ok(Progress::Worked) => pause.reset(),
            Ok(Progress::Stalled) => {
                if pause.wait() {
                    engine.flush_log();
                }
            }
            Ok(Progress::Idle) if !pause.is_long() => std::hint::spin_loop(),
            Ok(Progress::Idle) => {
                engine.flush_log();
                let undisturbed = engine.bell.sleep(unsure.then_some(REST));
                if undisturbed && unsure && !control.stop.load(Ordering::SeqCst) {
                    unsure = false;
                    control.at_rest.store(false, Ordering::SeqCst);
                    let active = control.active.load(Ordering::SeqCst);
                    // If the processor cannot read a packet now, it cannot read it when its doorbell rings either.
                    let looked = processor
                        .as_mut()
                        .filter(|_| active)
                        .map(|processor| processor.look_again(&engine));
                    match looked {
                        // It examines a limited number of packets at a time, so there may be more.
                        Some(Ok(found)) => unsure = found,
                        Some(Err(_)) => log::debug!("queue {}: nothing to look at", args.queue_id),
                        None => {}
                    }
                    control.at_rest.store(true, Ordering::SeqCst);
                }
            }
            Err(Halt::Preempted) => engine.flush_log(),
            Err(Halt::Error(error)) => {
                engine.flush_log();
                let at = processor.take().map_or(0, |processor| processor.position());
                // A client that is being torn down faults at any address. That is not an error of the queue.
                if !control.stop.load(Ordering::SeqCst) && engine.process.is_alive() {
                    error::raise(&engine.machine.truth, &engine.process, args, at, &error);
                }
            }
        }
    }
    engine.observe();
    engine.flush_log();
}
