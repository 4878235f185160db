//! Kernels only.

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::Accumulator;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::packet::Grid;
use crate::report::Outcome;

/// Options of `compute-only`.
#[derive(Args, Debug)]
pub struct ComputeOnly {
    /// Dispatches.
    #[arg(short, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
    /// Do not wait for each dispatch, only for the last.
    #[arg(long)]
    pub pipelined: bool,
    /// Elements that each dispatch adds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,
    /// Work-items in a workgroup.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workgroup: u16,
}

impl ComputeOnly {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let grid = Grid {
            items: self.elements,
            workgroup: self.workgroup,
        };
        let sums = Accumulator::new(context, grid)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize);
        let start = clock::now();
        for i in 0..self.n {
            if self.pipelined && i + 1 < self.n {
                producer.submit(&[sums.packet()])?;
            } else {
                done.store(1);
                producer.submit(&[sums.packet().completing(done.handle())])?;
                done.wait(&format!("dispatch {i}"), context.timeout, &[&queue])?;
                if context.profile {
                    outcome.gpu_times.push(done.dispatch_time(&context.gpu)?);
                }
            }
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the queue", self.n.into())
    }
}
