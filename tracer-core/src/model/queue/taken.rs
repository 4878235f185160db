//! Packets that the GPU took from a queue whose doorbells no probe saw.
//!
//! The GPU invalidates the header of a packet, and leaves its body in the slot. The body alone does not show over which path the
//! packet came: the event of its doorbell may still be on its way. So a body waits here until its index is unseen, and only then
//! becomes a row, with path `unseen` and evidence `body`.

use std::collections::BTreeMap;

use tracer_common::aql::Packet;

use super::Queue;
use super::slot::{self, Slot};
use crate::event::{Origin, Packets};
use crate::tables::{Evidence, Fact, Path};

/// Most bodies kept for one queue. Packets beyond it stay unread.
const MOST: usize = 1 << 16;

/// The bodies that wait, by index: with the evidence, and the time at which they were read.
#[derive(Debug, Default)]
pub(super) struct Taken {
    bodies: BTreeMap<u64, (Box<Packet>, Evidence, u64)>,
}

impl Queue {
    /// Keeps the packets whose slots still show them.
    pub(in crate::model) fn taken(&mut self, read: &Packets<'_>) {
        for (packet, index) in read.packets.iter().zip(read.first..u64::MAX) {
            let Slot::Packet(evidence) = slot::of(packet, index, read) else {
                continue;
            };
            let is_open = index >= self.span.end() || self.span.is_any_missing(index, index.saturating_add(1));
            if is_open && index >= self.frontier() && self.taken.bodies.len() < MOST {
                let body = (Box::new(*packet), evidence, read.origin.time_ns);
                self.taken.bodies.entry(index).or_insert(body);
            }
        }
    }

    /// Reports the bodies whose indexes are known to be unseen, and forgets those below.
    pub(super) fn report_taken(&mut self, out: &mut impl FnMut(Fact)) {
        let later = self.taken.bodies.split_off(&self.unseen.end);
        for (index, (packet, evidence, time_ns)) in std::mem::replace(&mut self.taken.bodies, later) {
            let (path, _) = self.unseen.path(index);
            if path != Path::Unseen || !self.span.capture(index) {
                continue;
            }
            let (pid, tid) = (self.pid, self.publisher(0, path, 1));
            out(self.fact(&packet, index, (evidence, path), Origin { time_ns, pid, tid }));
        }
        // They may have completed before they were read, so their signals say nothing about them.
        self.published.clear();
    }
}
