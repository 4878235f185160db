//! Processes, their queues, and the proxies in front of the queues.

use tracer_core::fact::{Process, Progress, Proxy, Queue};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
    Process {
        pid, "", "Process id, in the initial pid namespace.";
        parent, "", "Process id of the parent; null if tracer did not see the fork.";
        comm, "", "Name of the last program, at most 15 bytes; empty if tracer saw no exec.";
        first_ns, "ns", "Time of its first event.";
        exit_ns, "ns", "Time of its exit; null if it ran at the end of the trace.";
        thunk, "", "Whether its runtime passes doorbells to the driver's library instead of storing to them (path `thunk`); null if unknown.";
    }

    Queue {
        queue, "", "Number of the queue in the trace, from 0, in the order of first sight; never reused.";
        pid, "", "Process that it belongs to.";
        origin, "", "How tracer found the queue: `created` (it saw CREATE_QUEUE) or `adopted` (by a doorbell).";
        queue_id, "", "KFD queue id, unique in a process at a time; of an adopted queue only if the KFD's files leave no choice, else null.";
        gpu_id, "", "KFD gpu id; of an adopted queue under the same condition.";
        kind, "", "Queue type: `compute-aql`, `compute-pm4`, `sdma`, `sdma-xgmi`, ...";
        handle, "address", "The `amd_queue_t`, which is the HSA queue handle; 0 if it is not an AQL queue.";
        write_pointer, "address", "The write pointer.";
        ring_base, "address", "The ring.";
        ring_bytes, "bytes", "Size of the ring.";
        doorbell_offset, "", "Doorbell offset that the KFD returned; null if adopted.";
        priority, "", "Priority, 0 to 15; null if adopted.";
        internal, "", "Whether the runtime created it for itself: for fills, and for copies by kernels. False if `hsa_queue_create` returned it to the program; null if such calls may have been missed, nothing was submitted on it, or it is not an AQL queue.";
        create_enter_ns, "ns", "Entry of CREATE_QUEUE; null if adopted.";
        created_ns, "ns", "Exit of CREATE_QUEUE; of an adopted queue, its first doorbell.";
        destroyed_ns, "ns", "Exit of DESTROY_QUEUE, or exit of the process; null if the queue existed at the end of the trace.";
        doorbells, "doorbells", "Doorbells rung.";
        published, "packets", "Indexes published, read or not; of an SDMA queue, submissions.";
        unclaimed, "packets", "Of an adopted queue: indexes that were in its ring when tracer found it, and for which tracer saw no doorbell. They were published before, or never, and count nowhere else. Null if tracer saw its creation.";
        dispatches, "packets", "Kernel dispatches among the published.";
        other_packets, "packets", "Other packets among the published.";
        unread, "packets", "Published indexes whose packets could not be read.";
        pending, "packets", "Indexes reserved but not published at its end.";
        first_index, "index", "First index published; null if none was.";
        last_index, "index", "Last index published; null if none was.";
        max_depth, "packets", "Most packets between read index and published index at a doorbell.";
        unseen, "packets", "Published indexes of path `unseen`, all of them only if `watched_to_end`; null if tracer took no sample, or if lost doorbells may have published packets that the GPU took.";
        watched_to_end, "", "Whether tracer sampled it after its last possible publication, or at the end of the recording; null if it is not an AQL queue.";
        looked_ns, "ns", "Time of the last sample; null if there was none.";
        read_index, "index", "Read index at the last sample: the GPU had taken every lower one.";
        in_flight, "packets", "Published, but not taken by the GPU, at the last sample.";
        oldest_ns, "ns", "Time at which the oldest of these was published, at the latest; null if there are none.";
        moved_ns, "ns", "Time since which the read index has this value, at the latest.";
    }

    Progress {
        queue, "", "Queue, as in `queues.queue`.";
        pid, "", "Process.";
        time_ns, "ns", "Time before the sample.";
        until_ns, "ns", "Time after the sample.";
        occasion, "", "Reason: `sample` (at an interval), `destroy` and `destroyed` (entry and return of DESTROY_QUEUE), `process-end` or `trace-end`.";
        read_index, "index", "Read index: the GPU had taken every lower one.";
        write_index, "index", "Write index: producers had reserved every lower one.";
        published_end, "index", "One past the highest index that doorbells had published by then; null if none.";
    }

    Proxy {
        proxy, "", "Number of the proxy in the trace, from 0; not that of a queue.";
        pid, "", "Process.";
        handle, "address", "The handle that `hsa_queue_create` returned to the program: the proxy's `amd_queue_t`.";
        ring_base, "address", "Its ring.";
        ring_bytes, "bytes", "Size of the ring.";
        created_ns, "ns", "Return of `hsa_queue_create`.";
        ended_ns, "ns", "When its process exited, or another proxy took its address; null if neither happened. tracer does not watch the end of a proxy itself.";
        doorbells, "doorbells", "Doorbells of the program.";
        requested, "packets", "Packets that the program submitted.";
        dispatches, "packets", "Kernel dispatches among these.";
        other_packets, "packets", "Other packets among these.";
        unread, "packets", "Packets that tracer could not read.";
        first_index, "index", "Index of the first one; null if there is none.";
        last_index, "index", "Index of the last one; null if there is none.";
    }
}
