//! A small ring that is reused many times: indexes continue while slots repeat.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::report::Outcome;

/// The size of the ring in packets: the smallest that every runtime allows.
const RING: u32 = 64;

/// The largest number of times around the ring.
const MAX_ROUNDS: i64 = MAX_DISPATCHES / RING as i64;

/// Options of `wrap`.
#[derive(Args, Debug)]
pub struct Wrap {
    /// Times around the ring.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=MAX_ROUNDS))]
    pub rounds: u32,
}

impl Wrap {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let n = self.rounds * RING;
        let sums = Accumulator::new(context, SMALL)?;
        let done = context.signal(1)?;
        let queue = context.queue(RING, QueueKind::Single)?;
        let mut producer = context.producer(&queue, n as usize);
        let start = clock::now();
        for _ in 1..n {
            producer.submit(&[sums.packet()])?;
        }
        producer.submit(&[sums.packet().completing(done.handle())])?;
        done.wait("the last dispatch", context.timeout, &[&queue])?;
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the ring", n.into())
    }
}
