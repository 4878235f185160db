//! Kernels and copies in the numbers of an inference: many kernels between one copy in and one copy out.

use clap::Args;

use super::accumulator::{Accumulator, SMALL};
use super::{MAX_DISPATCHES, check};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::copier::Copier;
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::report::Outcome;

/// Options of `inference`.
#[derive(Args, Debug)]
pub struct Inference {
    /// Rounds of a copy in, dispatches, and a copy out.
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Dispatches per round.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub dispatches: u32,
    /// Bytes of each copy.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub bytes: u32,
}

impl Inference {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let len = self.bytes as usize;
        let mut input = context.pools.host::<u8>(len)?;
        let mut output = context.pools.host::<u8>(len)?;
        let device = context.pools.device::<u8>(len)?;
        let sums = Accumulator::new(context, SMALL)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let dispatches = self.n.saturating_mul(self.dispatches);
        let mut producer = context.producer(&queue, dispatches as usize);
        let mut copier = Copier::new(context)?;
        let mut result = Ok(());
        let start = clock::now();
        for round in 0..self.n {
            input.write(&(0..len).map(|i| byte(round, i)).collect::<Vec<_>>());
            output.write(&vec![0; len]);
            copier.upload(&input, &device)?;
            for i in 0..self.dispatches {
                let mut packet = sums.packet();
                if i + 1 == self.dispatches {
                    done.store(1);
                    packet = packet.completing(done.handle());
                }
                producer.submit(&[packet])?;
            }
            done.wait("the dispatches of a round", context.timeout, &[&queue])?;
            copier.download(&device, &mut output)?;
            result = result.and(check(&format!("bytes of round {round}"), &output.read(), |i| {
                byte(round, i)
            }));
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        copier.report(outcome);
        result.and(sums.verify("the queue", dispatches.into()))
    }
}

/// Returns byte `i` of round `round`. It is never the value in an untouched buffer.
#[expect(clippy::cast_possible_truncation, reason = "only the low byte is wanted")]
fn byte(round: u32, i: usize) -> u8 {
    (i % 253) as u8 ^ round as u8 | 1
}
