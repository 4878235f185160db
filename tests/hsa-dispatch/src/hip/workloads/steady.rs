//! Launches that continue until a file exists.

use std::thread;
use std::time::Duration;

use super::accumulator::Accumulator;
use crate::clock;
use crate::error::{Error, Result};
use crate::hip::Context;
use crate::hip::report::Outcome;
use crate::hip::stream::Stream;
use crate::packet::Grid;
use crate::workloads::steady::Steady;

const SMALL: Grid = Grid {
    items: 256,
    workgroup: 64,
};

/// Submits a round's launches on one stream, then waits for them.
pub fn run(options: &Steady, context: &Context, outcome: &mut Outcome) -> Result<()> {
    if (options.threads, options.packets, options.rounds_a_queue) != (1, 1, 0) {
        return Err(Error::Unexpected(
            "steady has --threads, --packets and --rounds-a-queue only with `--api hsa`".to_owned(),
        ));
    }
    let sums = Accumulator::new(&context.runtime, SMALL)?;
    let stream = Stream::new(&context.runtime)?;
    let start = clock::now();
    let mut launched: u64 = 0;
    while launched < options.n.into() && !options.until.exists() {
        for _ in 0..options.round {
            context.module.launch(&stream, sums.grid, &sums.arguments)?;
            outcome.dispatches += 1;
        }
        stream.synchronize()?;
        launched += u64::from(options.round);
        options.report_progress(launched)?;
        thread::sleep(Duration::from_micros(options.pause));
    }
    outcome.set_times(start, clock::now());
    sums.verify("the stream", launched)
}
