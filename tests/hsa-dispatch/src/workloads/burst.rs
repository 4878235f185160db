//! The maximum rate: the workload waits only for room in the ring.

use clap::Args;

use super::check;
use crate::clock;
use crate::context::Context;
use crate::copier::Copier;
use crate::error::{Error, Result};
use crate::hsa::QueueKind;
use crate::kernels::{ArgumentBuffer, Reduce};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// One of this many submissions is timed, because reading the clock costs as much as a submission.
const TIME_EVERY: u32 = 64;

/// Options of `burst`.
#[derive(Args, Debug)]
pub struct Burst {
    /// Dispatches.
    #[arg(short, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Packets in the ring, a power of two.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(64..))]
    pub queue_size: u32,
}

impl Burst {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let most = context.gpu.max_queue_size;
        if !self.queue_size.is_power_of_two() || self.queue_size > most {
            let size = self.queue_size;
            return Err(Error::Unexpected(format!(
                "--queue-size {size} is not a power of two up to {most}"
            )));
        }
        // Each dispatch increments the counter by one, in any order.
        let mut one = context.pools.host::<u32>(1)?;
        one.write(&[1]);
        let mut count = context.pools.host::<u32>(1)?;
        count.write(&[0]);
        let counter = context.pools.device::<u32>(1)?;
        let launch = Reduce {
            input: one.address(),
            out: counter.address(),
            n: 1,
        };
        let arguments = ArgumentBuffer::new(&context.pools, &[launch])?;
        let grid = Grid { items: 1, workgroup: 1 };
        let packet = Packet::dispatch(&context.kernels.reduce, grid, arguments.address(0));

        let done = context.signal(1)?;
        let queue = context.queue(self.queue_size, QueueKind::Single)?;
        let mut producer = context.sampling_producer(&queue, self.n as usize, TIME_EVERY);
        let mut copier = Copier::new(context)?;
        copier.upload(&count, &counter)?;
        let start = clock::now();
        for _ in 1..self.n {
            producer.submit(&[packet])?;
        }
        producer.submit(&[packet.after_all().completing(done.handle())])?;
        let submitted = clock::now();
        done.wait("the last dispatch", context.timeout, &[&queue])?;
        outcome.set_times(start, clock::now());
        outcome.submitted_ns = Some(submitted - start);
        outcome.add_queue(&queue, [producer.finish()]);
        copier.download(&counter, &mut count)?;
        copier.report(outcome);
        check("count of dispatches", &count.read(), |_| self.n)
    }
}
