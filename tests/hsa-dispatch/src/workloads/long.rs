//! Kernels that keep the GPU busy.

use std::time::Duration;

use clap::Args;

use super::check;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::{Error, Result};
use crate::hsa::QueueKind;
use crate::kernels::{ArgumentBuffer, Fill, Spin};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// One wavefront on every GPU.
const GRID: Grid = Grid {
    items: 32,
    workgroup: 32,
};

/// The value that is filled in after the long kernels.
const MARK: u32 = 0x600d_600d;

/// Options of `long`.
#[derive(Args, Debug)]
pub struct Long {
    /// Duration of each kernel.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub ms: u32,
    /// Long kernels, one after the other; a short one follows.
    #[arg(short, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
}

impl Long {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let clocks = context.gpu.clock_hz * u64::from(self.ms) / 1000;
        let spin_arguments = ArgumentBuffer::new(&context.pools, &[Spin { clocks }])?;
        let spin = Packet::dispatch(&context.kernels.spin, GRID, spin_arguments.address(0)).after_all();
        let mut marks = context.pools.host::<u32>(GRID.items as usize)?;
        marks.write(&vec![0; marks.len()]);
        let launch = Fill {
            p: marks.address(),
            value: MARK,
            n: GRID.items,
        };
        let fill_arguments = ArgumentBuffer::new(&context.pools, &[launch])?;
        let fill = Packet::dispatch(&context.kernels.fill, GRID, fill_arguments.address(0)).after_all();
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize + 1);
        let expected = Duration::from_millis(u64::from(self.ms) * u64::from(self.n));
        let start = clock::now();
        for _ in 0..self.n {
            producer.submit(&[spin])?;
        }
        producer.submit(&[fill.completing(done.handle())])?;
        done.wait("the last kernel", context.timeout + expected, &[&queue])?;
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        self.check_duration(context, Duration::from_nanos(outcome.elapsed_ns), expected)?;
        check("marks after the long kernels", &marks.read(), |_| MARK)
    }

    /// Fails if the kernels were faster than possible. The clocks of host and GPU may differ a little.
    fn check_duration(&self, context: &Context, took: Duration, expected: Duration) -> Result<()> {
        if took >= expected.mul_f64(0.95) {
            return Ok(());
        }
        Err(Error::Unexpected(format!(
            "{} kernels of {} ms took {took:?} only: they did not run, or the clock is not {} Hz",
            self.n, self.ms, context.gpu.clock_hz
        )))
    }
}
