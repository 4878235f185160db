//! Several queues at once.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::report::Outcome;

/// Options of `multi-queue`.
#[derive(Args, Debug)]
pub struct MultiQueue {
    /// Queues.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub queues: u32,
    /// Dispatches to each.
    #[arg(short, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
}

impl MultiQueue {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let each = || 0..self.queues;
        let sums = each()
            .map(|_| Accumulator::new(context, SMALL))
            .collect::<Result<Vec<_>>>()?;
        let done = each().map(|_| context.signal(1)).collect::<Result<Vec<_>>>()?;
        let queues = each()
            .map(|_| context.queue(QUEUE_SIZE, QueueKind::Single))
            .collect::<Result<Vec<_>>>()?;
        let mut producers: Vec<_> = queues
            .iter()
            .map(|queue| context.producer(queue, self.n as usize))
            .collect();
        let start = clock::now();
        for i in 0..self.n {
            for ((producer, sums), done) in producers.iter_mut().zip(&sums).zip(&done) {
                let packet = sums.packet();
                let last = i + 1 == self.n;
                producer.submit(&[if last { packet.completing(done.handle()) } else { packet }])?;
            }
        }
        for (queue, done) in queues.iter().zip(&done) {
            done.wait("the last dispatch of a queue", context.timeout, &[queue])?;
        }
        outcome.set_times(start, clock::now());
        for (queue, producer) in queues.iter().zip(producers) {
            outcome.add_queue(queue, [producer.finish()]);
        }
        sums.iter()
            .enumerate()
            .try_for_each(|(i, sums)| sums.verify(&format!("queue {i}"), self.n.into()))
    }
}
