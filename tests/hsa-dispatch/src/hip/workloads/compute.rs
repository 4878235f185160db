//! Kernels only.

use super::accumulator::Accumulator;
use crate::clock;
use crate::error::Result;
use crate::hip::Context;
use crate::hip::report::Outcome;
use crate::hip::stream::Stream;
use crate::packet::Grid;
use crate::workloads::compute::ComputeOnly;

/// Launches `vector_add` on host memory. Waits for each launch, or only for the last one.
pub fn run(options: &ComputeOnly, context: &Context, outcome: &mut Outcome) -> Result<()> {
    let grid = Grid {
        items: options.elements,
        workgroup: options.workgroup,
    };
    let sums = Accumulator::new(&context.runtime, grid)?;
    let stream = Stream::new(&context.runtime)?;
    let start = clock::now();
    for i in 0..options.n {
        context.module.launch(&stream, sums.grid, &sums.arguments)?;
        outcome.dispatches += 1;
        if !options.pipelined || i + 1 == options.n {
            stream.synchronize()?;
        }
    }
    outcome.set_times(start, clock::now());
    sums.verify("the stream", options.n.into())
}
