//! Samples of a queue's indexes: what they show of the GPU's progress, and of packets that bypassed every probe.

use super::{End, Queue};
use crate::event::{Occasion, Progress};
use crate::model::LINGER_NS;
use crate::tables::{self, Fact};

/// Samples of one queue.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The last sample of the collector.
    sampled: Option<Progress>,
    /// The last sample of a thread that ends the queue, or of a collector that stops.
    last: Option<Progress>,
    /// The latest of all samples, and whether a row reports it.
    newest: Option<Progress>,
    reported: bool,
    /// Time at which the read index was first seen at its current value.
    pub(super) moved_ns: Option<u64>,
    /// A sample of a queue without any doorbell, which counts once it is [`SETTLED_NS`] old.
    settling: Option<Progress>,
}

/// Age from which a sample of the collector counts, for a queue whose doorbells no probe has ever seen: by then every doorbell that
/// led to it has arrived, or its loss has.
const SETTLED_NS: u64 = LINGER_NS;

impl Queue {
    /// Processes a sample of the queue. `lost` is whether doorbells may be missing.
    pub(in crate::model) fn sample(&mut self, sample: &Progress, lost: bool, out: &mut impl FnMut(Fact)) {
        // A queue cannot have read more than was written. Also ignore the sample if it may be of another queue at this address, of
        // which nothing else was seen yet.
        if sample.read_index > sample.write_index || self.is_elsewhere(sample) {
            return;
        }
        // What the GPU has taken by now may have been published since tracer stopped to record doorbells. The sample shows that
        // the queue still existed after the last doorbell that was recorded.
        if sample.occasion == Occasion::Detached {
            self.samples.last = Some(*sample);
            return;
        }
        self.unseen.floor.get_or_insert(sample.write_index);
        if sample.occasion != Occasion::Sample {
            self.samples.last = Some(*sample);
        }
        if let Some(rung_end) = sample.rung_end {
            let from = rung_end.max(self.credited.unwrap_or(0));
            self.unseen.add(from, sample.read_index);
        } else if self.samples.sampled.is_none_or(|old| old.after_ns <= sample.after_ns) {
            self.samples.sampled = Some(*sample);
        }
        if !matches!(sample.occasion, Occasion::Sample | Occasion::TraceEnd) {
            self.see(sample.read_index, sample.write_index);
        }
        let newest = self.samples.newest;
        // A sample of the collector arrives late. Threads of the process may have sampled the queue since.
        if newest.is_some_and(|newest| sample.origin.time_ns < newest.after_ns) {
            return out(self.sample_fact(sample));
        }
        let moved = newest.is_none_or(|newest| newest.read_index != sample.read_index);
        if moved {
            self.samples.moved_ns = Some(sample.after_ns);
        }
        let changed = moved || newest.is_none_or(|newest| newest.write_index != sample.write_index);
        if changed {
            // The last sample that found the queue unchanged bounds the change from below.
            if let Some(newest) = newest.filter(|_| !self.samples.reported) {
                out(self.sample_fact(&newest));
            }
            out(self.sample_fact(sample));
        }
        self.samples.reported = changed;
        self.samples.newest = Some(*sample);
        self.publish_log.taken(sample.read_index);
        if sample.occasion == Occasion::Sample {
            self.settle(sample, lost, out);
        }
    }

    /// Draws the conclusions from an old sample of a queue that rings past every probe, so that its packets become rows while it
    /// exists. A queue with doorbells waits for its end: see [`super::unseen`].
    fn settle(&mut self, now: &Progress, lost: bool, out: &mut impl FnMut(Fact)) {
        if lost || self.doorbells > 0 || self.created.is_none() {
            self.samples.settling = None;
            return;
        }
        let old = self.samples.settling.get_or_insert(*now);
        if old.after_ns.saturating_add(SETTLED_NS) > now.origin.time_ns {
            return;
        }
        let (read_index, write_index) = (old.read_index, old.write_index);
        *old = *now;
        self.unseen.add(self.credited.unwrap_or(0), read_index);
        self.see(read_index, write_index);
        self.extend_over_unseen();
        self.report_taken(out);
    }

