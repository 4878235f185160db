//! Queues that were there before anybody looked: what may be claimed of the packets that lay in their rings.
//!
//! At the first look at a queue, its ring holds packets from the read index on that were rung before, packets whose
//! doorbells are still to come, and perhaps some that will never be rung. Nothing in the ring tells them apart. So the
//! indexes that a producer may have rung by then are in question: below the write index, and below the read index plus
//! the ring, since a producer writes its packet before it rings and waits for a slot before it writes. One of them is
//! claimed if a doorbell that was seen names it, while the GPU had not passed it: its value is the index. (That a higher
//! doorbell was seen proves nothing: a doorbell before it may have published the same.) All others are `unclaimed`.
//!
//! Whatever lies above was reserved or written later, so it was rung later: there everything is as on a queue whose
//! creation was seen.

use std::collections::BTreeMap;

use tracer_common::aql::Packet;

use super::queue::Queue;
use super::walk::Slot;
use crate::event::{Doorbell, Origin, Packets};
use crate::fact::{Fact, Path, Unread};

/// What the first look at a queue leaves in question.
#[derive(Debug)]
pub(super) struct Adoption {
    /// The read index: what lies below was consumed before.
    base: u64,
    /// One past the last index that can have been rung before.
    frontier: u64,
    /// What is known of the indexes between.
    known: BTreeMap<u64, Known>,
    claimed: u64,
    /// The lowest and the highest index claimed.
    bounds: Option<(u64, u64)>,
    /// One past the highest index, below the frontier, that a walk covered.
    walked_end: u64,
    /// Unclaimed, and claimed, at former looks, if the queue had to be begun anew.
    former: u64,
    former_claimed: u64,
    /// Whether something read or rung for waits for the other half.
    waits: bool,
}

/// What is known of an index in question.
#[derive(Debug)]
enum Known {
    /// Its packet, or that it was consumed; and who read it.
    Read(Box<(Packet, Slot, Origin)>),
    /// Who rang for it.
    Named(Origin),
    /// Both: it is a fact.
    Claimed,
}

/// The read index of a look, and one past the last index that can have been rung before.
///
/// The write index may be taken later than the read index: both bounds hold.
pub(super) fn question(read_index: u64, write_index: u64, ring_packets: u32) -> (u64, u64) {
    let reach = read_index.saturating_add(u64::from(ring_packets));
    (read_index, write_index.min(reach))
}

