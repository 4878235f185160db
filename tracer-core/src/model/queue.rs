//! One user queue: its state, and its final numbers.

pub(super) mod adoption;
pub(super) mod doorbell;
mod gaps;
mod publish_log;
mod reserves;
mod samples;
mod slot;
mod span;
mod taken;
mod totals;
mod unseen;
mod walk;
mod write_log;

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::queue_origin::Creator;
use super::signals::Use;
use crate::event::{Origin, ReserveOp};
use crate::tables::{Fact, OtherPacket, PacketKind, Path, Unread};
use adoption::Adoption;
use gaps::Gap;
use publish_log::PublishLog;
use reserves::Reserves;
use samples::Samples;
use span::Span;
use taken::Taken;
use unseen::Unseen;
use write_log::WriteLog;

/// A time longer than any by which events of one queue can be out of order.
const REORDER_NS: u64 = 10_000_000;

/// How a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The queue was destroyed or replaced, or its address space went away. No doorbell of it can be rung after this time.
    Destroyed(u64),
    /// The process exited. Threads that had not exited yet may ring doorbells a little longer.
    ProcessEnded(u64),
}

impl End {
    pub(super) fn time_ns(self) -> u64 {
        match self {
            Self::Destroyed(ns) | Self::ProcessEnded(ns) => ns,
        }
    }
}

/// Properties of a queue, from an event that may be its first.
pub(super) struct Sight {
    pub(super) origin: Origin,
    /// Address of the write pointer.
    pub(super) write_pointer: u64,
    pub(super) kind: QueueType,
    /// First index that is counted, if nothing more is known.
    pub(super) first: u64,
    /// The read index, and one past the last index that can have been rung for before; `None` if they could not be read.
    pub(super) question: Option<(u64, u64)>,
}

/// What the KFD's files say of an adopted queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kfd {
    pub(super) queue_id: Option<u32>,
    pub(super) gpu_id: Option<u32>,
    /// Whether the files were consulted.
    pub(super) asked: bool,
}

/// A user queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) number: u32,
    pub(super) pid: u32,
    pub(super) write_pointer: u64,
    pub(super) kind: QueueType,
    pub(super) created: Option<CreateQueue>,
    pub(super) creator: Creator,
    /// Exit of CREATE_QUEUE, or the first event of an adopted queue.
    pub(super) created_ns: u64,
    pub(super) end: Option<End>,
    pub(super) ring_base: u64,
    pub(super) ring_packets: u32,

    /// Indexes in the ring when the queue was found; `None` if its creation was seen.
    adoption: Option<Adoption>,
    /// What the KFD's files say of an adopted queue.
    pub(super) kfd: Kfd,
    span: Span,
    /// One past the highest index that a doorbell's value published. The span may reach further, because packets come before their
    /// doorbell, and the packets of a lost doorbell are credited to none.
    credited: Option<u64>,
    /// One past the last index known to be reserved.
    reserved_end: u64,
    /// The highest write index and read index seen, and the highest start of a walk.
    write_seen: u64,
    read_seen: u64,
    walked_from: u64,
    /// Time of the latest doorbell or packets.
    active_ns: u64,
    reserves: Reserves,
    write_log: WriteLog,
    publish_log: PublishLog,
    unseen: Unseen,
    taken: Taken,
    samples: Samples,
    /// Uses of completion signals by the event that is being processed.
    pub(super) published: Vec<Use>,
    /// Whether the GPU has taken more packets that were unread at that time. Such packets may have used any completion signal.
    pub(super) taken_unread: bool,
    /// Lower indexes that were taken unread have already set `taken_unread`.
    told_unread_below: u64,

    pub(super) doorbells: u64,
    pub(super) submissions: u64,
    dispatches: u64,
    other_packets: u64,
    unread: u64,
    max_depth: u64,
}

