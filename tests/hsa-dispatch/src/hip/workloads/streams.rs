//! Several streams, each with a thread of its own.

use std::thread;

use clap::Args;

use super::accumulator::Accumulator;
use crate::clock;
use crate::error::{Error, Result};
use crate::hip::Context;
use crate::hip::report::Outcome;
use crate::hip::stream::{Event, Stream};
use crate::workloads::accumulator::SMALL;

/// Options of `streams`.
#[derive(Args, Debug)]
pub struct Streams {
    /// Streams, each with a thread.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub streams: u32,
    /// Launches on each.
    #[arg(short, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub n: u32,
}

/// The share of one thread.
struct Share {
    sums: Accumulator,
    stream: Stream,
    done: Event,
}

impl Streams {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let runtime = &context.runtime;
        let share = |_| {
            Ok(Share {
                sums: Accumulator::new(runtime, SMALL)?,
                stream: Stream::new(runtime)?,
                done: Event::new(runtime)?,
            })
        };
        let shares = (0..self.streams).map(share).collect::<Result<Vec<_>>>()?;
        let start = clock::now();
        thread::scope(|scope| {
            let launch = |share| self.launch(context, share);
            let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || launch(share))).collect();
            let mut finished = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            finished.try_for_each(|result| result)
        })?;
        // A last kernel on the first stream runs after the work on all streams.
        let Some((first, others)) = shares.split_first() else {
            return Ok(());
        };
        others.iter().try_for_each(|share| first.stream.wait_for(&share.done))?;
        context.module.launch(&first.stream, SMALL, &first.sums.arguments)?;
        first.stream.synchronize()?;
        runtime.synchronize()?;
        outcome.set_times(start, clock::now());
        outcome.dispatches = u64::from(self.streams) * u64::from(self.n) + 1;
        for (i, share) in shares.iter().enumerate() {
            let extra = u64::from(i == 0);
            share.sums.verify(&format!("stream {i}"), u64::from(self.n) + extra)?;
        }
        Ok(())
    }

    /// Submits the launches of one thread.
    fn launch(&self, context: &Context, share: &Share) -> Result<()> {
        for _ in 0..self.n {
            context
                .module
                .launch(&share.stream, share.sums.grid, &share.sums.arguments)?;
        }
        share.done.record(&share.stream)
    }
}

fn panicked() -> Error {
    Error::Unexpected("a launching thread panicked".to_owned())
}