/// That of a walk's packets.
pub(super) fn question_of(walk: &Packets<'_>) -> (u64, u64) {
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

    /// The first index that is not in question.
    pub(super) fn frontier(&self) -> u64 {
        self.frontier
    }

    /// Indexes claimed, of all looks.
    pub(super) fn claimed(&self) -> u64 {
        self.claimed
    }

    /// The lowest and the highest index claimed.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        self.bounds
    }

    /// Indexes that lay in the ring and that no doorbell that was seen names.
    pub(super) fn unclaimed(&self) -> u64 {
        let in_question = (self.frontier - self.base).saturating_add(self.former);
        in_question.saturating_sub(self.claimed)
    }

    fn asks(&self, index: u64) -> bool {
        (self.base..self.frontier).contains(&index)
    }

    /// A slot told what `index` is. If it is claimed by that: who rang for it.
    fn read(&mut self, index: u64, packet: &Packet, slot: Slot, origin: Origin) -> Option<Origin> {
        if !self.asks(index) {
            return None;
        }
        match self.known.get_mut(&index) {
            Some(Known::Read(_) | Known::Claimed) => None,
            Some(known @ Known::Named(_)) => match std::mem::replace(known, Known::Claimed) {
                Known::Named(rang) => Some(rang),
                _ => None,
            },
            None => {
                self.known.insert(index, Known::Read(Box::new((*packet, slot, origin))));
                self.waits = true;
                None
            }
        }
    }

    /// A doorbell names `index`. Whether that claims it, and what was read of it before.
    fn name(&mut self, index: u64, origin: Origin) -> (bool, Option<(Packet, Slot)>) {
        if !self.asks(index) {
            return (false, None);
        }
        let read = match self.known.remove(&index) {
            Some(known @ (Known::Named(_) | Known::Claimed)) => {
                self.known.insert(index, known);
                return (false, None);
            }
            Some(Known::Read(read)) => Some((read.0, read.1)),
            None => None,
        };
        let known = if read.is_some() {
            Known::Claimed
        } else {
            Known::Named(origin)
        };
        self.waits |= read.is_none();
        self.known.insert(index, known);
        self.claimed = self.claimed.saturating_add(1);
        let (low, high) = self.bounds.unwrap_or((index, index));
        self.bounds = Some((low.min(index), high.max(index)));
        (true, read)
    }

    /// Nothing more is waited for: the indexes that were rung for, but never read.
    fn conclude(&mut self) -> Vec<(u64, Origin)> {
        self.waits = false;
        self.known.retain(|_, known| !matches!(known, Known::Read(_)));
        let rung = |(&index, known): (&u64, &mut Known)| match std::mem::replace(known, Known::Claimed) {
            Known::Named(origin) => Some((index, origin)),
            _ => None,
        };
        self.known.iter_mut().filter_map(rung).collect()
    }

    /// The write index was seen lower than at the first look: whatever lies above was reserved since.
    fn lower(&mut self, write_index: u64) {
        self.frontier = self.frontier.min(write_index.max(self.base));
        self.walked_end = self.walked_end.min(self.frontier);
    }

    /// The first look was at garbage: another one.
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
    /// The first index that is not in question; 0 if the queue's creation was seen.
    pub(super) fn frontier(&self) -> u64 {
        self.adoption.as_ref().map_or(0, Adoption::frontier)
    }

    /// A slot told what an index below the frontier is.
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

    /// A doorbell claims the index that its value names, if that is in question; how many that are.
    pub(super) fn name(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) -> u64 {
        let Some(adoption) = self.adoption.as_mut().filter(|_| !event.unreadable) else {
            return 0;
        };
        adoption.walked_end = adoption.walked_end.max(event.end.min(adoption.frontier));
        // A value that nobody reserved names nothing, and behind the read index a doorbell publishes nothing.
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
            Slot::Packet(evidence) => self.fact(packet, index, evidence, rang),
            Slot::Consumed | Slot::Silent => self.unread_run(index, 1, rang, Unread::Consumed, Path::Doorbell),
        });
    }

    /// Nothing more will be read of what is in question: its slots were used again since, or the queue is over.
    pub(super) fn conclude(&mut self, out: &mut impl FnMut(Fact)) {
        let never_read = self.adoption.as_mut().map(Adoption::conclude).unwrap_or_default();
        for (index, rang) in never_read {
            let reason = self.reason_of(index);
            out(self.unread_run(index, 1, rang, reason, Path::Doorbell));
        }
    }

    /// A reserve was seen before the first look, so what lies above its write index was reserved while somebody looked.
    pub(super) fn reserved_early(&mut self, write_index: u64) {
        if let Some(adoption) = self.adoption.as_mut().filter(|adoption| adoption.known.is_empty()) {
            adoption.lower(write_index);
            self.span.restart(adoption.frontier);
        }
    }

    /// Whether [`Self::conclude`] has something to do.
    pub(super) fn is_in_question(&self) -> bool {
        self.adoption.as_ref().is_some_and(|adoption| adoption.waits)
    }

    /// Starts the span anew if `first` cannot belong to it: what began it was garbage.
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

    /// The queue's creation turned up after its first doorbell: everything was published since, and nothing is in question.
    pub(super) fn dissolve(&mut self, out: &mut impl FnMut(Fact)) {
        let Some(adoption) = self.adoption.take() else { return };
        // Their rows are out, and count, whatever that look was at.
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