impl Queue {
    /// Returns a queue that was found by an event.
    pub(super) fn adopted(number: u32, sight: &Sight) -> Self {
        let origin = sight.origin;
        let adoption = sight.question.map(Adoption::new);
        let first = adoption.as_ref().map_or(sight.first, |adoption| adoption.frontier);
        Self {
            number,
            pid: origin.pid,
            write_pointer: sight.write_pointer,
            kind: sight.kind,
            created: None,
            creator: Creator::Unknown,
            created_ns: origin.time_ns,
            end: None,
            ring_base: 0,
            ring_packets: 0,
            adoption,
            kfd: Kfd::default(),
            span: Span::new(first),
            credited: None,
            reserved_end: 0,
            write_seen: 0,
            read_seen: 0,
            walked_from: 0,
            active_ns: 0,
            reserves: Reserves::default(),
            write_log: WriteLog::default(),
            publish_log: PublishLog::default(),
            unseen: Unseen::default(),
            taken: Taken::default(),
            samples: Samples::default(),
            published: Vec::new(),
            taken_unread: false,
            told_unread_below: 0,
            doorbells: 0,
            submissions: 0,
            dispatches: 0,
            other_packets: 0,
            unread: 0,
            max_depth: 0,
        }
    }

    /// Returns a queue whose creation was seen. Its first index is 0.
    pub(super) fn created(number: u32, pid: u32, create: CreateQueue, creator: Creator) -> Self {
        let origin = Origin {
            time_ns: create.exit_ns,
            pid,
            tid: 0,
        };
        let mut queue = Self::adopted(
            number,
            &Sight {
                origin,
                write_pointer: create.write_pointer,
                kind: create.kind,
                first: 0,
                question: None,
            },
        );
        // The new queue has no facts to report.
        queue.complete(create, creator, &mut |_| ());
        queue
    }

    /// Adds the creation to an adopted queue, if it was reported after the queue's first doorbell.
    pub(super) fn complete(&mut self, create: CreateQueue, creator: Creator, out: &mut impl FnMut(Fact)) {
        self.dissolve(out);
        self.creator = creator;
        self.kind = create.kind;
        self.created_ns = create.exit_ns;
        self.ring_base = create.ring_base;
        if create.kind == QueueType::ComputeAql {
            self.ring_packets = create.ring_bytes / PACKET_LEN as u32;
            self.span.cover(0, 0, false);
        }
        self.credited = self.credited.or(Some(0));
        // No producer reserves on a queue that does not exist.
        self.write_log.see(create.enter_ns, 0);
        self.unseen.floor = Some(0);
        self.created = Some(create);
    }

    /// Returns the lowest index that is published but not read, and one past the highest index published.
    #[cfg(test)]
    pub(super) fn reach(&self) -> (Option<u64>, u64) {
        (self.span.first_missing(), self.span.end())
    }

    /// Notes a doorbell of an unknown queue of the process, for everything below `end`.
    pub(super) fn blind(&mut self, end: u64) {
        self.unseen.blind_end = self.unseen.blind_end.max(end);
    }

    /// Returns the GPU's id, if known.
    pub(super) fn gpu_id(&self) -> Option<u32> {
        self.created.map_or(self.kfd.gpu_id, |create| Some(create.gpu_id))
    }

    /// Returns the time since which the queue exists. No earlier event can belong to it.
    pub(super) fn begin_ns(&self) -> u64 {
        self.created.map_or(self.created_ns, |create| create.enter_ns)
    }

    /// Returns whether an event shows that this queue is gone, and that another queue is at its address whose creation was not
    /// seen.
    ///
    /// A read index never goes back. Events that arrive out of order can make it seem so, but only for a short time.
    pub(super) fn was_replaced(&self, time_ns: u64, read_index: Option<u64>) -> bool {
        read_index.is_some_and(|index| index < self.read_seen) && time_ns > self.active_ns.saturating_add(REORDER_NS)
    }

    /// Processes an advance of the write index by a producer.
    pub(super) fn reserve(&mut self, event: &crate::event::Reserve, out: &mut impl FnMut(Fact)) {
        let end = match event.op {
            ReserveOp::Add { n } => event.write_index.map(|w| w.saturating_add(n)),
            ReserveOp::Store { to } => Some(to),
            // It fails if the write index has already advanced.
            ReserveOp::Cas { from, to } => (event.write_index == Some(from)).then_some(to),
        };
        self.reserved_end = self.reserved_end.max(end.unwrap_or(0));
        if let Some(write_index) = event.write_index {
            self.write_log.see(event.origin.time_ns, write_index);
        }
        self.reserves.reserve(event, out);
    }

