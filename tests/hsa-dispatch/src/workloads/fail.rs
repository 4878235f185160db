//! Operations that must fail. Each failure must be reported, with the status that the specification or AMD's own tests name.

use clap::Args;

use super::accumulator::{Accumulator, SMALL};
use crate::clock::{self, Deadline};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hsa::executable::Executable;
use crate::hsa::types::{Status, status};
use crate::hsa::{DoorbellOp, Queue, QueueKind};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// Packets of the queues.
const RING: u32 = 64;

/// Options of `fail`.
#[derive(Args, Debug)]
pub struct Fail {}

/// The failures provoked so far.
struct Failures<'c> {
    context: &'c Context,
    outcome: &'c mut Outcome,
    /// Failures that were not reported correctly.
    missing: Vec<String>,
}

impl Fail {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let mut failures = Failures {
            context,
            outcome,
            missing: Vec::new(),
        };
        let start = clock::now();
        failures.bad_calls();
        failures.bad_packets()?;
        failures.destroyed_queue()?;
        failures.still_works()?;
        let Failures { missing, .. } = failures;
        outcome.set_times(start, clock::now());
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Error::Unexpected(missing.join("; ")))
        }
    }
}

impl Failures<'_> {
    /// Calls with arguments that the runtime must refuse.
    fn bad_calls(&mut self) {
        let Context {
            runtime, gpu, kernels, ..
        } = self.context;
        let create = |size| Queue::create(runtime, gpu, size, QueueKind::Single, DoorbellOp::default());
        self.refused(
            "a queue of 100 packets, no power of two",
            create(100),
            status::INVALID_ARGUMENT,
        );
        self.refused("a queue of no packets", create(0), status::INVALID_ARGUMENT);
        self.refused(
            "a kernel that does not exist",
            kernels.by_name("no_such_kernel"),
            status::INVALID_SYMBOL_NAME,
        );
        let garbage = Executable::load_bytes(runtime, gpu, b"this is no code object".repeat(16));
        self.refused("a code object of garbage", garbage, status::INVALID_CODE_OBJECT);
    }

    /// Packets that the GPU must refuse, by stopping their queue.
    fn bad_packets(&mut self) -> Result<()> {
        self.stopped(
            "a packet of type 255",
            Packet::of_no_type(),
            status::INVALID_PACKET_FORMAT,
        )?;
        let sums = Accumulator::new(self.context, SMALL)?;
        let too_large = sums.packet_of(Grid {
            items: 1 << 17,
            workgroup: u16::MAX,
        });
        self.stopped("a workgroup of 65535 work-items", too_large, status::INVALID_ARGUMENT)?;
        sums.verify("a refused launch", 0)
    }

    /// A submission to a destroyed queue. It is refused before it can do harm.
    fn destroyed_queue(&mut self) -> Result<()> {
        let sums = Accumulator::new(self.context, SMALL)?;
        let mut queue = self.context.queue(RING, QueueKind::Single)?;
        queue.destroy()?;
        let submitted = self.context.producer(&queue, 1).submit(&[sums.packet()]);
        self.record(
            "a dispatch to a destroyed queue",
            matches!(submitted, Err(Error::QueueDestroyed(_))),
            &submitted,
        );
        let again = queue.destroy();
        self.record(
            "a second destruction of a queue",
            matches!(again, Err(Error::QueueDestroyed(_))),
            &again,
        );
        self.outcome.add_queue(&queue, []);
        sums.verify("a refused dispatch", 0)
    }

    /// An ordinary dispatch after all these failures.
    fn still_works(&mut self) -> Result<()> {
        let sums = Accumulator::new(self.context, SMALL)?;
        let queue = self.context.queue(RING, QueueKind::Single)?;
        let mut producer = self.context.producer(&queue, 1);
        let done = self.context.signal(1)?;
        producer.submit(&[sums.packet().completing(done.handle())])?;
        done.wait("a dispatch after the failures", self.context.timeout, &[&queue])?;
        self.outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the dispatch after the failures", 1)
    }

    /// Records whether a call was refused with `expected`.
    fn refused<T>(&mut self, what: &str, result: Result<T>, expected: Status) {
        let result = result.map(|_| ());
        self.record(
            what,
            matches!(result, Err(Error::Hsa { status, .. }) if status == expected),
            &result,
        );
    }

    /// Submits `packet` to a separate queue and records whether the GPU stops that queue with `expected`.
    fn stopped(&mut self, what: &str, packet: Packet, expected: Status) -> Result<()> {
        let queue = self.context.queue(RING, QueueKind::Single)?;
        let mut producer = self.context.producer(&queue, 1);
        producer.submit(&[packet])?;
        let deadline = Deadline::after(self.context.timeout);
        while queue.fault().is_none() && !deadline.passed() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.outcome.add_queue(&queue, [producer.finish()]);
        self.record(what, queue.fault() == Some(expected), &queue.check());
        Ok(())
    }

    fn record<T>(&mut self, what: &str, seen: bool, result: &Result<T>) {
        self.outcome.failures_expected += 1;
        if seen {
            self.outcome.failures_seen += 1;
            return;
        }
        let instead = result
            .as_ref()
            .err()
            .map_or_else(|| "no error".to_owned(), ToString::to_string);
        self.missing
            .push(format!("{what} should have been refused otherwise: {instead}"));
    }
}
