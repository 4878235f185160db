//! Queues that are created and destroyed repeatedly.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::report::Outcome;

/// Packets of each queue.
const RING: u32 = 64;

/// Options of `churn`.
#[derive(Args, Debug)]
pub struct Churn {
    /// Queues, one after the other.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub queues: u32,
    /// Dispatches to each.
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
}

impl Churn {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let done = context.signal(1)?;
        let mut result = Ok(());
        let start = clock::now();
        for number in 0..self.queues {
            let sums = Accumulator::new(context, SMALL)?;
            let mut queue = context.queue(RING, QueueKind::Single)?;
            let mut producer = context.producer(&queue, self.n as usize);
            done.store(1);
            for _ in 1..self.n {
                producer.submit(&[sums.packet()])?;
            }
            producer.submit(&[sums.packet().completing(done.handle())])?;
            done.wait("the last dispatch of a queue", context.timeout, &[&queue])?;
            outcome.add_queue(&queue, [producer.finish()]);
            queue.destroy()?;
            result = result.and(sums.verify(&format!("queue {number}"), self.n.into()));
        }
        outcome.set_times(start, clock::now());
        result
    }
}
