//! Dispatches that continue until a file exists: a program to attach to, whose pace need not be known.
//!
//! It works in rounds. In each round, each thread submits a few dispatches, one doorbell each, waits for the last of them, and
//! reports its progress.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::MAX_DISPATCHES;
use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::{Error, Result};
use crate::hsa::{Queue, QueueKind, Signal};
use crate::producer::Tally;
use crate::report::Outcome;

/// Options of `steady`.
#[derive(Args, Debug)]
pub struct Steady {
    /// The workload ends when this file exists.
    #[arg(long, value_name = "FILE")]
    pub until: PathBuf,
    /// File for the number of complete dispatches, written after each round; the file is replaced as a whole.
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// The workload ends after this many dispatches of each thread if the file does not appear.
    #[arg(short, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=MAX_DISPATCHES))]
    pub n: u32,
    /// Threads that share the queue.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Dispatches in a round.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub round: u32,
    /// Packets under one reservation and one doorbell; must divide a round.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub packets: u32,
    /// Pause after a round, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 1000)]
    pub pause: u64,
    /// Create a new queue after this many rounds; 0: never. For one thread only.
    #[arg(long, default_value_t = 0)]
    pub rounds_a_queue: u32,
}

impl Steady {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let rounds = if self.threads == 1 { self.rounds_a_queue } else { 0 };
        let mut submitted = 0;
        let done = AtomicU64::new(0);
        let start = clock::now();
        while submitted < u64::from(self.n) && !self.until.exists() {
            let queue = context.queue(QUEUE_SIZE, QueueKind::Multi)?;
            let most = if rounds == 0 { u32::MAX } else { rounds };
            let left = self.n - u32::try_from(submitted).unwrap_or(self.n);
            let tallies = self.on_queue(context, &queue, (left, most), &done)?;
            submitted += tallies.first().map_or(0, |tally| tally.dispatches);
            outcome.add_queue(&queue, tallies);
        }
        outcome.set_times(start, clock::now());
        Ok(())
    }

    /// Runs all threads on one queue, each with `left` dispatches in `rounds` rounds at the most.
    fn on_queue(&self, context: &Context, queue: &Queue, limits: (u32, u32), done: &AtomicU64) -> Result<Vec<Tally>> {
        thread::scope(|scope| {
            let submit = || {
                let (sums, signal) = (Accumulator::new(context, SMALL)?, context.signal(1)?);
                let tally = self.submit(context, queue, (&sums, &signal), limits, done)?;
                sums.verify("a thread", tally.dispatches)?;
                Ok(tally)
            };
            let threads: Vec<_> = (0..self.threads).map(|_| scope.spawn(submit)).collect();
            let panicked = || Error::Unexpected("a submitting thread panicked".to_owned());
            let finished = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            finished.collect()
        })
    }

    fn submit(
        &self,
        context: &Context,
        queue: &Queue,
        (sums, signal): (&Accumulator, &Signal),
        (left, rounds): (u32, u32),
        done: &AtomicU64,
    ) -> Result<Tally> {
        let mut producer = context.producer(queue, 1 << 16);
        let (mut submitted, mut round) = (0, 0);
        while submitted < left && round < rounds && !self.until.exists() {
            let mut in_round = 0;
            signal.store(1);
            while in_round < self.round {
                let mut batch = vec![sums.packet(); self.packets as usize];
                in_round += self.packets;
                if in_round >= self.round
                    && let Some(last) = batch.last_mut()
                {
                    *last = sums.packet().after_all().completing(signal.handle());
                }
                producer.submit(&batch)?;
            }
            signal.wait("the last dispatch of a round", context.timeout, &[queue])?;
            (submitted, round) = (submitted + in_round, round + 1);
            let all = done.fetch_add(in_round.into(), Ordering::Relaxed) + u64::from(in_round);
            self.report_progress(all)?;
            thread::sleep(Duration::from_micros(self.pause));
        }
        Ok(producer.finish())
    }

    /// Writes the number of complete dispatches. Readers see the former number or this one.
    pub(crate) fn report_progress(&self, done: u64) -> Result<()> {
        let Some(path) = &self.progress else { return Ok(()) };
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let new = path.with_extension(thread.to_string());
        let written = fs::write(&new, done.to_string()).and_then(|()| fs::rename(&new, path));
        written.map_err(|source| Error::File {
            path: path.clone(),
            source,
        })
    }
}
