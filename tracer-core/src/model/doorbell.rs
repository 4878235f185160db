//! Doorbells: which indexes one publishes.

use tracer_common::queue::MAX_PACKETS;

use super::queue::Queue;
use crate::event::{self, Doorbell};
use crate::fact::{self, Fact};

impl Queue {
    /// A doorbell was rung on this queue; the packets of its walk have come before.
    pub(super) fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        let now = event.origin.time_ns;
        let reserved_ns = self.reserves.ring(event, out);
        self.doorbells = self.doorbells.saturating_add(1);

        if !event.unreadable {
            self.observe(now, event.ring_packets, event.read_index, event.write_index);
            // A walk's own is no sighting: it is bounded by what may have been written.
            self.write_log.see(now, event.write_index);
            if self.created.is_none() {
                self.ring_base = event.ring_base;
            }
            if event.first < event.end {
                self.restart_if_far_below(event.first, now, out);
                self.span.cover(event.first, event.end, false);
                self.walked_from = self.walked_from.max(event.first);
            }
        }
        // An unreadable doorbell knows neither end of its walk: nothing follows from it but what its value says.
        let first = if event.unreadable { self.span.end() } else { event.first };
        let through = self.through(event);
        let credited = self.credited.unwrap_or(first);
        self.span.cover(self.span.end(), through, event.unreadable);
        self.credited = Some(credited.max(through));
        if !event.unreadable {
            self.max_depth = self.max_depth.max(self.span.end().saturating_sub(event.read_index));
        }

        out(Fact::Doorbell(fact(
            event,
            Some(self.number),
            through.saturating_sub(credited),
            reserved_ns.map(|ns| now.saturating_sub(ns)),
        )));
        self.give_up_lapped(now, out);
    }

    /// One past the last index that the doorbell's value publishes.
    ///
    /// The value is whatever the process stored. One that lies more than the largest ring beyond everything known is
    /// garbage, also where no write index is there to tell.
    fn through(&self, event: &Doorbell) -> u64 {
        let known = event.end.max(self.span.end());
        match event.value.checked_add(1) {
            Some(next) if !event.beyond && next <= known.saturating_add(u64::from(MAX_PACKETS)) => next,
            _ => event.end,
        }
    }
}

/// The row of a doorbell.
pub(super) fn fact(event: &Doorbell, queue: Option<u32>, published: u64, latency: Option<u64>) -> fact::Doorbell {
    let event::Origin { time_ns, pid, tid } = event.origin;
    fact::Doorbell {
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
