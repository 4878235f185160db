//! Several threads on one queue, without a lock, because indexes are reserved atomically.

use std::sync::Barrier;
use std::thread;

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::{Error, Result};
use crate::hsa::{Queue, QueueKind, Signal};
use crate::producer::Tally;
use crate::report::Outcome;

/// Options of `multi-thread`.
#[derive(Args, Debug)]
pub struct MultiThread {
    /// Threads.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Dispatches by each.
    #[arg(short, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
}

/// The share of one thread.
struct Share {
    sums: Accumulator,
    done: Signal,
}

impl MultiThread {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let share = |_| {
            Ok(Share {
                sums: Accumulator::new(context, SMALL)?,
                done: context.signal(1)?,
            })
        };
        let shares = (0..self.threads).map(share).collect::<Result<Vec<_>>>()?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Multi)?;
        let together = Barrier::new(shares.len());
        let start = clock::now();
        let tallies = thread::scope(|scope| {
            let submit = |share| self.submit(context, &queue, share, &together);
            let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || submit(share))).collect();
            let finished = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            finished.collect::<Result<Vec<_>>>()
        })?;
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, tallies);
        let mut shares = shares.iter().enumerate();
        shares.try_for_each(|(i, share)| share.sums.verify(&format!("thread {i}"), self.n.into()))
    }

    /// Submits the dispatches of one thread.
    fn submit(&self, context: &Context, queue: &Queue, share: &Share, together: &Barrier) -> Result<Tally> {
        let Share { sums, done } = share;
        let mut producer = context.producer(queue, self.n as usize);
        together.wait();
        for _ in 1..self.n {
            producer.submit(&[sums.packet()])?;
        }
        producer.submit(&[sums.packet().completing(done.handle())])?;
        done.wait("the last dispatch of a thread", context.timeout, &[queue])?;
        Ok(producer.finish())
    }
}

fn panicked() -> Error {
    Error::Unexpected("a submitting thread panicked".to_owned())
}
