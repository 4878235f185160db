//! Graphs: work that is captured once and launched as a whole.

use clap::Args;

use super::accumulator::Accumulator;
use crate::clock;
use crate::error::Result;
use crate::hip::Context;
use crate::hip::fat_binary::Registered;
use crate::hip::report::Outcome;
use crate::hip::stream::Stream;
use crate::workloads::accumulator::SMALL;

/// Options of `graph`.
#[derive(Args, Debug)]
pub struct Graph {
    /// Launches of the graph.
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub n: u32,
    /// Kernels in the graph, one after the other.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub nodes: u32,
}

impl Graph {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let sums = Accumulator::new(&context.runtime, SMALL)?;
        // Does not use a module's function: before HIP 5.3, such a launch runs at once instead of being captured.
        let registered = Registered::new(&context.runtime, &context.module)?;
        let stream = Stream::new(&context.runtime)?;
        let graph = stream.capture(self.nodes, || {
            (0..self.nodes).try_for_each(|_| registered.launch(&stream, sums.grid, &sums.arguments))
        })?;
        let start = clock::now();
        for _ in 0..self.n {
            graph.launch(&stream)?;
            outcome.dispatches += u64::from(self.nodes);
        }
        stream.synchronize()?;
        outcome.set_times(start, clock::now());
        sums.verify("the graph", outcome.dispatches)
    }
}
