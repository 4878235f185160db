//! Queues that existed before tracer watched them, and the packets in their rings that may be claimed.
//!
//! At the first sample of a queue, its ring contains packets from the read index on whose doorbells were rung before, packets whose
//! doorbells are still to come, and perhaps packets whose doorbells will never be rung. The contents of the ring do not distinguish
//! them. So the indexes that a producer may have rung for by then are in question: those below the write index, and below the read
//! index plus the ring, because a producer writes its packet before it rings, and waits for a slot before it writes. An index in
//! question is claimed if an observed doorbell names it (the doorbell's value is the index) while the GPU had not passed it. (A
//! higher doorbell proves nothing: a doorbell before it may have published the same index.) All other indexes in question are
//! `unclaimed`.
//!
//! Higher indexes were reserved or written later, so they were rung for later. They are treated as on a queue whose creation was
//! seen.

use std::collections::BTreeMap;

use tracer_common::aql::Packet;

use super::Queue;
use super::slot::Slot;
use crate::event::{Doorbell, Origin, Packets};
use crate::tables::{Fact, Path, Unread};

/// The indexes that the first sample of a queue leaves in question.
#[derive(Debug)]
pub(super) struct Adoption {
    /// The read index. Lower indexes were consumed before.
    base: u64,
    /// One past the last index that can have been rung for before: the first index that is not in question.
    pub(super) frontier: u64,
    /// Knowledge of the indexes in between.
    known: BTreeMap<u64, Known>,
    /// Number of claimed indexes, over all first samples.
    pub(super) claimed: u64,
    /// The lowest and the highest claimed index.
    pub(super) bounds: Option<(u64, u64)>,
    /// One past the highest index below the frontier that a walk covered.
    walked_end: u64,
    /// Indexes in question, and claimed indexes, of earlier first samples, if the queue had to be started again.
    former: u64,
    former_claimed: u64,
    /// Whether an index that was read waits for its doorbell, or the other way round.
    waits: bool,
}

/// Knowledge of an index in question.
#[derive(Debug)]
enum Known {
    /// Its packet, or the fact that it was consumed; and the origin of the walk that read it.
    Read(Box<(Packet, Slot, Origin)>),
    /// The origin of the doorbell that named it.
    Named(Origin),
    /// Both: it is a fact.
    Claimed,
}

/// Returns the read index of a sample, and one past the last index that can have been rung for before.
///
/// The write index may be taken later than the read index: both bounds are valid.
pub(super) fn question(read_index: u64, write_index: u64, ring_packets: u32) -> (u64, u64) {
    let reach = read_index.saturating_add(u64::from(ring_packets));
    (read_index, write_index.min(reach))
}

/// Returns the same for the packets of a walk.
pub(in crate::model) fn question_of(walk: &Packets<'_>) -> (u64, u64) {
    question(walk.read_index, walk.write_index, walk.ring_packets)
}

impl Adoption {
    pub(super) fn new((base, frontier): (u64, u64)) -> Self {
        Self {
            base,
            frontier: frontier.max(base),
            known: BTreeMap::new(),
            claimed: 0,
            bounds: None,
            walked_end: base,
            former: 0,
            former_claimed: 0,
            waits: false,
        }
    }

    /// Returns the number of indexes that were in the ring and that no observed doorbell names.
    pub(super) fn unclaimed(&self) -> u64 {
        let in_question = (self.frontier - self.base).saturating_add(self.former);
        in_question.saturating_sub(self.claimed)
    }

    fn asks(&self, index: u64) -> bool {
        (self.base..self.frontier).contains(&index)
    }

    /// Notes what a slot shows of `index`. Returns the origin of the doorbell that named the index, if it is claimed now.
    fn read(&mut self, index: u64, packet: &Packet, slot: Slot, origin: Origin) -> Option<Origin> {
        if !self.asks(index) {
            return None;
        }
        let Some(known) = self.known.get_mut(&index) else {
            self.known.insert(index, Known::Read(Box::new((*packet, slot, origin))));
            self.waits = true;
            return None;
        };
        let Known::Named(rang) = *known else { return None };
        *known = Known::Claimed;
        Some(rang)
    }

    /// Notes that a doorbell names `index`. Returns whether that claims the index, and what was read of it before.
    fn name(&mut self, index: u64, origin: Origin) -> (bool, Option<(Packet, Slot)>) {
        if !self.asks(index) {
            return (false, None);
        }
        let (known, read) = match self.known.get(&index) {
            Some(Known::Named(_) | Known::Claimed) => return (false, None),
            Some(Known::Read(read)) => (Known::Claimed, Some((read.0, read.1))),
            None => (Known::Named(origin), None),
        };
        self.waits |= read.is_none();
        self.known.insert(index, known);
        self.claimed = self.claimed.saturating_add(1);
        let (low, high) = self.bounds.unwrap_or((index, index));
        self.bounds = Some((low.min(index), high.max(index)));
        (true, read)
    }

    /// Stops waiting. Returns the indexes that were rung for but never read.
    fn conclude(&mut self) -> Vec<(u64, Origin)> {
        self.waits = false;
        self.known.retain(|_, known| !matches!(known, Known::Read(_)));
        let rung = |(&index, known): (&u64, &mut Known)| match std::mem::replace(known, Known::Claimed) {
            Known::Named(origin) => Some((index, origin)),
            _ => None,
        };
        self.known.iter_mut().filter_map(rung).collect()
    }