    /// Gives up packets that cannot be read any more, one lap later than necessary.
    ///
    /// A slot can be written again once its next packet is reserved and the GPU has passed the packet in it. But events of several
    /// CPUs can arrive out of order: a packet may have been read in time, and its event may still be on its way. So the model waits
    /// for a packet until its slot can be written for the second time. Then the packet is a permanent gap.
    pub(super) fn give_up_lapped(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.note_unread();
        if self.span.first_missing().is_some() || self.is_in_question() {
            let lap_ago = self.reusable_below().saturating_sub(u64::from(self.ring_packets));
            if lap_ago >= self.frontier() {
                self.conclude(out);
            }
            self.give_up_below(lap_ago, now, out);
        }
    }

    /// Notes packets that were taken and not read. Notes each gap once, however long the model waits for it.
    fn note_unread(&mut self) {
        // This does not apply if the span was started again.
        let told_below = Some(self.told_unread_below).filter(|&index| index <= self.span.end());
        self.taken_unread |= self.span.is_any_missing(told_below.unwrap_or(0), self.read_seen);
        self.told_unread_below = self.read_seen.min(self.span.end());
    }

    /// Returns the index below which slots may contain later packets now. The write index alone does not show this, because
    /// producers reserve ahead of the ring and wait.
    fn reusable_below(&self) -> u64 {
        self.write_seen
            .saturating_sub(u64::from(self.ring_packets))
            .min(self.read_seen)
    }

    /// Gives up all missing packets.
    pub(super) fn give_up_all(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.give_up_below(u64::MAX, now, out);
    }

    fn give_up_below(&mut self, limit: u64, now: u64, out: &mut impl FnMut(Fact)) {
        let origin = Origin {
            time_ns: now,
            pid: self.pid,
            tid: 0,
        };
        while let Some(Gap { start, end, unreadable }) = self.span.give_up_below(limit) {
            let mut at = start;
            while at < end {
                let (reason, until) = match self.reason(at) {
                    _ if unreadable => (Unread::Unreadable, end),
                    (reason, until) => (reason, until.min(end)),
                };
                let (path, same) = self.unseen.path(at);
                let until = until.min(same);
                out(self.unread_run(at, until - at, origin, reason, path));
                at = until;
            }
        }
    }

    /// Returns why an index was never read, and the end of the indexes with the same reason.
    fn reason(&self, index: u64) -> (Unread, u64) {
        let reused = self.walked_from.max(self.reusable_below());
        match index {
            i if i < reused => (Unread::Reused, reused),
            i if i < self.read_seen => (Unread::Consumed, self.read_seen),
            _ => (Unread::NeverValid, u64::MAX),
        }
    }

    /// Counts `count` indexes from `index` on as unread, and returns their fact.
    pub(super) fn unread_run(&mut self, index: u64, count: u64, origin: Origin, reason: Unread, path: Path) -> Fact {
        self.unread = self.unread.saturating_add(count);
        let tid = self.publisher(origin.tid, path, count);
        Fact::Packet(OtherPacket {
            queue: self.number,
            index,
            count,
            pid: self.pid,
            tid,
            time_ns: origin.time_ns,
            path,
            kind: PacketKind::Unread,
            unread: Some(reason),
            header: 0,
            completion_signal: 0,
            waits_for: None,
        })
    }

    /// Returns the thread that published `count` indexes over a path. Counts the unseen ones.
    pub(super) fn publisher(&mut self, tid: u32, path: Path, count: u64) -> u32 {
        if path != Path::Unseen {
            return tid;
        }
        self.unseen.rows = self.unseen.rows.saturating_add(count);
        0
    }

    /// Ends the queue: reports what waited or is missing, then the final numbers. `lost` is whether doorbells may be missing.
    /// `creators_known` has the same meaning as for [`Self::totals`].
    pub(super) fn close(mut self, now: u64, lost: bool, creators_known: bool, out: &mut impl FnMut(Fact)) {
        self.reserves.flush(out);
        self.conclude(out);
        self.conclude_samples(lost);
        self.report_taken(out);
        self.give_up_all(now, out);
        out(Fact::Queue(self.totals(creators_known)));
    }
}
