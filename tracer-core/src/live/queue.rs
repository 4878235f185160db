//! The live state of one queue.

use std::collections::{BTreeMap, VecDeque};

use super::Gpu;
use super::counts::Counts;
use super::picture::{PacketRow, QueueRow, Stuck};
use crate::known::{Basis, Total};
use crate::tables::{Doorbell, Fact, Progress, Queue};
use crate::tally::{Entry, Histogram, Tally};
use crate::words::Named;

/// Number of packets that are kept for the view of one queue.
const LAST_PACKETS: usize = 32;
/// Number of doorbells that are kept for the timeline of a queue.
const LAST_DOORBELLS: usize = 64;
/// How long packets may wait, without the GPU taking any, before the queue is reported as stuck, ns. A kernel can take longer:
/// the report says what is seen, not why.
pub const STUCK_NS: u64 = 2_000_000_000;

/// The state of a queue.
#[derive(Debug, Default)]
pub struct LiveQueue {
    /// Its last snapshot, which identifies it.
    known: Option<Queue>,
    /// Its process.
    pub pid: Option<u32>,
    counts: Counts,
    latency: Histogram,
    /// One past the highest published index.
    end: u64,
    write_index: Option<u64>,
    read_index: Option<u64>,
    /// When the indexes above were read.
    sampled_ns: Option<u64>,
    /// When the read index was first seen at its value, or when packets were first seen to wait behind it.
    waiting_since_ns: Option<u64>,
    /// Doorbells whose packets were not all taken at the last sample: time, and end of the published packets, the oldest first.
    in_flight: VecDeque<(u64, u64)>,
    last_doorbell_ns: Option<u64>,
    packets: VecDeque<PacketRow>,
}

impl LiveQueue {
    /// Returns when the queue was destroyed, if that was before `now`: a replay knows the destruction of queues that still exist.
    pub fn ended_ns(&self, now: u64) -> Option<u64> {
        let ended = self.known.as_ref()?.destroyed_ns;
        ended.filter(|&ended| ended <= now)
    }

    /// Returns its counts.
    pub fn tally(&self) -> &Tally {
        &self.counts.tally
    }

    /// Returns whether kernels may be submitted to it in a form that tracer does not read.
    pub fn is_opaque(&self) -> bool {
        self.known.as_ref().is_some_and(Queue::is_opaque)
    }

    /// Returns whether it is unknown how many packets the GPU took without a doorbell that was seen.
    pub fn is_open(&self, now: u64) -> bool {
        let ended = self.ended_ns(now).is_some();
        self.known.as_ref().is_none_or(|queue| queue.is_open(ended))
    }

    pub fn numbers(&mut self, queue: &Queue) {
        self.pid = Some(queue.pid);
        self.known = Some(queue.clone());
    }

    /// Takes a row of this queue.
    pub fn add(&mut self, fact: &Fact, entry: &Entry) {
        self.pid = Some(entry.pid);
        self.counts.add(fact, entry);
        match fact {
            Fact::Dispatch(dispatch) => self.remember(PacketRow {
                index: dispatch.index,
                tid: Some(dispatch.tid),
                kernel_object: Some(dispatch.kernel_object),
                grid: Some(dispatch.grid),
                workgroup: Some(dispatch.workgroup),
                ..PacketRow::of("dispatch", dispatch.path, entry)
            }),
            Fact::DispatchRun(run) => self.remember(PacketRow {
                index: run.first_index,
                kernel_object: run.kernel_object,
                ..PacketRow::of("dispatch", run.path, entry)
            }),
            Fact::Packet(packet) => self.remember(PacketRow {
                index: packet.index,
                tid: (packet.tid != 0).then_some(packet.tid),
                ..PacketRow::of(packet.kind.name(), packet.path, entry)
            }),
            Fact::Doorbell(doorbell) => self.doorbell(doorbell),
            // The indexes of the queue at these doorbells are unknown.
            Fact::DoorbellRun(run) if !run.beyond => self.end = self.end.max(run.highest_value.saturating_add(1)),
            _ => {}
        }
        if matches!(fact, Fact::Doorbell(_) | Fact::DoorbellRun(_) | Fact::Copy(_)) {
            self.last_doorbell_ns = self.last_doorbell_ns.max(Some(entry.time_ns));
        }
    }

    fn doorbell(&mut self, doorbell: &Doorbell) {
        self.latency.add_known(doorbell.reserve_to_doorbell_ns);
        if doorbell.beyond {
            return;
        }
        self.end = self.end.max(doorbell.value.saturating_add(1));
        // The indexes at the doorbell, before its own packets are published.
        self.sample(doorbell.time_ns, Some(doorbell.write_index), doorbell.read_index);
        if doorbell.published > 0 {
            if self.in_flight.len() == LAST_DOORBELLS {
                // Doorbells in between can be omitted: the age of the oldest doorbell is shown.
                self.in_flight.remove(1);
            }
            self.in_flight.push_back((doorbell.time_ns, self.end));
            self.waiting_since_ns.get_or_insert(doorbell.time_ns);
        }
    }

    /// Takes a sample that found other indexes than the previous sample.
    pub fn progress(&mut self, progress: &Progress) {
        self.pid = Some(progress.pid);
        self.end = self.end.max(progress.published_end.unwrap_or(0));
        self.sample(progress.until_ns, Some(progress.write_index), progress.read_index);
    }

    /// Advances the time. Takes the last sample of the snapshot, which may have found nothing new. A replay knows this sample
    /// before its time.
    pub fn advance(&mut self, now: u64) {
        if let Some(queue) = &self.known
            && let Some((sampled_ns, read_index)) = queue.looked_ns.zip(queue.read_index)
            && sampled_ns <= now
        {
            self.sample(sampled_ns, None, read_index);
        }
    }

