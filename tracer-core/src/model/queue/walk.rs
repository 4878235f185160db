//! Walks over the ring: each packet becomes a row at the first read that shows it.

use tracer_common::aql::{DispatchForm, Packet, amd_format, packet_type};

use super::Queue;
use super::adoption::question_of;
use super::slot::{self, Slot};
use crate::event::{Origin, Packets};
use crate::model::api;
use crate::model::signals::{Ran, Use};
use crate::tables::{Dispatch, Evidence, Fact, OtherPacket, PacketKind, Path, Unread};

impl Queue {
    /// Processes the packets of a walk. Each index becomes a fact once, at the first read that shows it.
    pub(in crate::model) fn packets(&mut self, walk: &Packets<'_>, out: &mut impl FnMut(Fact)) {
        self.observe(
            walk.origin.time_ns,
            walk.ring_packets,
            walk.read_index,
            walk.write_index,
        );
        self.restart_if_far_below(walk.first, question_of(walk), walk.origin.time_ns, out);
        self.before(walk.before);
        // Consumed packets come in runs. A late collector finds many of them.
        let mut run: Option<(u64, u64, Path)> = None;
        for (packet, index) in walk.packets.iter().zip(walk.first..u64::MAX) {
            let slot = slot::of(packet, index, walk);
            if index < self.frontier() {
                if slot != Slot::Silent {
                    self.read_in_question(packet, index, slot, walk.origin, out);
                }
                continue;
            }
            if slot == Slot::Silent || !self.span.capture(index) {
                self.end_run(run.take(), walk, out);
                continue;
            }
            let (path, _) = self.unseen.path(index);
            if let Slot::Packet(evidence) = slot {
                self.end_run(run.take(), walk, out);
                self.packet(packet, index, (evidence, path), walk, out);
                continue;
            }
            self.uses(packet.completion_signal(), walk.origin, None);
            match &mut run {
                Some((_, count, of)) if *of == path => *count += 1,
                _ => self.end_run(run.replace((index, 1, path)), walk, out),
            }
        }
        self.end_run(run, walk, out);
        self.give_up_lapped(walk.origin.time_ns, out);
    }

    /// Notes the values that every walk gives for the queue.
    pub(super) fn observe(&mut self, time_ns: u64, ring_packets: u32, read_index: u64, write_index: u64) {
        if ring_packets != 0 {
            self.ring_packets = ring_packets;
        }
        self.active_ns = self.active_ns.max(time_ns);
        self.see(read_index, write_index);
    }

    /// Notes the indexes at some time.
    pub(super) fn see(&mut self, read_index: u64, write_index: u64) {
        self.read_seen = self.read_seen.max(read_index);
        self.write_seen = self.write_seen.max(write_index);
    }

    fn end_run(&mut self, run: Option<(u64, u64, Path)>, walk: &Packets<'_>, out: &mut impl FnMut(Fact)) {
        if let Some((index, count, path)) = run {
            let fact = self.unread_run(index, count, walk.origin, Unread::Consumed, path);
            self.emit(fact, path, walk, out);
        }
    }

    fn packet(
        &mut self,
        packet: &Packet,
        index: u64,
        (evidence, path): (Evidence, Path),
        walk: &Packets<'_>,
        out: &mut impl FnMut(Fact),
    ) {
        let tid = self.publisher(walk.origin.tid, path, 1);
        let origin = Origin { tid, ..walk.origin };
        let uses = self.published.len();
        let mut fact = self.fact(packet, index, (evidence, path), origin);
        // A packet that was already consumed, or taken unseen, may have ended before its signal was read.
        if let (Evidence::Header, Path::Doorbell) = (evidence, path)
            && let Some(used) = self.published.get_mut(uses)
        {
            used.before = walk.stamps_before((index - walk.first) as usize);
        }
        // The walk's thread did not publish an unseen packet.
        api::link(&mut fact, walk.call.filter(|_| path == Path::Doorbell));
        self.emit(fact, path, walk, out);
    }

