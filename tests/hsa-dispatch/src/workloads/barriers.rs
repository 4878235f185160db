//! Barrier packets. Each must hold back the packets after it until its condition is met, and no longer.

use std::thread;
use std::time::Duration;

use clap::Args;

use super::accumulator::{Accumulator, SMALL};
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::{Error, Result};
use crate::hsa::{Queue, QueueKind, Signal};
use crate::packet::{Condition, Packet};
use crate::producer::Producer;
use crate::report::Outcome;

/// How long the workload checks that a barrier holds.
const HELD: Duration = Duration::from_millis(20);

/// Options of `barriers`.
#[derive(Args, Debug)]
pub struct Barriers {
    /// Leave out AMD's barrier-value packet, which old firmware does not know.
    #[arg(long)]
    pub no_barrier_value: bool,
}

/// A queue, and sums that show what has run on it.
struct Lane<'q> {
    context: &'q Context,
    queue: &'q Queue,
    producer: Producer<'q>,
    sums: Accumulator,
    dispatched: u64,
}

impl Barriers {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let first = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let second = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut lane = Lane::new(context, &first)?;
        let mut other = Lane::new(context, &second)?;
        let start = clock::now();
        let result = lane
            .and()
            .and_then(|()| lane.or())
            .and_then(|()| lane.across(&mut other))
            .and_then(|()| if self.no_barrier_value { Ok(()) } else { lane.value() });
        outcome.set_times(start, clock::now());
        outcome.add_queue(&first, [lane.producer.finish()]);
        outcome.add_queue(&second, [other.producer.finish()]);
        result
    }
}

impl<'q> Lane<'q> {
    fn new(context: &'q Context, queue: &'q Queue) -> Result<Self> {
        let sums = Accumulator::new(context, SMALL)?;
        Ok(Self {
            context,
            queue,
            producer: context.producer(queue, 16),
            sums,
            dispatched: 0,
        })
    }

    /// Barrier-and holds until the last of its signals is zero.
    fn and(&mut self) -> Result<()> {
        let signals = [self.context.signal(1)?, self.context.signal(1)?];
        let barrier = Packet::barrier_and(&[signals[0].handle(), signals[1].handle()]);
        let done = self.submit_behind(barrier)?;
        self.holds("barrier-and with two signals set", &done)?;
        signals[0].store(0);
        self.holds("barrier-and with one signal set", &done)?;
        signals[1].store(0);
        self.opens("barrier-and", &done)
    }

    /// Barrier-or holds until the first of its signals is zero.
    fn or(&mut self) -> Result<()> {
        let signals = [self.context.signal(1)?, self.context.signal(1)?];
        let barrier = Packet::barrier_or(&[signals[0].handle(), signals[1].handle()]);
        let done = self.submit_behind(barrier)?;
        self.holds("barrier-or with two signals set", &done)?;
        signals[1].store(0);
        self.opens("barrier-or", &done)
    }

    /// A barrier waits for a kernel of another queue, which the host itself holds back.
    fn across(&mut self, other: &mut Self) -> Result<()> {
        let gate = self.context.signal(1)?;
        let theirs = other.submit_behind(Packet::barrier_and(&[gate.handle()]))?;
        let ours = self.submit_behind(Packet::barrier_and(&[theirs.handle()]))?;
        self.holds("barrier-and on a kernel of another queue", &ours)?;
        gate.store(0);
        self.opens("barrier-and on a kernel of another queue", &ours)?;
        other.opens("barrier-and of the other queue", &theirs)
    }

    /// Barrier-value holds until the masked value is reached.
    fn value(&mut self) -> Result<()> {
        let signal = self.context.signal(0)?;
        let barrier = Packet::barrier_value(signal.handle(), 0xff, Condition::AtLeast, 3);
        let done = self.submit_behind(barrier)?;
        self.holds("barrier-value >= 3 at 0", &done)?;
        signal.store(0x102);
        self.holds("barrier-value >= 3 at 0x102 & 0xff", &done)?;
        signal.store(0x105);
        self.opens("barrier-value >= 3 at 0x105 & 0xff", &done)?;
        let barrier = Packet::barrier_value(signal.handle(), -1, Condition::Equal, 7);
        let done = self.submit_behind(barrier)?;
        self.holds("barrier-value == 7 at 0x105", &done)?;
        signal.store(7);
        self.opens("barrier-value == 7 at 7", &done)
    }

    /// Submits `barrier` and a kernel that runs after it. Returns the kernel's signal.
    fn submit_behind(&mut self, barrier: Packet) -> Result<Signal> {
        let done = self.context.signal(1)?;
        self.producer.submit(&[barrier.after_all()])?;
        self.producer.submit(&[self.sums.packet().completing(done.handle())])?;
        self.dispatched += 1;
        Ok(done)
    }

    /// Fails if the kernel behind a barrier runs.
    fn holds(&self, what: &str, done: &Signal) -> Result<()> {
        thread::sleep(HELD);
        self.queue.check()?;
        if done.value() != 1 {
            return Err(Error::Unexpected(format!(
                "{what} did not hold back the kernel behind it"
            )));
        }
        self.sums.verify(&format!("{what}, held"), self.dispatched - 1)
    }

    /// Fails if the kernel behind a barrier does not run now.
    fn opens(&self, what: &str, done: &Signal) -> Result<()> {
        done.wait(
            &format!("{what} to let the kernel behind it run"),
            self.context.timeout,
            &[self.queue],
        )?;
        self.sums.verify(&format!("{what}, open"), self.dispatched)
    }
}
