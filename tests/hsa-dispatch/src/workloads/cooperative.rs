//! The queue of cooperative launches. The driver enables global wave sync once, not at every launch.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::report::Outcome;

/// Options of `cooperative`.
#[derive(Args, Debug)]
pub struct Cooperative {
    /// Dispatches. The kernels themselves are ordinary ones: they contain no instruction of global wave sync.
    #[arg(short, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
}

impl Cooperative {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let sums = Accumulator::new(context, SMALL)?;
        let done = context.signal(1)?;
        let start = clock::now();
        let mut queue = context.queue(QUEUE_SIZE, QueueKind::Cooperative)?;
        let mut producer = context.producer(&queue, self.n as usize);
        for i in 0..self.n {
            done.store(1);
            producer.submit(&[sums.packet().completing(done.handle())])?;
            done.wait(&format!("cooperative dispatch {i}"), context.timeout, &[&queue])?;
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        queue.destroy()?;
        sums.verify("the cooperative queue", self.n.into())
    }
}