    /// Returns the row of a packet that was read, and counts the packet.
    pub(super) fn fact(
        &mut self,
        packet: &Packet,
        index: u64,
        (evidence, path): (Evidence, Path),
        origin: Origin,
    ) -> Fact {
        let form = match evidence {
            Evidence::Body => packet.body_form(),
            // A packet that was read does not come from a log.
            Evidence::Header | Evidence::Log => packet.dispatch_form(),
        };
        if let Some(form) = form {
            self.dispatches = self.dispatches.saturating_add(1);
            let ran = Ran {
                queue: self.number,
                index,
                kernel_object: packet.kernel_object(),
                kernel: None,
                gpu_id: self.gpu_id(),
            };
            self.uses(packet.completion_signal(), origin, Some(ran));
            return Fact::Dispatch(self.dispatch(packet, form, index, (evidence, path), origin));
        }
        let completion_signal = other_signal(packet);
        self.uses(completion_signal, origin, None);
        self.other_packets = self.other_packets.saturating_add(1);
        Fact::Packet(OtherPacket {
            queue: self.number,
            index,
            count: 1,
            pid: origin.pid,
            tid: origin.tid,
            time_ns: origin.time_ns,
            path,
            kind: kind(packet),
            unread: None,
            header: packet.header(),
            completion_signal,
            waits_for: packet.waits_for(),
        })
    }

    fn dispatch(
        &self,
        packet: &Packet,
        form: DispatchForm,
        index: u64,
        (evidence, path): (Evidence, Path),
        origin: Origin,
    ) -> Dispatch {
        Dispatch {
            queue: self.number,
            index,
            pid: origin.pid,
            tid: origin.tid,
            time_ns: origin.time_ns,
            path,
            evidence,
            reserve_ns: None,
            unreserved_ns: self.write_log.unreserved_ns(index),
            header: packet.header(),
            form: Some(form.into()),
            dimensions: packet.dimensions(form),
            kernel_object: packet.kernel_object(),
            kernarg: packet.kernarg(),
            grid: packet.grid(form),
            workgroup: packet.workgroup(),
            private_segment: packet.private_segment(),
            group_segment: packet.group_segment(),
            completion_signal: packet.completion_signal(),
            kernel: None,
            correlation: match form {
                DispatchForm::Kernel => packet.correlation(),
                DispatchForm::ExtKernel => 0,
            },
            api_call: None,
            stream: None,
        }
    }

    /// Notes that a published packet uses this completion signal, if it is not 0. The former contents of the signal are unknown here.
    fn uses(&mut self, signal: u64, origin: Origin, dispatch: Option<Ran>) {
        if signal != 0 {
            self.published.push(Use {
                pid: origin.pid,
                signal,
                time_ns: origin.time_ns,
                before: None,
                dispatch,
            });
        }
    }

    /// Reports a fact of a walk, or keeps it until the walk's doorbell shows which reserve it belongs to.
    fn emit(&mut self, mut fact: Fact, path: Path, walk: &Packets<'_>, out: &mut impl FnMut(Fact)) {
        // The thread whose doorbell led to the walk did not publish an unseen packet.
        if path != Path::Unseen
            && let Some(thread) = self.reserves.thread(walk.origin.tid)
        {
            if thread.awaits_doorbell(walk.origin) {
                return thread.keep(fact, out);
            }
            thread.date(&mut fact);
        }
        api::keep_what_is_sure(&mut fact, Some(walk.value));
        out(fact);
    }
}

/// Returns the handle of the completion signal of a packet that is no dispatch; 0 if it has none, or if the packet's layout is
/// unknown.
fn other_signal(packet: &Packet) -> u64 {
    match kind(packet) {
        PacketKind::VendorOther | PacketKind::Undefined => 0,
        _ => packet.completion_signal(),
    }
}

fn kind(packet: &Packet) -> PacketKind {
    match (packet.kind(), packet.amd_format()) {
        (packet_type::BARRIER_AND, _) => PacketKind::BarrierAnd,
        (packet_type::BARRIER_OR, _) => PacketKind::BarrierOr,
        (packet_type::AGENT_DISPATCH, _) => PacketKind::AgentDispatch,
        (packet_type::VENDOR, amd_format::PM4_IB) => PacketKind::VendorPm4Ib,
        (packet_type::VENDOR, amd_format::BARRIER_VALUE) => PacketKind::VendorBarrierValue,
        (packet_type::VENDOR, _) => PacketKind::VendorOther,
        // The GPU took it, and left its body.
        (packet_type::INVALID, _) if packet.body_is_pm4_ib() => PacketKind::VendorPm4Ib,
        _ => PacketKind::Undefined,
    }
}
