//! Which KFD queue an adopted queue is.
//!
//! Its memory does not say. The KFD's files list the queues of a process with type, GPU and size, but without addresses.
//! Where just one of them has the adopted queue's type and size, it is that one.

use std::collections::HashMap;

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::queue::Queue;
use crate::event::KfdQueue;

/// What the KFD's files say of an adopted queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kfd {
    pub(super) queue_id: Option<u32>,
    pub(super) gpu_id: Option<u32>,
    /// Whether they were asked.
    asked: bool,
}

/// The queues that processes had when tracing began.
#[derive(Debug, Default)]
pub(super) struct KfdQueues {
    by_pid: HashMap<u32, Vec<KfdQueue>>,
}

impl KfdQueues {
    /// What a process had.
    pub(super) fn there(&mut self, pid: u32, queues: &[KfdQueue]) {
        if !queues.is_empty() {
            self.by_pid.insert(pid, queues.to_vec());
        }
    }

    /// The process ended, or runs another program.
    pub(super) fn forget(&mut self, pid: u32) {
        self.by_pid.remove(&pid);
    }

    /// Says which queue an adopted one is, as far as that is sure. Asks once for each queue.
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
            // What the files did not tell excludes nothing.
            kfd.compute.is_none_or(|is| is == compute) && (!compute || kfd.ring_bytes.is_none_or(|is| is == bytes))
        };
        let mut fitting = there.iter().filter(fits);
        let Some(first) = fitting.next() else { return };
        let (mut alone, mut one_gpu) = (true, true);
        for other in fitting {
            alone = false;
            one_gpu &= other.gpu_id == first.gpu_id;
        }
        queue.kfd.queue_id = alone.then_some(first.queue_id);
        queue.kfd.gpu_id = first.gpu_id.filter(|_| one_gpu);
    }
}