    /// Returns whether a sample shows that another queue is at this address now: indexes never go back.
    fn is_elsewhere(&self, sample: &Progress) -> bool {
        match self.samples.newest {
            Some(newest) if sample.origin.time_ns >= newest.after_ns => {
                sample.read_index < newest.read_index || sample.write_index < newest.write_index
            }
            Some(_) => false,
            None => self.was_replaced(sample.origin.time_ns, Some(sample.read_index)),
        }
    }

    fn sample_fact(&self, sample: &Progress) -> Fact {
        Fact::Progress(tables::Progress {
            queue: self.number,
            pid: self.pid,
            time_ns: sample.origin.time_ns,
            until_ns: sample.after_ns,
            occasion: sample.occasion,
            read_index: sample.read_index,
            write_index: sample.write_index,
            published_end: self.publish_log.end_at(sample.origin.time_ns),
        })
    }

    /// Draws the conclusions from the samples, when the queue has ended and all its events have arrived. `lost` is whether
    /// doorbells may be missing.
    pub(super) fn conclude_samples(&mut self, lost: bool) {
        if let Some(sample) = self.sampled_beyond() {
            if lost {
                self.unseen.doubted = true;
            } else {
                self.unseen.add(self.credited.unwrap_or(0), sample.read_index);
            }
        }
        if let Some(sample) = self.samples.sampled.take().filter(|sample| self.saw(sample)) {
            self.see(sample.read_index, sample.write_index);
        }
        self.extend_over_unseen();
    }

    /// Extends the span over the unseen indexes.
    fn extend_over_unseen(&mut self) {
        let span_end = self.span.end();
        for &(start, end) in self.unseen.ranges.iter().filter(|(_, end)| *end > span_end) {
            // Lower indexes may have been published before tracer watched the queue, or by a doorbell of an unknown queue.
            self.span.skip_to(start);
            self.span.cover(self.span.end(), end, false);
            self.read_seen = self.read_seen.max(end);
        }
    }

    /// Returns the collector's last sample, if the GPU was beyond what was published. Returns `None` if the sample came after the
    /// queue's end, because then it may be of the next queue at this address.
    fn sampled_beyond(&self) -> Option<Progress> {
        let sample = self.samples.sampled.filter(|sample| self.saw(sample))?;
        let from = self.credited.unwrap_or(0).max(self.unseen.floor?).max(self.unseen.end);
        (sample.read_index > from).then_some(sample)
    }

    fn saw(&self, sample: &Progress) -> bool {
        self.end.is_none_or(|end| sample.after_ns <= end.time_ns())
    }

    /// Returns `unseen` of its row.
    pub(super) fn unseen_count(&self) -> Option<u64> {
        let sampled = self.samples.newest.is_some() || self.unseen.rows > 0;
        let open = self.unseen.doubted || self.sampled_beyond().is_some();
        (sampled && !open).then_some(self.unseen.rows)
    }

    /// Returns `watched_to_end` of its row.
    pub(super) fn watched_to_end(&self) -> bool {
        let Some(last) = self.samples.last.filter(|last| last.origin.time_ns >= self.active_ns) else {
            return false;
        };
        // Packets that are written, but neither taken nor rung for, may still be taken.
        let nothing_left = last.write_index.max(self.reserved_end) <= self.span.end();
        match (last.occasion, self.end) {
            (Occasion::Destroyed, Some(End::Destroyed(_))) => true,
            (Occasion::Destroy, Some(End::Destroyed(_))) | (Occasion::ProcessEnd, Some(_)) => nothing_left,
            (Occasion::TraceEnd | Occasion::Detached, None) => true,
            _ => false,
        }
    }

    /// Returns the last sample of this queue.
    pub(super) fn last_sample(&self) -> Option<Progress> {
        let last = self.samples.last.filter(|last| last.occasion != Occasion::Detached);
        let samples = [self.samples.newest, last];
        samples.into_iter().flatten().find(|sample| self.saw(sample))
    }
}
