//! Recording that starts in a running session: facts of a session that began earlier become a trace that is consistent by itself.
//!
//! The rows of a trace must add up to the totals of its queues. A queue's totals count from its creation. So this module counts
//! each queue's numbers anew from the rows that go into the trace, and marks queues that existed before as adopted. A trace begins
//! and ends right after a round of snapshots: then every live queue, process and code object is reported at both ends.

use std::collections::HashMap;

use tracer_capture::inventory::Inventory;
use tracer_core::{
    tables::{ApiStats, Fact, Kernel, Proxy, Queue, QueueOrigin},
    tally::{Entry, Tally},
};

use crate::collect::Sink;

/// Maximum number of kernels that are remembered, so that a later trace has their sizes too.
const MAX_KERNELS: usize = 16_384;

/// Passes facts on to a trace, while there is one.
pub struct Recording<S> {
    tape: Option<Tape<S>>,
    /// Queues with lower numbers were seen.
    queues: u32,
    /// Kernels of loaded code objects. Their rows come once.
    kernels: Vec<Kernel>,
    /// Counts of API calls up to now, by counter.
    counted: HashMap<u32, ApiStats>,
    /// The last report of each proxy.
    proxies: HashMap<u32, Proxy>,
}

/// A trace that is being written.
struct Tape<S> {
    sink: S,
    /// Queues with lower numbers existed before the trace.
    before: u32,
    /// The rows of each queue that went into the trace.
    since: HashMap<u32, Tally>,
    /// Counts of API calls before the trace.
    counted: HashMap<u32, ApiStats>,
    /// Requests to proxies before the trace.
    proxies: HashMap<u32, Proxy>,
}

impl<S: Sink> Recording<S> {
    /// Creates the value without a trace: nothing is recorded yet.
    pub fn new() -> Self {
        Self {
            tape: None,
            queues: 0,
            kernels: Vec::new(),
            counted: HashMap::new(),
            proxies: HashMap::new(),
        }
    }

    /// Starts recording to `sink`. Must follow a round of snapshots.
    pub fn begin(&mut self, mut sink: S) {
        for kernel in &self.kernels {
            sink.take(&Fact::Kernel(kernel.clone()));
        }
        self.tape = Some(Tape {
            sink,
            before: self.queues,
            since: HashMap::new(),
            counted: self.counted.clone(),
            proxies: self.proxies.clone(),
        });
    }

    /// Stops recording. Must follow a round of snapshots, or the end of all facts.
    pub fn end(&mut self) -> Option<S> {
        self.tape.take().map(|tape| tape.sink)
    }

    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Queue(queue) => self.queues = self.queues.max(queue.queue.saturating_add(1)),
            Fact::ApiStats(stats) => drop(self.counted.insert(stats.counter, stats.clone())),
            Fact::Proxy(proxy) => drop(self.proxies.insert(proxy.proxy, proxy.clone())),
            Fact::Kernel(kernel) if self.kernels.len() < MAX_KERNELS => self.kernels.push(kernel.clone()),
            _ => {}
        }
    }

    /// Takes a fact. Each fact comes once.
    pub fn take(&mut self, fact: &Fact) {
        self.note(fact);
        if let Fact::CodeObject(gone) = fact {
            self.kernels.retain(|kernel| kernel.code_object != gone.code_object);
        }
        if let Some(tape) = &mut self.tape {
            if let Some(queue) = Entry::of(fact).and_then(|entry| entry.queue) {
                tape.since.entry(queue).or_default().add(fact);
            }
            tape.pass(fact, S::take);
        }
    }

    /// Takes the current state of an object that still exists.
    pub fn snapshot(&mut self, fact: &Fact) {
        self.note(fact);
        if let Some(tape) = &mut self.tape {
            tape.pass(fact, S::snapshot);
        }
    }

    /// Called at intervals. A trace that can't be written ends.
    pub fn tick(&mut self) -> anyhow::Result<()> {
        let ticked = self.tape.as_mut().map_or(Ok(()), |tape| tape.sink.tick());
        if ticked.is_err() {
            self.tape = None;
        }
        ticked
    }

    /// Takes the current inventory of the capture.
    pub fn describe(&mut self, inventory: &Inventory) {
        if let Some(tape) = &mut self.tape {
            tape.sink.describe(inventory);
        }
    }
}

impl<S> Tape<S> {
    /// Passes a fact to the trace, with the numbers since the trace began.
    fn pass(&mut self, fact: &Fact, to: fn(&mut S, &Fact)) {
        let anew = match fact {
            Fact::Queue(queue) => Fact::Queue(self.anew(queue)),
            Fact::ApiStats(stats) => match self.counted.get(&stats.counter) {
                Some(before) => Fact::ApiStats(stats.since(before)),
                None => return to(&mut self.sink, fact),
            },
            Fact::Proxy(proxy) => match self.proxies.get(&proxy.proxy) {
                Some(before) => Fact::Proxy(proxy.since(before)),
                None => return to(&mut self.sink, fact),
            },
            Fact::GpuTime(time) if !self.has(time.queue, time.index) => return,
            _ => return to(&mut self.sink, fact),
        };
        to(&mut self.sink, &anew);
    }

    /// Returns whether a row with this index may have gone into the trace.
    fn has(&self, queue: u32, index: u64) -> bool {
        let indexes = self.since.get(&queue).and_then(|since| since.indexes);
        indexes.is_some_and(|(first, last)| (first..=last).contains(&index))
    }

    /// Returns the queue as the trace knows it.
    fn anew(&self, queue: &Queue) -> Queue {
        let none = Tally::default();
        let since = self.since.get(&queue.queue).unwrap_or(&none);
        let published = since.rows();
        let mut anew = Queue {
            doorbells: since.doorbells.saturating_add(since.all_copies()),
            published,
            dispatches: since.all_dispatches(),
            other_packets: since.other_packets,
            unread: since.unread,
            first_index: since.indexes.map(|(first, _)| first),
            last_index: since.indexes.map(|(_, last)| last),
            unseen: queue.unseen.map(|_| since.unseen()),
            ..queue.clone()
        };
        if queue.queue < self.before && queue.origin != QueueOrigin::Listed {
            anew.origin = QueueOrigin::Adopted;
            (anew.doorbell_offset, anew.priority, anew.create_enter_ns) = (None, None, None);
            // For a queue that was silent since then, no later time is known.
            anew.created_ns = since.first_ns.unwrap_or(queue.created_ns);
            let span = since
                .indexes
                .map_or(0, |(first, last)| (last - first).saturating_add(1));
            anew.unclaimed = Some(span.saturating_sub(published));
        }
        anew
    }
}

#[cfg(test)]
mod tests;
