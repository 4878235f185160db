//! Submissions.

use tracer_core::fact::{Copy, Dispatch, Doorbell, GpuTime, OtherPacket, Request};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
    Doorbell {
        queue, "", "Queue, as in `queues.queue`; null if tracer could not read the memory of the process.";
        pid, "", "Process.";
        tid, "", "Thread.";
        time_ns, "ns", "Time just before the store.";
        value, "index", "Value stored: index of the last packet published.";
        published, "packets", "Indexes that it published; 0 for a repeated or lower value.";
        read_index, "index", "The queue's read index at that moment.";
        write_index, "index", "The queue's write index at that moment.";
        reserve_to_doorbell_ns, "ns", "Time since the thread's last reserve on this queue; null if none was seen.";
        beyond, "", "Whether the value is an index that was not reserved.";
    }

    Dispatch {
        queue, "", "Queue, as in `queues.queue`.";
        index, "index", "Packet index in its queue, not modulo the ring's size.";
        pid, "", "Process.";
        tid, "", "Thread whose doorbell published it; 0 if the path is `unseen`.";
        time_ns, "ns", "Time of that doorbell.";
        path, "", "Path: `doorbell`, `ring`, `thunk` or `unseen`.";
        evidence, "", "Evidence that it is a dispatch: `header` (valid when read) or `body` (already consumed).";
        reserve_ns, "ns", "Time at which that thread reserved the index; null where reserves were not traced.";
        unreserved_ns, "ns", "Where `reserve_ns` is null: latest time at which the index was seen not to be reserved yet.";
        header, "", "Packet header, 16 bits, as read; its type is INVALID if the evidence is `body`.";
        dimensions, "", "Dimensions of the grid, 1 to 3.";
        kernel_object, "address", "The kernel descriptor.";
        kernel, "", "Name of the kernel, demangled; null if no code object that is known was loaded there at that time.";
        kernarg, "address", "The kernel arguments.";
        grid["grid_x", "grid_y", "grid_z"], "work items", "Size of the grid.";
        workgroup["workgroup_x", "workgroup_y", "workgroup_z"], "work items", "Size of a workgroup.";
        private_segment, "bytes", "Private memory of a work item.";
        group_segment, "bytes", "Group memory (LDS) of a workgroup.";
        completion_signal, "", "Handle of the completion signal; 0 if it has none.";
        correlation, "", "Correlation id that HIP writes under a profiler; 0 otherwise.";
        api_call, "", "Innermost API call in which that thread rang, as in `api_calls.call`; null where in none, where calls were not recorded, or where the packet may be another thread's (neither named by the doorbell's value nor known to be reserved by that thread).";
        stream, "", "Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null in the same case.";
    }

    GpuTime {
        queue, "", "Queue, as in `dispatches.queue`.";
        index, "index", "Packet index in its queue, as in `dispatches.index`.";
        pid, "", "Process.";
        time_ns, "ns", "Time of the doorbell that published it, as in `dispatches.time_ns`.";
        kernel_object, "address", "The kernel descriptor.";
        kernel, "", "Name of the kernel, as in `dispatches.kernel`.";
        gpu_id, "", "KFD gpu id, whose clock it is; null if the queue's is not known.";
        start_ticks, "ticks", "Start, by the GPU's clock.";
        end_ticks, "ticks", "End, by the GPU's clock.";
        start_ns, "ns", "Start on the trace's clock; null if the process read the GPU's clock (GET_CLOCK_COUNTERS) less than twice, or too long before or after for an error below one millisecond.";
        end_ns, "ns", "End on the trace's clock; null in the same case.";
        clock_error_ns, "ns", "Maximum error of `start_ns` and `end_ns`, about the same for both: when in these calls the clock was read is unknown, and the rates of the two clocks may have changed since by 100 millionths; null if they are null.";
    }

    Request {
        proxy, "", "Proxy, as in `proxies.proxy`.";
        index, "index", "Packet index in its proxy.";
        pid, "", "Process.";
        tid, "", "Thread whose doorbell published it; 0 if the tool took it before any thread rang.";
        time_ns, "ns", "Time of that doorbell.";
        evidence, "", "Evidence that it is a dispatch, as in `dispatches.evidence`.";
        reserve_ns, "ns", "Time at which that thread reserved the index; null where that is not known.";
        kernel_object, "address", "The kernel descriptor.";
        kernel, "", "Name of the kernel; null if unknown.";
        kernarg, "address", "The kernel arguments.";
        grid["grid_x", "grid_y", "grid_z"], "work items", "Size of the grid.";
        workgroup["workgroup_x", "workgroup_y", "workgroup_z"], "work items", "Size of a workgroup.";
        completion_signal, "", "Handle of the completion signal; 0 if it has none.";
        api_call, "", "Innermost API call in which that thread rang, as in `dispatches.api_call`.";
        stream, "", "Stream of the innermost call around it that names one; null in the same case.";
    }

    OtherPacket {
        queue, "", "Queue, as in `queues.queue`.";
        index, "index", "Packet index in its queue, not modulo the ring's size; of a run, the first.";
        count, "packets", "Indexes that the row represents: 1, or more for a run of unread ones.";
        pid, "", "Process.";
        tid, "", "Thread whose doorbell published it; 0 if unknown, or the path is `unseen`.";
        time_ns, "ns", "Time of that doorbell, or time at which tracer gave up reading the packet.";
        path, "", "Path: `doorbell`, `ring`, `thunk` or `unseen`.";
        kind, "", "`barrier-and`, `barrier-or`, `agent-dispatch`, `vendor-pm4-ib`, `vendor-barrier-value`, \
            `vendor-other`, `undefined` or `unread`.";
        unread, "", "Why it is unread: `reused`, `consumed`, `never-valid` or `unreadable`; null if it was read.";
        header, "", "Packet header, 16 bits, as read; 0 if unread.";
        completion_signal, "", "Handle of the completion signal; 0 if it has none.";
    }

    Copy {
        queue, "", "Queue, as in `queues.queue`; null if unknown.";
        pid, "", "Process.";
        tid, "", "Thread.";
        time_ns, "ns", "Time of the doorbell.";
        path, "", "Path: `doorbell`, `ring`, `thunk` or `unseen`.";
        begin, "bytes", "Where the submission begins in the queue's command stream.";
        end, "bytes", "Where it ends, exclusive.";
        op, "", "Effect of its commands: `copy`, `copy-rect`, `fill`, `mixed` or `none` (waits, padding); null if they were not read, or one is of an unknown form.";
        bytes, "bytes", "Bytes that it moves or fills; null in the same case.";
        commands, "commands", "Commands that move or fill; null in the same case.";
        source, "address", "Source address (for a box, of the surface); null if there is none, it is not one row, or it is unknown.";
        destination, "address", "Destination address; null in the same case.";
        direction, "", "Direction of the copy, by the process's allocations: `h2d`, `d2h`, `d2d` or `h2h`; null if they are unknown.";
        engine, "", "SDMA engine that the process chose for the queue; null if the driver chose.";
        api_call, "", "Innermost API call in which the thread rang, as in `api_calls.call`; null where in none, or where calls were not recorded.";
        stream, "", "Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null in the same case.";
    }
}
