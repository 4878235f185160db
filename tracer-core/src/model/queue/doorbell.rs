//! Doorbells, and the indexes that they publish.

use tracer_common::kfd::QueueType;
use tracer_common::queue::MAX_PACKETS;

use super::adoption::question;
use super::{Queue, Sight};
use crate::event::{self, Before, Doorbell};
use crate::model::write_pointer;
use crate::tables::{self, Fact};

impl Queue {
    /// Processes a doorbell of this queue. The packets of its walk were processed before.
    pub(in crate::model) fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        let now = event.origin.time_ns;
        let thread = self.reserves.thread(event.origin.tid);
        let reserved_ns = thread.and_then(|thread| thread.ring(event, out));
        self.doorbells = self.doorbells.saturating_add(1);

        if !event.unreadable {
            self.before(event.rung_end.map(|rung_end| Before {
                rung_end,
                value: event.value,
                read_index: event.read_index,
            }));
            self.unseen.floor.get_or_insert(event.write_index);
            self.observe(now, event.ring_packets, event.read_index, event.write_index);
            // The write index of a walk is not used here, because it is bounded by what may have been written.
            self.write_log.see(now, event.write_index);
            if self.created.is_none() && event.ring_base != 0 {
                self.ring_base = event.ring_base;
            }
            if event.first < event.end {
                self.restart_if_far_below(event.first, question_of(event), now, out);
                let first = event.first.max(self.frontier());
                if first < event.end {
                    self.span.cover(first, event.end, false);
                }
                self.walked_from = self.walked_from.max(event.first);
            }
        }
        let named = self.name(event, out);
        // An unreadable doorbell gives neither end of its walk. Only its value is known.
        let first = if event.unreadable {
            self.span.end()
        } else {
            event.first.max(self.frontier())
        };
        let through = self.through(event);
        let credited = self.credited.unwrap_or(first);
        self.span.cover(self.span.end(), through, event.unreadable);
        self.credited = Some(credited.max(through));
        if through > credited {
            self.publish_log.publish(now, through);
        }
        if !event.unreadable {
            let in_question = self.span.published() == 0 && through < self.frontier();
            let end = if in_question { through } else { self.span.end() };
            self.max_depth = self.max_depth.max(end.saturating_sub(event.read_index));
        }

        out(Fact::Doorbell(fact(
            event,
            Some(self.number),
            through.saturating_sub(credited).saturating_add(named),
            reserved_ns.map(|ns| now.saturating_sub(ns)),
        )));
        self.give_up_lapped(now, out);
        let settled = self.span.first_missing().unwrap_or(self.span.end());
        self.unseen.forget_below(settled);
    }

    /// Returns one past the last index that the doorbell's value publishes.
    ///
    /// The process may store any value. A value more than the largest ring beyond everything known is garbage, even if there is no
    /// write index to compare it with.
    fn through(&self, event: &Doorbell) -> u64 {
        let known = event.end.max(self.span.end());
        match event.value.checked_add(1) {
            Some(next) if !event.beyond && next <= known.saturating_add(u64::from(MAX_PACKETS)) => next,
            _ => event.end,
        }
    }
}

/// Returns what a doorbell says of a queue, for the case that it is the first event of the queue.
pub(in crate::model) fn sight(event: &Doorbell) -> Sight {
    Sight {
        origin: event.origin,
        write_pointer: write_pointer(event.handle),
        kind: QueueType::ComputeAql,
        // For an unreadable doorbell only the value is known: at least that index was published.
        first: if event.unreadable { event.value } else { event.first },
        question: (!event.unreadable).then(|| question_of(event)),
    }
}

/// Returns the indexes that the first sample of a queue leaves in question, for the case that this doorbell is the first sample.
pub(super) fn question_of(event: &Doorbell) -> (u64, u64) {
    question(event.read_index, event.write_index, event.ring_packets)
}

/// Returns the row of a doorbell.
pub(in crate::model) fn fact(
    event: &Doorbell,
    queue: Option<u32>,
    published: u64,
    latency: Option<u64>,
) -> tables::Doorbell {
    let event::Origin { time_ns, pid, tid } = event.origin;
    tables::Doorbell {
        queue,
        pid,
        tid,
        time_ns,
        value: event.value,
        published,
        read_index: event.read_index,
        write_index: event.write_index,
        reserve_to_doorbell_ns: latency,
        beyond: event.beyond,
    }
}
