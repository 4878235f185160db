//! Identifies the KFD queue of an adopted queue.
//!
//! The memory of an adopted queue does not identify it. The KFD's files list the queues of a process with type, GPU and size, but
//! without addresses. If exactly one of them has the type and size of the adopted queue, it is that queue.
//!
//! No probe sees the doorbells of a process without an HSA runtime. The queues that such a process had before are rows with the
//! origin `listed`, so that no total claims to include what is submitted to them.

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::queue::Queue;
use crate::event::{KfdQueue, There};
use crate::tables::{self, Fact, QueueOrigin};
use crate::tally::Map;

/// The queues that processes had when tracing began.
#[derive(Debug, Default)]
pub(super) struct KfdQueues {
    by_pid: Map<u32, Vec<KfdQueue>>,
    /// The queues of processes without a runtime that may take kernels.
    listed: Vec<tables::Queue>,
}

impl KfdQueues {
    /// Adds the queues that a process had. `number` returns the number of a new queue.
    pub(super) fn there(&mut self, there: &There<'_>, mut number: impl FnMut() -> Option<u32>) {
        let pid = there.origin.pid;
        if there.queues.is_empty() {
            return;
        }
        self.by_pid.insert(pid, there.queues.to_vec());
        let may_take_kernels = |queue: &&KfdQueue| there.idle && queue.compute != Some(false);
        for queue in there.queues.iter().filter(may_take_kernels) {
            let Some(number) = number() else { return };
            self.listed.push(row(number, pid, there.origin.time_ns, queue));
        }
    }

    /// Forgets a process that exited, or that runs another program, at this time. Its listed queues end.
    pub(super) fn forget(&mut self, pid: u32, time_ns: u64, out: &mut impl FnMut(Fact)) {
        self.by_pid.remove(&pid);
        self.end(time_ns, |queue| queue.pid == pid, out);
    }

    /// Processes a successful DESTROY_QUEUE.
    pub(super) fn destroy(&mut self, pid: u32, queue_id: u32, time_ns: u64, out: &mut impl FnMut(Fact)) {
        self.end(
            time_ns,
            |queue| (queue.pid, queue.queue_id) == (pid, Some(queue_id)),
            out,
        );
    }

    fn end(&mut self, time_ns: u64, ends: impl Fn(&tables::Queue) -> bool, out: &mut impl FnMut(Fact)) {
        for mut queue in self.listed.extract_if(.., |queue| ends(queue)) {
            queue.destroyed_ns = Some(time_ns);
            out(Fact::Queue(queue));
        }
    }

    /// Ends the trace: reports the listed queues that still exist.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        self.listed.drain(..).for_each(|queue| out(Fact::Queue(queue)));
    }

    /// Returns the listed queues that exist.
    pub(super) fn listed(&self) -> impl Iterator<Item = &tables::Queue> {
        self.listed.iter()
    }

    /// Identifies an adopted queue, if that is certain. Does so once per queue.
    pub(super) fn identify(&mut self, queue: &mut Queue) {
        if queue.kfd.asked || queue.created.is_some() {
            return;
        }
        queue.kfd.asked = true;
        let Some(there) = self.by_pid.get(&queue.pid) else {
            return;
        };
        let compute = queue.kind == QueueType::ComputeAql;
        let bytes = u64::from(queue.ring_packets) * PACKET_LEN as u64;
        let fits = |kfd: &&KfdQueue| {
            // A value that the files do not give excludes nothing.
            kfd.compute.is_none_or(|is| is == compute) && (!compute || kfd.ring_bytes.is_none_or(|is| is == bytes))
        };
        let fitting: Vec<&KfdQueue> = there.iter().filter(fits).collect();
        let [first, others @ ..] = &fitting[..] else { return };
        queue.kfd.queue_id = others.is_empty().then_some(first.queue_id);
        let is_one_gpu = others.iter().all(|other| other.gpu_id == first.gpu_id);
        queue.kfd.gpu_id = first.gpu_id.filter(|_| is_one_gpu);
        // Its process has loaded a runtime since.
        let (pid, queue_id) = (queue.pid, queue.kfd.queue_id);
        self.listed
            .retain(|listed| queue_id.is_none() || (listed.pid, listed.queue_id) != (pid, queue_id));
    }
}

/// Returns the row of a queue of which only the KFD's files are known.
fn row(number: u32, pid: u32, time_ns: u64, queue: &KfdQueue) -> tables::Queue {
    tables::Queue {
        queue: number,
        pid,
        origin: QueueOrigin::Listed,
        queue_id: Some(queue.queue_id),
        gpu_id: queue.gpu_id,
        // The driver's type does not distinguish AQL from PM4.
        kind: queue.compute.map_or("other", |_| "compute").to_owned(),
        ring_bytes: queue.ring_bytes.unwrap_or(0),
        created_ns: time_ns,
        handle: 0,
        write_pointer: 0,
        ring_base: 0,
        ring_memory: None,
        doorbell_offset: None,
        priority: None,
        internal: None,
        create_enter_ns: None,
        destroyed_ns: None,
        doorbells: 0,
        published: 0,
        unclaimed: None,
        dispatches: 0,
        other_packets: 0,
        unread: 0,
        pending: 0,
        first_index: None,
        last_index: None,
        max_depth: 0,
        unseen: None,
        watched_to_end: None,
        looked_ns: None,
        read_index: None,
        in_flight: None,
        oldest_ns: None,
        moved_ns: None,
    }
}
