//! The queues that a log names, and the rows of their packets.

use std::collections::{BTreeMap, HashMap};

use tracer_common::aql::PACKET_LEN;
use tracer_core::tables::{Dispatch, Evidence, Fact, Form, OtherPacket, PacketKind, Path, Process, Queue, QueueOrigin};

use super::packet::{Kind, Packet, decimal, pointer};

/// Largest number of queues, and of processes, in a log. Packets beyond it are malformed.
const MAX_QUEUES: usize = 1 << 16;

/// The queues that a log names.
#[derive(Debug, Default)]
pub struct Queues {
    /// Rows, in the order of first sight.
    rows: Vec<Queue>,
    /// The youngest queue of each process and `HWq=`.
    by_key: HashMap<(u32, u64), usize>,
    /// Time of the first line about each process, ns.
    processes: BTreeMap<u32, u64>,
}

impl Queues {
    /// Takes a message about a created queue. Returns whether it was one.
    pub fn created(&mut self, pid: u32, time_ns: u64, message: &str) -> bool {
        const OLD: &str = "created hardware queue ";
        let (hardware_queue, handle, ring_base) = if message.starts_with(OLD) {
            // Its address is the `hsa_queue_t`. 6.1 names the ring in lines about packets, and nothing connects the two.
            let Some(handle) = pointer(message, OLD) else {
                return false;
            };
            (handle, handle, 0)
        } else if message.starts_with("Created SWq=") {
            let (Some(handle), Some(ring)) = (pointer(message, "SWq="), pointer(message, "HWq=")) else {
                return false;
            };
            (ring, handle, ring)
        } else {
            return false;
        };
        let packets = decimal(message, "with size ").unwrap_or_default();
        if let Some(queue) = self.make(pid, hardware_queue, time_ns) {
            (queue.handle, queue.ring_base) = (handle, ring_base);
            queue.ring_bytes = packets.saturating_mul(PACKET_LEN as u64);
        }
        true
    }

    /// Takes a packet, and returns its row; `None` if there are too many queues.
    pub fn packet(
        &mut self,
        pid: u32,
        time_ns: u64,
        packet: &Packet,
        kernel: Option<String>,
        of_rocr: bool,
    ) -> Option<Fact> {
        let key = (pid, packet.hardware_queue);
        let at = match self.by_key.get(&key) {
            Some(&at) => at,
            None => {
                let queue = self.make(pid, packet.hardware_queue, time_ns)?;
                queue.ring_base = packet.hardware_queue;
                self.rows.len() - 1
            }
        };
        let queue = self.rows.get_mut(at)?;
        if let Some(handle) = packet.handle {
            queue.handle = handle;
        }
        queue.internal = Some(of_rocr);
        let due = queue.last_index.map_or(0, |last| last.saturating_add(1));
        let index = packet.index.unwrap_or(due);
        // Threads that share a queue may write their lines in another order than their packets.
        queue.first_index = Some(queue.first_index.map_or(index, |first| first.min(index)));
        queue.last_index = queue.last_index.max(Some(index));
        queue.published += 1;
        if let Some(read_index) = packet.read_index {
            queue.max_depth = queue.max_depth.max(index.saturating_add(1).saturating_sub(read_index));
        }
        Some(match &packet.kind {
            Kind::Dispatch(dispatch) => {
                queue.dispatches += 1;
                Fact::Dispatch(Dispatch {
                    queue: queue.queue,
                    index,
                    pid,
                    tid: 0,
                    time_ns,
                    path: Path::Doorbell,
                    evidence: Evidence::Log,
                    form: Some(Form::Kernel),
                    reserve_ns: None,
                    unreserved_ns: None,
                    header: packet.header,
                    dimensions: dispatch.dimensions,
                    kernel_object: dispatch.kernel_object,
                    kernel: kernel.map(Into::into),
                    kernarg: dispatch.kernarg,
                    grid: dispatch.grid,
                    workgroup: dispatch.workgroup,
                    private_segment: dispatch.private_segment,
                    group_segment: dispatch.group_segment,
                    completion_signal: packet.completion_signal,
                    correlation: dispatch.correlation,
                    api_call: None,
                    stream: None,
                })
            }
            Kind::Barrier(kind, signals) => {
                queue.other_packets += 1;
                Fact::Packet(other(queue.queue, index, pid, time_ns, packet, (*kind, *signals)))
            }
        })
    }

    /// Returns the packets that the log lacks between those that it has. What was on a queue before its first line is not known to
    /// be missing.
    pub fn missing(&self) -> u64 {
        let of = |queue: &Queue| {
            let (first, last) = queue.first_index.zip(queue.last_index)?;
            Some((last - first).saturating_add(1).saturating_sub(queue.published))
        };
        let all = self.rows.iter().filter_map(of);
        all.fold(0, u64::saturating_add)
    }

    /// Returns the rows of queues that have packets, and of their processes. A queue of 6.1 has a line about its creation that no
    /// packet names.
    pub fn finish(&mut self) -> (Vec<Queue>, Vec<Process>) {
        let process = |(pid, first_ns)| Process {
            pid,
            parent: None,
            comm: String::new(),
            first_ns,
            exit_ns: None,
            thunk: None,
            unit: None,
            container: None,
            pod: None,
        };
        self.by_key.clear();
        let processes = std::mem::take(&mut self.processes).into_iter().map(process).collect();
        let used = std::mem::take(&mut self.rows)
            .into_iter()
            .filter(|queue| queue.published > 0);
        (used.collect(), processes)
    }

    /// Makes a queue, the youngest of its address.
    fn make(&mut self, pid: u32, hardware_queue: u64, time_ns: u64) -> Option<&mut Queue> {
        if self.rows.len() >= MAX_QUEUES {
            return None;
        }
        self.processes.entry(pid).or_insert(time_ns);
        let number = self.rows.len();
        self.by_key.insert((pid, hardware_queue), number);
        Some(self.rows.push_mut(row(u32::try_from(number).ok()?, pid, time_ns)))
    }
}

/// Returns a queue of which nothing is known yet.
fn row(queue: u32, pid: u32, created_ns: u64) -> Queue {
    Queue {
        queue,
        pid,
        origin: QueueOrigin::Logged,
        queue_id: None,
        gpu_id: None,
        kind: "compute-aql".to_owned(),
        handle: 0,
        write_pointer: 0,
        ring_base: 0,
        ring_bytes: 0,
        ring_memory: None,
        doorbell_offset: None,
        priority: None,
        internal: None,
        create_enter_ns: None,
        created_ns,
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

fn other(
    queue: u32,
    index: u64,
    pid: u32,
    time_ns: u64,
    packet: &Packet,
    of: (PacketKind, Option<[u64; 5]>),
) -> OtherPacket {
    OtherPacket {
        queue,
        index,
        count: 1,
        pid,
        tid: 0,
        time_ns,
        path: Path::Doorbell,
        kind: of.0,
        unread: None,
        header: packet.header,
        completion_signal: packet.completion_signal,
        waits_for: of.1,
    }
}
