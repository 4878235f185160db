//! Doorbells that the program rings itself: it stores to their registers, as some machine learning runtimes do.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::{Direct, QueueKind};
use crate::report::Outcome;

/// The code that advances the write index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Reserve {
    /// The runtime, by `hsa_queue_add_write_index_screlease`.
    #[default]
    Api,
    /// This program, by an atomic operation on the queue's memory.
    Raw,
}

/// Options of `direct-doorbell`.
#[derive(Args, Debug)]
pub struct DirectDoorbell {
    /// Dispatches, a doorbell each.
    #[arg(short, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
    /// The number of these, from the first on, whose doorbell the runtime rings.
    #[arg(long, value_name = "M", default_value_t = 0)]
    pub seen: u32,
    /// What advances the write index, for every dispatch.
    #[arg(long, value_enum, default_value_t)]
    pub reserve: Reserve,
}

impl DirectDoorbell {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let sums = Accumulator::new(context, SMALL)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize);
        if self.reserve == Reserve::Raw {
            producer.reserve_directly(Direct::of(&queue)?);
        }
        let start = clock::now();
        for i in 0..self.n {
            if i == self.seen {
                producer.ring_directly(Direct::of(&queue)?);
            }
            done.store(1);
            producer.submit(&[sums.packet().completing(done.handle())])?;
            done.wait(&format!("dispatch {i}"), context.timeout, &[&queue])?;
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the queue", self.n.into())
    }
}
