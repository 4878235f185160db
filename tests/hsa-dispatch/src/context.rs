//! The context that every workload works with.

use std::sync::Arc;
use std::time::Duration;

use crate::cli::Options;
use crate::error::Result;
use crate::hsa::agent::Agents;
use crate::hsa::{Agent, DoorbellOp, Pools, Queue, QueueKind, Runtime, Signal};
use crate::kernels::{self, Kernels};
use crate::producer::{Notes, Producer};

/// The number of packets of a queue whose size does not matter to the workload.
pub const QUEUE_SIZE: u32 = 4096;

/// The runtime, one of its GPUs, the GPU's memory and the kernels loaded for it.
pub struct Context {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// The GPU.
    pub gpu: Agent,
    /// The memory of host and GPU.
    pub pools: Pools,
    /// The kernels.
    pub kernels: Kernels,
    /// The longest wait for anything.
    pub timeout: Duration,
    /// The shortest time between two submissions of a producer.
    pace: Duration,
    /// Whether the queues are profiled.
    pub profile: bool,
    doorbell_op: DoorbellOp,
    log: bool,
    /// Whether queues outlive their owners.
    keep_queues: bool,
}

impl Context {
    /// Starts the runtime and loads the kernels.
    ///
    /// # Errors
    /// Fails if the machine lacks the runtime, a GPU or kernels.
    pub fn open(options: &Options) -> Result<Self> {
        let runtime = Runtime::start(options.library.as_deref())?;
        let agents = Agents::choose(&runtime, options.agent)?;
        let directory = kernels::directory(options.kernels.as_deref());
        Ok(Self {
            pools: Pools::find(&runtime, &agents)?,
            kernels: Kernels::load(&runtime, &agents.gpu, &directory, options.load_from)?,
            gpu: agents.gpu,
            timeout: Duration::from_secs(options.timeout.get()),
            pace: Duration::from_micros(options.pace),
            profile: options.profile,
            doorbell_op: options.doorbell_op,
            log: options.log.is_some(),
            keep_queues: options.leave.is_some(),
            runtime,
        })
    }

    /// Creates a queue of `size` packets.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn queue(&self, size: u32, kind: QueueKind) -> Result<Queue> {
        let queue = Queue::create(&self.runtime, &self.gpu, size, kind, self.doorbell_op)?;
        if self.profile {
            queue.profile()?;
        }
        Ok(if self.keep_queues { queue.kept() } else { queue })
    }

    /// Creates a signal.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn signal(&self, value: i64) -> Result<Signal> {
        Signal::new(&self.runtime, value)
    }

    /// Returns a producer that times all its submissions, of which about `expected` are to come.
    #[must_use]
    pub fn producer<'q>(&self, queue: &'q Queue, expected: usize) -> Producer<'q> {
        self.sampling_producer(queue, expected, 1)
    }

    /// Returns a producer that times only one of `time_every` submissions.
    #[must_use]
    pub fn sampling_producer<'q>(&self, queue: &'q Queue, expected: usize, time_every: u32) -> Producer<'q> {
        let notes = Notes {
            time_every,
            log: self.log,
        };
        let mut producer = Producer::new(queue, self.timeout, notes, expected);
        producer.pace(self.pace);
        producer
    }
}