    /// Notes that the write index was lower than at the first sample. All indexes from there on were reserved since.
    fn lower(&mut self, write_index: u64) {
        self.frontier = self.frontier.min(write_index.max(self.base));
        self.walked_end = self.walked_end.min(self.frontier);
    }

    /// Starts again with another first sample, because the previous one was of garbage.
    fn begin_anew(&mut self, question: (u64, u64)) {
        *self = Self {
            former: self.unclaimed().saturating_add(self.claimed),
            former_claimed: self.claimed,
            claimed: self.claimed,
            ..Self::new(question)
        };
    }
}

impl Queue {
    /// Returns the first index that is not in question; 0 if the queue's creation was seen.
    pub(super) fn frontier(&self) -> u64 {
        self.adoption.as_ref().map_or(0, |adoption| adoption.frontier)
    }

    /// Notes what a slot shows of an index below the frontier.
    pub(super) fn read_in_question(
        &mut self,
        packet: &Packet,
        index: u64,
        slot: Slot,
        origin: Origin,
        out: &mut impl FnMut(Fact),
    ) {
        let adoption = self.adoption.as_mut();
        if let Some(rang) = adoption.and_then(|adoption| adoption.read(index, packet, slot, origin)) {
            self.claim(packet, index, slot, rang, out);
        }
    }

    /// Claims the index that the doorbell's value names, if it is in question. Returns the number of claimed indexes.
    pub(super) fn name(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) -> u64 {
        let Some(adoption) = self.adoption.as_mut().filter(|_| !event.unreadable) else {
            return 0;
        };
        adoption.walked_end = adoption.walked_end.max(event.end.min(adoption.frontier));
        // A value that no producer has reserved names nothing. A doorbell behind the read index publishes nothing.
        if event.beyond || event.value < event.read_index || event.value >= event.write_index {
            return 0;
        }
        let (new, read) = adoption.name(event.value, event.origin);
        if let Some((packet, slot)) = read {
            self.claim(&packet, event.value, slot, event.origin, out);
        }
        u64::from(new)
    }

    fn claim(&mut self, packet: &Packet, index: u64, slot: Slot, rang: Origin, out: &mut impl FnMut(Fact)) {
        out(match slot {
            Slot::Packet(evidence) => self.fact(packet, index, (evidence, Path::Doorbell), rang),
            Slot::Consumed | Slot::Silent => self.unread_run(index, 1, rang, Unread::Consumed, Path::Doorbell),
        });
    }

    /// Concludes the indexes in question, because no more of them will be read: their slots were reused since, or the queue has
    /// ended.
    pub(super) fn conclude(&mut self, out: &mut impl FnMut(Fact)) {
        let never_read = self.adoption.as_mut().map(Adoption::conclude).unwrap_or_default();
        for (index, rang) in never_read {
            let (reason, _) = self.reason(index);
            out(self.unread_run(index, 1, rang, reason, Path::Doorbell));
        }
    }

    /// Notes a reserve that was seen before the first sample. Indexes from its write index on were reserved while the sample was
    /// taken.
    pub(in crate::model) fn reserved_early(&mut self, write_index: u64) {
        if let Some(adoption) = self.adoption.as_mut().filter(|adoption| adoption.known.is_empty()) {
            adoption.lower(write_index);
            self.span.restart(adoption.frontier);
        }
    }

    /// Returns whether [`Self::conclude`] has something to do.
    pub(super) fn is_in_question(&self) -> bool {
        self.adoption.as_ref().is_some_and(|adoption| adoption.waits)
    }

    /// Starts the span again if `first` cannot belong to it, because garbage started it.
    pub(super) fn restart_if_far_below(
        &mut self,
        first: u64,
        question: (u64, u64),
        now: u64,
        out: &mut impl FnMut(Fact),
    ) {
        if !self.span.is_far_above(first) {
            return;
        }
        self.conclude(out);
        self.give_up_all(now, out);
        match &mut self.adoption {
            Some(adoption) => adoption.begin_anew(question),
            none => *none = Some(Adoption::new(question)),
        }
        self.span.restart(self.frontier());
        self.unseen.restart();
        self.credited = None;
    }

    /// Ends the adoption, because the queue's creation was reported after its first doorbell. Everything was published since the
    /// creation, and nothing is in question.
    pub(super) fn dissolve(&mut self, out: &mut impl FnMut(Fact)) {
        let Some(adoption) = self.adoption.take() else { return };
        // The rows of claimed indexes were reported and count, even if that sample was of garbage.
        self.span.count_former(adoption.former_claimed);
        let begun = self.span.published() > 0;
        self.span
            .lower_to(0, if begun { adoption.frontier } else { adoption.walked_end });
        for (index, known) in adoption.known {
            match known {
                Known::Claimed => drop(self.span.capture(index)),
                Known::Read(read) if index < self.span.end() && self.span.capture(index) => {
                    self.claim(&read.0, index, read.1, read.2, out);
                }
                Known::Read(_) | Known::Named(_) => {}
            }
        }
    }
}