    /// Takes indexes that were read at this time. Ignores indexes that were read before the last sample.
    pub fn sample(&mut self, time_ns: u64, write_index: Option<u64>, read_index: u64) {
        if self.sampled_ns.is_some_and(|sampled| time_ns < sampled) {
            return;
        }
        self.sampled_ns = Some(time_ns);
        self.write_index = write_index.or(self.write_index);
        if self.read_index.is_none_or(|before| read_index > before) {
            self.waiting_since_ns = (read_index < self.end).then_some(time_ns);
        }
        self.read_index = Some(read_index);
        while self.in_flight.front().is_some_and(|&(_, end)| end <= read_index) {
            self.in_flight.pop_front();
        }
    }

    fn remember(&mut self, packet: PacketRow) {
        if self.packets.len() == LAST_PACKETS {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Returns the number of packets between the read index and the end of the published packets, at the last sample.
    fn depth(&self) -> Option<u64> {
        self.read_index.map(|read| self.end.saturating_sub(read))
    }

    /// Compares two samples: returns how the queue is stuck, if packets wait and the GPU took none in between.
    fn stuck(&self, now: u64) -> Option<Stuck> {
        let (since, sampled, depth) = (self.waiting_since_ns?, self.sampled_ns?, self.depth()?);
        // Only samples count: the time since the last sample is not evidence.
        (depth > 0 && self.ended_ns(now).is_none() && sampled.saturating_sub(since) >= STUCK_NS).then(|| Stuck {
            packets: depth,
            for_ns: now.saturating_sub(since),
            read_index: self.read_index.unwrap_or(0),
            last_doorbell_ns: self.last_doorbell_ns.map(|at| now.saturating_sub(at)),
        })
    }

    /// Returns the row of this queue, which has this number in the trace. `basis`: what decides whether its counts are known, apart
    /// from its own kind and samples.
    pub fn row(&self, number: u32, gpus: &BTreeMap<u32, Gpu>, now: u64, basis: Basis<'_>) -> QueueRow {
        let known = self.known.as_ref();
        let gpu_id = known.and_then(|queue| queue.gpu_id);
        let gpu = gpu_id.and_then(|id| gpus.get(&id));
        let aql = known.is_none_or(|queue| queue.is_aql());
        let tally = &self.counts.tally;
        let copies = tally.all_copies();
        let ring_bytes = known.map(|queue| queue.ring_bytes).filter(|&bytes| aql && bytes > 0);
        let submissions = if copies > 0 {
            &self.counts.copies
        } else {
            &self.counts.dispatches
        };
        let age = |at: u64| now.saturating_sub(at);
        let basis = Basis {
            opaque_queues: self.is_opaque(),
            open_queues: self.is_open(now),
            ..basis
        };
        // A queue takes either packets or the commands of a copy engine.
        let sdma = known.is_some_and(Queue::is_sdma);
        let dispatches_known = sdma || basis.knows(Total::Dispatches);
        let doorbells_known = match known {
            _ if sdma => basis.knows(Total::Copies),
            Some(_) => aql && basis.knows(Total::Doorbells),
            None => basis.knows(Total::Doorbells) && basis.knows(Total::Copies),
        };
        let copies_known = known.is_some_and(|_| !sdma) || basis.knows(Total::Copies);
        QueueRow {
            queue: number,
            pid: self.pid,
            comm: None,
            gpu_id,
            gpu: gpu.map(|gpu| gpu.name.clone()),
            scheduler: gpu.and_then(|gpu| gpu.scheduler.clone()),
            queue_id: known.and_then(|queue| queue.queue_id),
            kind: known.map(|queue| queue.kind.clone()),
            internal: known.and_then(|queue| queue.internal),
            ended: self.ended_ns(now).is_some(),
            dispatches: dispatches_known.then(|| tally.all_dispatches()),
            doorbells: doorbells_known.then(|| tally.doorbells.saturating_add(copies)),
            copies: copies_known.then_some(copies),
            unread: if sdma {
                Some(0)
            } else {
                basis.when(Total::Packets, tally.unread)
            },
            dispatches_per_s: dispatches_known.then(|| self.counts.dispatches.per_second(now)),
            doorbells_per_s: doorbells_known
                .then(|| self.counts.doorbells.per_second(now) + self.counts.copies.per_second(now)),
            packets_per_doorbell: (tally.doorbells > 0).then(|| tally.published as f64 / tally.doorbells as f64),
            write_index: self.write_index,
            read_index: self.read_index,
            looked_age_ns: self.sampled_ns.map(age),
            ring_packets: ring_bytes.map(|bytes| bytes / 64),
            depth: self.depth().filter(|_| aql),
            oldest_age_ns: self.in_flight.front().map(|&(at, _)| age(at)),
            last_doorbell_age_ns: self.last_doorbell_ns.map(age),
            latency_ns: self.latency.stats().map(|stats| (stats.p50, stats.p99)),
            by_path: if sdma {
                basis.copies(&tally.copies)
            } else {
                let submissions = std::array::from_fn(|path| tally.dispatches[path] + tally.copies[path]);
                basis.dispatches(&super::with_unseen(&submissions, tally))
            },
            history: submissions.history(now),
            stuck: self.stuck(now),
            packets: self.packets.iter().cloned().collect(),
            timeline: self.in_flight.iter().map(|&(at, end)| (age(at), end)).collect(),
        }
    }
}
