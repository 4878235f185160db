//! Batches: one reservation and one doorbell for several packets, as HIP graphs do from ROCm 7 on.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::packet::Packet;
use crate::report::Outcome;

/// Options of `batch`.
#[derive(Args, Debug)]
pub struct Batch {
    /// Packets in a batch.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(QUEUE_SIZE)))]
    pub packets: u32,
    /// Packets in total; the last batch may be smaller.
    #[arg(short, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
}

impl Batch {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let sums = Accumulator::new(context, SMALL)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize);
        let mut left = self.n;
        let start = clock::now();
        while left > 0 {
            let batch = left.min(self.packets);
            left -= batch;
            let mut packets: Vec<Packet> = (0..batch).map(|_| sums.packet()).collect();
            if left == 0
                && let Some(last) = packets.last_mut()
            {
                *last = last.completing(done.handle());
            }
            producer.submit(&packets)?;
        }
        done.wait("the last batch", context.timeout, &[&queue])?;
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the batches", self.n.into())
    }
}
