//! How many packets were published and not taken, per queue over time.
//!
//! A doorbell and a sample give the read index of a moment, so the depth is known then. Between two such moments it is bounded:
//! nothing was published, as far as doorbells were seen, so it was at most the depth after the first moment; and the GPU took no
//! more than up to the read index of the second.

use std::collections::BTreeMap;

use super::series::{Band, Bin, Series, Span};
use crate::tables::{Doorbell, DoorbellRun, Fact, Progress, Queue};

/// Number of queues that are distinguished.
const MAX_QUEUES: usize = 512;

/// The depth of a queue over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Queue, as in `queues.queue`.
    pub queue: u32,
    /// The lowest and the highest depth that were possible in each bin, in packets; `None` where nothing is known.
    pub bands: Series<Band>,
    /// The highest depth that was seen at a moment, in packets.
    pub max: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Counter {
    span: Span,
    queues: BTreeMap<u32, State>,
}

/// What is known of a queue.
#[derive(Clone, Debug)]
struct State {
    bands: Series<Band>,
    max: u64,
    last: Option<Moment>,
    /// The last sample, by the row of the queue.
    sampled: Option<Moment>,
}

/// A moment at which the indexes of a queue are known.
#[derive(Clone, Copy, Debug)]
struct Moment {
    time_ns: u64,
    /// One past the highest published index.
    published_end: u64,
    /// The read index, at the least.
    read_index: u64,
}

impl Counter {
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            queues: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Doorbell(row) => self.doorbell(row),
            Fact::DoorbellRun(run) => self.run(run),
            Fact::Progress(row) => self.sample(row),
            Fact::Queue(row) => self.row(row),
            _ => {}
        }
    }

    /// Returns the depth of each queue of which anything is known.
    pub(super) fn finish(self) -> Vec<Depth> {
        let finished = self.queues.into_iter().map(|(queue, mut state)| {
            if let (Some(last), Some(sampled)) = (state.last, state.sampled)
                && sampled.time_ns > last.time_ns
            {
                state.known(sampled);
            }
            Depth {
                queue,
                bands: state.bands,
                max: state.max,
            }
        });
        finished.filter(|depth| !depth.bands.is_empty()).collect()
    }

    fn doorbell(&mut self, row: &Doorbell) {
        let Some(state) = row.queue.and_then(|queue| self.of(queue)) else {
            return;
        };
        let before = state.last.map_or(0, |last| last.published_end);
        state.known(Moment {
            time_ns: row.time_ns,
            published_end: before.max(row.value.saturating_add(1)),
            read_index: row.read_index,
        });
    }

    /// Takes doorbells of which neither the single times nor the read indexes are known.
    fn run(&mut self, run: &DoorbellRun) {
        let (Some(state), Some(last_index)) = (run.queue.and_then(|queue| self.of(queue)), run.last_index) else {
            return;
        };
        let Some(last) = state.last else { return };
        let published_end = last.published_end.max(last_index.saturating_add(1));
        state.possible(last.time_ns, run.begin_ns, (0, last.depth()));
        let after = Moment {
            time_ns: run.end_ns.max(last.time_ns),
            published_end,
            ..last
        };
        state.possible(run.begin_ns, after.time_ns.saturating_add(1), (0, after.depth()));
        state.last = Some(after);
    }

    fn sample(&mut self, row: &Progress) {
        let (Some(state), Some(published_end)) = (self.of(row.queue), row.published_end) else {
            return;
        };
        let before = state.last.map_or(0, |last| last.published_end);
        state.known(Moment {
            time_ns: row.time_ns,
            published_end: before.max(published_end),
            read_index: row.read_index,
        });
    }

    fn row(&mut self, row: &Queue) {
        if let (Some(time_ns), Some(read_index), Some(in_flight)) = (row.looked_ns, row.read_index, row.in_flight)
            && let Some(state) = self.queues.get_mut(&row.queue)
        {
            state.sampled = Some(Moment {
                time_ns,
                published_end: read_index.saturating_add(in_flight),
                read_index,
            });
        }
    }

    fn of(&mut self, queue: u32) -> Option<&mut State> {
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&queue) {
            return None;
        }
        let span = self.span;
        let new = || State {
            bands: Series::new(span),
            max: 0,
            last: None,
            sampled: None,
        };
        Some(self.queues.entry(queue).or_insert_with(new))
    }
}

impl Moment {
    fn depth(&self) -> u64 {
        self.published_end.saturating_sub(self.read_index)
    }
}

impl State {
    /// Takes a moment at which both indexes are known.
    fn known(&mut self, now: Moment) {
        if let Some(last) = self.last {
            let low = last.published_end.saturating_sub(now.read_index);
            self.possible(last.time_ns, now.time_ns, (low.min(last.depth()), last.depth()));
        }
        self.bands.at(now.time_ns).merge(&Some((now.depth(), now.depth())));
        self.max = self.max.max(now.depth());
        self.last = Some(now);
    }

    /// Takes the lowest and the highest depth between two moments.
    fn possible(&mut self, from_ns: u64, to_ns: u64, band: (u64, u64)) {
        self.bands.each(from_ns, to_ns, |bin, _| bin.merge(&Some(band)));
    }
}
