//! A launch by every function that can launch a kernel.

use clap::Args;

use super::accumulator::Accumulator;
use crate::clock;
use crate::error::Result;
use crate::hip::Context;
use crate::hip::fat_binary::Registered;
use crate::hip::report::Outcome;
use crate::hip::stream::{Event, Stream};
use crate::workloads::accumulator::SMALL;

/// The number of launches in a round.
const WAYS: u64 = 5;

/// Options of `launches`.
#[derive(Args, Debug)]
pub struct Launches {
    /// Rounds of one launch by each function.
    #[arg(short, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub n: u32,
    /// Leave out cooperative launches, which not every GPU has.
    #[arg(long)]
    pub no_cooperative: bool,
}

impl Launches {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let runtime = &context.runtime;
        let sums = Accumulator::new(runtime, SMALL)?;
        let registered = Registered::new(runtime, &context.module)?;
        let stream = Stream::new(runtime)?;
        let events = (Event::new(runtime)?, Event::new(runtime)?);
        let events = (&events.0, &events.1);
        let (grid, arguments) = (sums.grid, &sums.arguments);
        let start = clock::now();
        for _ in 0..self.n {
            context.module.launch(&stream, grid, arguments)?;
            registered.launch(&stream, grid, arguments)?;
            context.module.launch_timed(&stream, grid, arguments, events)?;
            events.1.synchronize()?;
            registered.launch_timed(&stream, grid, arguments, events)?;
            events.1.synchronize()?;
            outcome.dispatches += WAYS - 1;
            if !self.no_cooperative {
                registered.launch_cooperative(&stream, grid, arguments)?;
                outcome.dispatches += 1;
            }
        }
        stream.synchronize()?;
        outcome.set_times(start, clock::now());
        sums.verify("the stream", outcome.dispatches)
    }
}
