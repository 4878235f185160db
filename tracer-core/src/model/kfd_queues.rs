//! Identifies the KFD queue of an adopted queue.
//!
//! The memory of an adopted queue does not identify it. The KFD's files list the queues of a process with type, GPU and size, but
//! without addresses. If exactly one of them has the type and size of the adopted queue, it is that queue.

use std::collections::HashMap;

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::queue::Queue;
use crate::event::KfdQueue;

/// The queues that processes had when tracing began.
#[derive(Debug, Default)]
pub(super) struct KfdQueues {
    by_pid: HashMap<u32, Vec<KfdQueue>>,
}

impl KfdQueues {
    /// Adds the queues that a process had.
    pub(super) fn there(&mut self, pid: u32, queues: &[KfdQueue]) {
        if !queues.is_empty() {
            self.by_pid.insert(pid, queues.to_vec());
        }
    }

    /// Forgets a process that exited, or that runs another program.
    pub(super) fn forget(&mut self, pid: u32) {
        self.by_pid.remove(&pid);
    }

    /// Identifies an adopted queue, if that is certain. Does so once per queue.
    pub(super) fn identify(&self, queue: &mut Queue) {
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
    }
}
