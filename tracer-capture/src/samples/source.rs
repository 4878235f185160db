//! Passes over the records of a backend, in the order of their times, as events.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use tracer_common::record::Hold;
use tracer_core::{
    event::{Event, Origin},
    losses::UNDECODED,
};

use super::{ioctls::Ioctls, reader::Reader, record::Record, rings::Rings};
use crate::{decode::fetch::Fetch, pause::keeper::Pauses, sys};

/// The time within which a record is written after its time was taken, ns.
const WRITING_NS: u64 = 1_000_000;
/// A reader naps shortly for this time after a doorbell, ns.
const BUSY_NS: u64 = 200_000_000;
/// The nap while there are doorbells.
const BUSY_NAP: Duration = Duration::from_micros(100);
/// The nap while there are none.
const IDLE_NAP: Duration = Duration::from_millis(1);

/// The records of a backend. A pass calls [`Self::look`], [`Self::list`], [`Self::each`] and
/// [`Self::release`].
pub trait Input: Send {
    /// Prepares for the records of a process that runs already.
    fn watch(&mut self, _pid: u32) {}
    /// Looks how far the kernel has written.
    fn look(&mut self);
    /// Lists the records that were there at the last look, up to a moment, in the order of their times.
    fn list(&mut self, until_ns: u64);
    /// Passes on the records of the list.
    fn each(&mut self, take: &mut dyn FnMut(Origin, Record<'_>));
    /// Gives the room of the list's records back.
    fn release(&mut self);
    /// Makes the kernel show losses that it has counted and not shown yet.
    fn settle(&mut self) {}
    /// Returns the losses since the last call.
    fn take_lost(&mut self) -> Lost;
}

/// Records that are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The name of the loss: there was no room for them.
    pub source: &'static str,
    /// How many of them.
    pub dropped: u64,
    /// Records that are not understood, or that cannot be found.
    pub undecoded: u64,
}

/// What a backend brings.
pub struct Parts {
    /// The records.
    pub input: Box<dyn Input>,
    /// `None` if the trace events of system calls cannot be used.
    pub ioctls: Option<Ioctls>,
    /// `None` if this kernel has no DRM scheduler, or if its events cannot be used.
    pub rings: Option<Rings>,
}

/// The records of a backend, and what they said so far.
pub struct Source {
    input: Box<dyn Input>,
    reader: Reader,
    /// Records up to this moment were handed over.
    drained_ns: u64,
    /// Set while losses may not have been written to the buffers.
    is_unsettled: bool,
}

impl Source {
    /// Returns the source. It announces processes that it pauses to `holds`; `follow` is whether child processes are traced too.
    #[must_use]
    pub fn new(parts: Parts, follow: bool, pauses: Arc<Pauses>, holds: mpsc::SyncSender<Hold>) -> Self {
        Self {
            input: parts.input,
            reader: Reader::new((parts.ioctls, parts.rings), follow, pauses, holds),
            drained_ns: 0,
            is_unsettled: false,
        }
    }

    /// Traces a process from now on.
    pub fn insert(&mut self, pid: u32, generation: u32) {
        self.input.watch(pid);
        self.reader.processes.insert(pid, generation);
    }

    /// Notes that a traced process uses the KFD already: it is not paused at its next ioctl.
    pub fn insert_user(&mut self, pid: u32) {
        if let Some(process) = self.reader.processes.get(pid) {
            process.is_user = true;
        }
    }

    /// Makes submissions of traced processes count from now on.
    pub fn begin(&mut self) {
        self.reader.counts.0 = sys::monotonic_ns();
    }

    /// Makes no submission count from now on.
    pub fn stop_counting(&mut self) {
        let counts = &mut self.reader.counts;
        counts.1 = counts.1.min(sys::monotonic_ns());
        self.is_unsettled = true;
    }

    /// Pauses no process any more.
    pub fn pause_no_more(&mut self) {
        self.reader.pause_no_more();
    }

    /// Returns whether the records of the time before `mark_ns` were handed over.
    #[must_use]
    pub fn is_drained_to(&self, mark_ns: u64) -> bool {
        !self.is_unsettled && self.drained_ns >= mark_ns.saturating_add(WRITING_NS)
    }

    /// Returns the time for which a reader that found no record may sleep: a short one while there are doorbells, because their
    /// packets are still to be read.
    #[must_use]
    pub fn nap(&self) -> Duration {
        let reader = &self.reader;
        if self.drained_ns.saturating_sub(reader.rung_ns) < BUSY_NS || !reader.changes.is_empty() {
            BUSY_NAP
        } else {
            IDLE_NAP
        }
    }

    /// Hands over what has arrived. `discoveries` is called first: what a process did after tracer discovered something about it
    /// comes after the discovery.
    pub fn drain<S: FnMut(&Event<'_>)>(
        &mut self,
        memory: &mut impl Fetch,
        sink: &mut S,
        mut discoveries: impl FnMut(&mut S),
    ) {
        self.pass(memory, sink, &mut discoveries);
        if self.is_unsettled {
            // The buffers have room again.
            self.input.settle();
            self.is_unsettled = false;
            self.pass(memory, sink, &mut discoveries);
            self.reader.finish(memory, sink);
        }
    }

    fn pass<S: FnMut(&Event<'_>)>(
        &mut self,
        memory: &mut impl Fetch,
        sink: &mut S,
        discoveries: &mut impl FnMut(&mut S),
    ) {
        let Self { input, reader, .. } = self;
        let until_ns = sys::monotonic_ns();
        input.look();
        reader.advance(self.drained_ns, memory);
        discoveries(sink);
        input.list(until_ns);
        input.each(&mut |origin, record| reader.take(origin, record, memory, sink));
        reader.flush(0, memory, sink);
        input.release();
        self.drained_ns = until_ns;
    }

    /// Hands over the losses since the last call: source, count.
    pub fn take_losses(&mut self, lost: &mut impl FnMut(&'static str, u64)) {
        let of_input = self.input.take_lost();
        for (source, count) in [(of_input.source, of_input.dropped), (UNDECODED, of_input.undecoded)] {
            if count > 0 {
                lost(source, count);
            }
        }
        self.reader.take_losses(lost);
    }

    /// Hands over the calls that are open now, as calls without a result.
    pub fn report_open_calls(&self, sink: &mut impl FnMut(&Event<'_>)) {
        self.reader.report_open_calls(sink);
    }
}
