//! One queue, or the packets of one stream on it: whether it holds work, and since when.

use schemars::JsonSchema;
use serde::Serialize;

use super::union::{Sweep, Union};

/// A part of a time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Held {
    /// At least.
    pub least_ns: u64,
    /// At most; `None` if packets may have been published without a doorbell that was seen.
    pub most_ns: Option<u64>,
}

/// A moment at which the read index of a queue was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Time before.
    pub(super) time_ns: u64,
    /// Time after.
    pub(super) until_ns: u64,
    /// The read index.
    pub(super) read_index: u64,
}

/// Indexes that were published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// Time of the first doorbell.
    pub(super) begin_ns: u64,
    /// Time of the last one.
    pub(super) end_ns: u64,
    /// One past the last index.
    pub(super) end: u64,
}

impl Seen {
    pub(super) const fn at(time_ns: u64, read_index: u64) -> Self {
        Self {
            time_ns,
            until_ns: time_ns,
            read_index,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Holder {
    /// One past the highest index that was published.
    end: u64,
    /// Whether packets were not taken by the last moment that is known.
    holds: bool,
    /// Begin of the time in which it surely holds work, if the next moment says so.
    since: u64,
}

impl Holder {
    /// Whether it may hold work.
    pub(super) const fn holds(&self) -> bool {
        self.holds
    }

    pub(super) fn publish(&mut self, published: Published, times: &mut [&mut Times]) {
        if published.end <= self.end {
            return;
        }
        self.end = published.end;
        if !self.holds {
            self.holds = true;
            self.since = published.end_ns;
            times.iter_mut().for_each(|times| times.most.begin(published.begin_ns));
        } else if published.end_ns > published.begin_ns {
            // A packet that was not taken at a moment between the doorbells may not have been published either.
            self.since = self.since.max(published.end_ns);
        }
    }

    pub(super) fn see(&mut self, seen: Seen, times: &mut [&mut Times]) {
        if !self.holds {
            return;
        }
        if seen.read_index < self.end {
            times
                .iter_mut()
                .for_each(|times| times.least.add(self.since, seen.time_ns));
            self.since = self.since.max(seen.time_ns);
        } else {
            times.iter_mut().for_each(|times| times.most.end(seen.until_ns));
            self.holds = false;
        }
    }
}

/// The time in which at least one of some holders held work.
#[derive(Debug, Default)]
pub(super) struct Times {
    least: Union,
    most: Sweep,
}

impl Times {
    /// Returns the bounds. `is_whole`: a doorbell was seen for each packet that the GPU took.
    pub(super) fn held(&self, is_whole: bool) -> Held {
        Held {
            least_ns: self.least.total(),
            most_ns: is_whole.then(|| self.most.total()),
        }
    }
}
