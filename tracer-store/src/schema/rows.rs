//! The columns of every table, field by field of the fact that is its row.

use tracer_core::fact::{
    ApiCall, ApiStats, CodeObject, Copy, Dispatch, Doorbell, DriverCall, DriverEvent, Fact, GpuTime, Ioctl, Kernel,
    Loss, OtherPacket, Process, Progress, Proxy, Queue, Request, RingJob,
};

use super::field::{Field, Get, Misfit, describe};
use super::{Column, Table};
use crate::columns::Buffer;

/// A fact as a row.
trait Row: Sized {
    fn columns() -> Vec<Column>;
    fn put(&self, to: &mut [Buffer]);
    fn get(from: &mut Get<'_>) -> Result<Self, Misfit>;
}

/// Columns of a table.
pub(super) fn columns(table: Table) -> Vec<Column> {
    match table {
        Table::Processes => Process::columns(),
        Table::Queues => Queue::columns(),
        Table::Progress => Progress::columns(),
        Table::Ioctls => Ioctl::columns(),
        Table::Doorbells => Doorbell::columns(),
        Table::Dispatches => Dispatch::columns(),
        Table::GpuTimes => GpuTime::columns(),
        Table::Proxies => Proxy::columns(),
        Table::Requests => Request::columns(),
        Table::Packets => OtherPacket::columns(),
        Table::CodeObjects => CodeObject::columns(),
        Table::Kernels => Kernel::columns(),
        Table::Copies => Copy::columns(),
        Table::RingJobs => RingJob::columns(),
        Table::DriverCalls => DriverCall::columns(),
        Table::DriverEvents => DriverEvent::columns(),
        Table::ApiCalls => ApiCall::columns(),
        Table::ApiStats => ApiStats::columns(),
        Table::Losses => Loss::columns(),
    }
}

/// Appends a fact to the columns of its table.
pub(crate) fn put(fact: &Fact, to: &mut [Buffer]) {
    match fact {
        Fact::Process(row) => row.put(to),
        Fact::Queue(row) => row.put(to),
        Fact::Progress(row) => row.put(to),
        Fact::Ioctl(row) => row.put(to),
        Fact::Doorbell(row) => row.put(to),
        Fact::Dispatch(row) => row.put(to),
        Fact::GpuTime(row) => row.put(to),
        Fact::Proxy(row) => row.put(to),
        Fact::Request(row) => row.put(to),
        Fact::Packet(row) => row.put(to),
        Fact::CodeObject(row) => row.put(to),
        Fact::Kernel(row) => row.put(to),
        Fact::Copy(row) => row.put(to),
        Fact::RingJob(row) => row.put(to),
        Fact::DriverCall(row) => row.put(to),
        Fact::DriverEvent(row) => row.put(to),
        Fact::ApiCall(row) => row.put(to),
        Fact::ApiStats(row) => row.put(to),
        Fact::Loss(row) => row.put(to),
    }
}

/// A row of a table, as the fact that it was.
pub(crate) fn get(table: Table, columns: &[Buffer], row: usize) -> Result<Fact, Misfit> {
    let mut from = Get::new(columns, row);
    Ok(match table {
        Table::Processes => Fact::Process(Row::get(&mut from)?),
        Table::Queues => Fact::Queue(Row::get(&mut from)?),
        Table::Progress => Fact::Progress(Row::get(&mut from)?),
        Table::Ioctls => Fact::Ioctl(Row::get(&mut from)?),
        Table::Doorbells => Fact::Doorbell(Row::get(&mut from)?),
        Table::Dispatches => Fact::Dispatch(Row::get(&mut from)?),
        Table::GpuTimes => Fact::GpuTime(Row::get(&mut from)?),
        Table::Proxies => Fact::Proxy(Row::get(&mut from)?),
        Table::Requests => Fact::Request(Row::get(&mut from)?),
        Table::Packets => Fact::Packet(Row::get(&mut from)?),
        Table::CodeObjects => Fact::CodeObject(Row::get(&mut from)?),
        Table::Kernels => Fact::Kernel(Row::get(&mut from)?),
        Table::Copies => Fact::Copy(Row::get(&mut from)?),
        Table::RingJobs => Fact::RingJob(Row::get(&mut from)?),
        Table::DriverCalls => Fact::DriverCall(Row::get(&mut from)?),
        Table::DriverEvents => Fact::DriverEvent(Row::get(&mut from)?),
        Table::ApiCalls => Fact::ApiCall(Row::get(&mut from)?),
        Table::ApiStats => Fact::ApiStats(Row::get(&mut from)?),
        Table::Losses => Fact::Loss(Row::get(&mut from)?),
    })
}

/// One line a field: its columns (its own name unless given), unit and meaning. The types are the fields' own.
macro_rules! rows {
    ($($row:ident { $($field:ident $([$($name:literal),+])?, $unit:literal, $meaning:literal;)+ })+) => {$(
        impl Row for $row {
            fn columns() -> Vec<Column> {
                let mut columns = Vec::new();
                $(describe(&mut columns, |row: &Self| &row.$field, names!($field $($($name),+)?), $unit, $meaning);)+
                columns
            }

            fn put(&self, to: &mut [Buffer]) {
                let mut to = to.iter_mut();
                $(self.$field.put(&mut to);)+
            }

            fn get(from: &mut Get<'_>) -> Result<Self, Misfit> {
                Ok(Self { $($field: from.field()?,)+ })
            }
        }
    )+};
}

macro_rules! names {
    ($field:ident) => {
        &[stringify!($field)]
    };
    ($field:ident $($name:literal),+) => {
        &[$($name),+]
    };
}

rows! {
    Process {
        pid, "", "Process id, in the initial pid namespace.";
        parent, "", "Process id of the parent; null if its fork was not seen.";
        comm, "", "Name of the last program, at most 15 bytes; empty if no exec was seen.";
        first_ns, "ns", "Time of the first event seen of it.";
        exit_ns, "ns", "Time of its end; null if it lived at the trace's end.";
        thunk, "", "Whether its runtime hands doorbells to the driver's library instead of storing to them (path `thunk`); null if that is not known, or its runtime can't.";
    }

    Queue {
        queue, "", "Number of the queue in the trace, from 0, in the order of first sight; never reused.";
        pid, "", "Process that it belongs to.";
        origin, "", "How it came to be known: `created` (its CREATE_QUEUE was seen) or `adopted` (found by a doorbell).";
        queue_id, "", "KFD queue id, unique in a process at a time; of an adopted queue only if the KFD's files leave no choice, else null.";
        gpu_id, "", "KFD gpu id; of an adopted queue likewise.";
        kind, "", "Queue type: `compute-aql`, `compute-pm4`, `sdma`, `sdma-xgmi`, ...";
        handle, "address", "The `amd_queue_t`, which is the HSA queue handle; 0 for what is no AQL queue.";
        write_pointer, "address", "The write pointer.";
        ring_base, "address", "The ring.";
        ring_bytes, "bytes", "Size of the ring.";
        doorbell_offset, "", "Doorbell offset that the KFD returned; null if adopted.";
        priority, "", "Priority, 0 to 15; null if adopted.";
        internal, "", "Whether the runtime made it for itself: for fills, and for copies by kernels. False if `hsa_queue_create` gave it to the program; null if such calls may have been missed, nothing was submitted on it, or it is no AQL queue.";
        create_enter_ns, "ns", "Entry of CREATE_QUEUE; null if adopted.";
        created_ns, "ns", "Exit of CREATE_QUEUE; of an adopted queue, its first doorbell.";
        destroyed_ns, "ns", "Exit of DESTROY_QUEUE, or end of the process; null if it lived at the trace's end.";
        doorbells, "doorbells", "Doorbells rung.";
        published, "packets", "Indexes published, read or not; of an SDMA queue, submissions.";
        unclaimed, "packets", "Of an adopted queue: indexes that lay in its ring when it was found, and that no doorbell that was seen names; published before, or never, and counted nowhere else. Null if its creation was seen.";
        dispatches, "packets", "Kernel dispatches among the published.";
        other_packets, "packets", "Other packets among the published.";
        unread, "packets", "Published indexes whose packets could not be read.";
        pending, "packets", "Indexes reserved but not published at its end.";
        first_index, "index", "First index published; null if none was.";
        last_index, "index", "Last index published; null if none was.";
        max_depth, "packets", "Most packets between read index and published index at a doorbell.";
        unseen, "packets", "Published indexes of path `unseen`, all of them only if `watched_to_end`; null if nobody looked, or if lost doorbells may have published what was taken.";
        watched_to_end, "", "Whether it was looked at when nothing could be published on it any more, or the recording ended; null for what is no AQL queue.";
        looked_ns, "ns", "Time of the last look; null if there was none.";
        read_index, "index", "Read index at the last look: the GPU had taken every lower one.";
        in_flight, "packets", "Published, but not taken by the GPU, at the last look.";
        oldest_ns, "ns", "Time at which the oldest of these had been published, at the latest; null if there are none.";
        moved_ns, "ns", "Time at which the read index was first seen where it is, at the latest.";
    }

    Progress {
        queue, "", "Queue, as in `queues.queue`.";
        pid, "", "Process.";
        time_ns, "ns", "Time before the look.";
        until_ns, "ns", "Time after it.";
        occasion, "", "Why: `sample` (from time to time), `destroy` and `destroyed` (entry and return of DESTROY_QUEUE), `process-end` or `trace-end`.";
        read_index, "index", "Read index: the GPU had taken every lower one.";
        write_index, "index", "Write index: producers had reserved every lower one.";
        published_end, "index", "One past the highest index that doorbells had published by then; null if none was known.";
    }

    DriverCall {
        pid, "", "Process of the thread that ran it.";
        tid, "", "Thread.";
        enter_ns, "ns", "Entry.";
        exit_ns, "ns", "Return.";
        function, "", "Name of the function, without a compiler's suffix.";
        ret, "", "Low half of the return register: the result, of functions that return `int`.";
        traced, "", "Whether that process was traced.";
    }

    DriverEvent {
        time_ns, "ns", "Time.";
        event, "", "Name in the kernel: `amdgpu_cs_ioctl`, `amdgpu_sched_run_job`, `amdgpu_bo_move`, `amdgpu_vm_flush` or `amdgpu_cleaner_shader`.";
        pid, "", "Process in whose context it came: of `amdgpu_cs_ioctl` the submitter, of `amdgpu_bo_move` who made the driver move the buffer (not its owner, whom nobody tells); null for the others, which come in threads of the kernel.";
        tid, "", "Thread; null likewise.";
        traced, "", "Whether that process was traced; null likewise.";
        ring, "", "Name of the ring; null if the event does not tell.";
        context, "", "Context of the job's finished fence, as in `ring_jobs.context`; only its lower 32 bits on kernels before 6.17; null if the event does not tell.";
        seqno, "", "Sequence number in that context, likewise; of `amdgpu_cleaner_shader`, of its own fence on the ring.";
        job_id, "", "Number of the job, unique per ring; null if the event does not tell, as on kernels from 6.17 on.";
        ibs, "", "Indirect buffers of the job; null if the event does not tell.";
        vmid, "", "Hardware id of the address space; null if the event does not tell.";
        bytes, "bytes", "Size of the buffer; null if the event does not tell.";
        old_placement, "", "Memory that the buffer was in: `system`, `gtt`, `vram`, `gds`, `gws`, `oa`, `preempt`, `doorbell`, `mmio-remap`, `none`, or a number that is not known; null if the event does not tell.";
        new_placement, "", "Memory that it moves to, likewise.";
    }

    ApiCall {
        call, "", "Number of the call in the trace, from 1, in the order of entry.";
        parent, "", "Number of the call of the same thread around it; null if there is none that is recorded.";
        pid, "", "Process.";
        tid, "", "Thread.";
        enter_ns, "ns", "Entry.";
        exit_ns, "ns", "Return; null if none was seen.";
        layer, "", "Library: `hip` or `hsa`.";
        function, "", "Exported name of the function.";
        ret, "", "What it returned (`hipError_t`, `hsa_status_t`, or a wait's value); null if it was left without a return, its thread ended in it, or the recording did.";
        failed, "", "Whether that is an error (`hipErrorNotReady` is none); null likewise.";
        stream, "", "Its stream argument (`hipStream_t`), 0 for the default stream; null if the function has none.";
        bytes, "bytes", "How many bytes it is about; null if the function does not say.";
        object, "", "What it is about (function of a kernel, destination, handle), or the handle or address that it made; null if it has none, or made none.";
        dispatches, "packets", "Dispatches whose `api_call` it is, or a call inside it.";
        copies, "", "Rows of `copies` likewise.";
    }

    ApiStats {
        counter, "", "Number of what counted them, in the recording.";
        pid, "", "Process; null for the calls of all those that were too many to be told apart.";
        time_ns, "ns", "Time of the look that found these numbers first.";
        layer, "", "Library: `hip` or `hsa`.";
        function, "", "Exported name of the function.";
        calls, "calls", "Calls that were entered; those that neither returned nor were left were open at the end.";
        returned, "calls", "Those that returned.";
        failed, "calls", "Those that returned an error (`hipErrorNotReady` is none).";
        left, "calls", "Those that were left without a return, or in which their thread ended.";
        total_ns, "ns", "Sum of the durations of those that returned.";
        min_ns, "ns", "The least duration; null if none returned, or it may be that of a call before the recording (`top`, key R).";
        max_ns, "ns", "The greatest, likewise.";
        durations, "", "All of them, in buckets of which each is at most an eighth wide: `END:COUNT` with a space between two, the bucket's greatest duration in ns and how many it has.";
    }

    RingJob {
        time_ns, "ns", "First event seen of it.";
        ring, "", "Name of the ring, as the driver gives it; null if only its end was seen.";
        class, "", "Class of the ring: `gfx`, `comp`, `sdma`, `page`, `vcn`, `jpeg`, `media`, `kiq`, `mes`, `other`.";
        device, "", "Device, such as `0000:c1:00.0`; null where the kernel's events do not tell.";
        context, "", "Context of its finished fence; null where the kernel's events do not tell.";
        seqno, "", "Sequence number in that context; null likewise.";
        job_id, "", "Number of the job, unique per ring; null where the kernel's events do not tell.";
        client_id, "", "DRM client that it was submitted for, or a reason code of the driver; null where the kernel's events do not tell.";
        reason, "", "Why the driver made it for itself; null if a client made it or nobody knows.";
        pid, "", "Process in whose context it was submitted; null if its submit was not seen.";
        tid, "", "Thread; null likewise.";
        traced, "", "Whether that process was traced; null likewise.";
        submit_ns, "ns", "Put into its entity's queue; null if not seen.";
        run_ns, "ns", "Handed to the hardware; null if not seen.";
        done_ns, "ns", "Its hardware fence signalled; null if not seen.";
        queued, "jobs", "Jobs in its entity's queue at its submit; null where the kernel's events do not tell.";
    }

    Ioctl {
        pid, "", "Process.";
        tid, "", "Thread.";
        enter_ns, "ns", "Entry.";
        exit_ns, "ns", "Exit; of a call that never returned, the thread's end.";
        device, "", "Class of the device: `kfd` or `drm`.";
        fd, "", "File descriptor.";
        cmd, "", "The whole ioctl command.";
        name, "", "Name of the command; `nr-0xNN` for an unknown one.";
        ret, "", "Result, negative for -errno; null if the call never returned.";
        args, "", "Fields of the argument, `name=value`, the results of a call that succeeded behind `->`; null where the layout is not known or the argument was unreadable.";
        arg_in, "", "Argument at entry, perhaps only its start; null if unreadable.";
        arg_out, "", "Argument at exit, perhaps only its start; null if unreadable.";
    }

    Doorbell {
        queue, "", "Queue, as in `queues.queue`; null if the process's memory could not be read.";
        pid, "", "Process.";
        tid, "", "Thread.";
        time_ns, "ns", "Time just before the store.";
        value, "index", "Value stored: index of the last packet published.";
        published, "packets", "Indexes that it published; 0 for a repeated or lower value.";
        read_index, "index", "The queue's read index at that moment.";
        write_index, "index", "The queue's write index at that moment.";
        reserve_to_doorbell_ns, "ns", "Time since the thread's last reserve on this queue; null if none was seen.";
        beyond, "", "Whether the value names an index that nobody had reserved.";
    }

    Dispatch {
        queue, "", "Queue, as in `queues.queue`.";
        index, "index", "Packet index in its queue, not modulo the ring's size.";
        pid, "", "Process.";
        tid, "", "Thread whose doorbell published it; 0 if the path is `unseen`.";
        time_ns, "ns", "Time of that doorbell.";
        path, "", "Way that it took: `doorbell`, `ring`, `thunk` or `unseen`.";
        evidence, "", "What says that it is a dispatch: `header` (valid when read) or `body` (already consumed).";
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
        stream, "", "Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null likewise.";
    }

    GpuTime {
        queue, "", "Queue, as in `dispatches.queue`.";
        index, "index", "Packet index in its queue, as in `dispatches.index`.";
        pid, "", "Process.";
        time_ns, "ns", "Time of the doorbell that published it, as in `dispatches.time_ns`.";
        kernel_object, "address", "The kernel descriptor.";
        kernel, "", "Name of the kernel, as in `dispatches.kernel`.";
        gpu_id, "", "KFD gpu id, whose clock it is; null if the queue's is not known.";
        start_ticks, "ticks", "It began, by the GPU's clock.";
        end_ticks, "ticks", "It ended, likewise.";
        start_ns, "ns", "It began, by the trace's clock; null if the process had the GPU's clock read (GET_CLOCK_COUNTERS) less than twice, or too far from then to tell it to a millisecond.";
        end_ns, "ns", "It ended, likewise.";
        clock_error_ns, "ns", "How far `start_ns` and `end_ns` can be off, both by about the same, since it is not known when in these calls the clock was read; null where they are.";
    }

    Proxy {
        proxy, "", "Number of the proxy in the trace, from 0; not that of a queue.";
        pid, "", "Process.";
        handle, "address", "The handle that `hsa_queue_create` gave the program, which is the proxy's `amd_queue_t`.";
        ring_base, "address", "Its ring.";
        ring_bytes, "bytes", "Size of the ring.";
        created_ns, "ns", "Return of `hsa_queue_create`.";
        ended_ns, "ns", "When its process ended, or another proxy was made at its address; null if it lived at the trace's end. Its own end is not watched.";
        doorbells, "doorbells", "How often the program rang it.";
        requested, "packets", "Packets that the program submitted to it.";
        dispatches, "packets", "Kernel dispatches among these.";
        other_packets, "packets", "Other packets among these.";
        unread, "packets", "Those that could not be read.";
        first_index, "index", "Index of the first one; null if there is none.";
        last_index, "index", "Index of the last one; null likewise.";
    }

    Request {
        proxy, "", "Proxy, as in `proxies.proxy`.";
        index, "index", "Packet index in its proxy.";
        pid, "", "Process.";
        tid, "", "Thread that rang for it.";
        time_ns, "ns", "Time of that.";
        evidence, "", "What says that it is a dispatch, as in `dispatches.evidence`.";
        reserve_ns, "ns", "Time at which that thread reserved the index; null where that is not known.";
        kernel_object, "address", "The kernel descriptor.";
        kernel, "", "Name of the kernel; null if it is not known.";
        kernarg, "address", "The kernel arguments.";
        grid["grid_x", "grid_y", "grid_z"], "work items", "Size of the grid.";
        workgroup["workgroup_x", "workgroup_y", "workgroup_z"], "work items", "Size of a workgroup.";
        completion_signal, "", "Handle of the completion signal; 0 if it has none.";
        api_call, "", "Innermost API call in which that thread rang, as in `dispatches.api_call`.";
        stream, "", "Stream of the innermost call around it that names one, likewise.";
    }

    OtherPacket {
        queue, "", "Queue, as in `queues.queue`.";
        index, "index", "Packet index in its queue, not modulo the ring's size; of a run, the first.";
        count, "packets", "Indexes that the row stands for: 1, or more for a run of unread ones.";
        pid, "", "Process.";
        tid, "", "Thread whose doorbell published it; 0 if unknown, or the path is `unseen`.";
        time_ns, "ns", "Time of that doorbell, or when reading it was given up.";
        path, "", "Way that it took: `doorbell`, `ring`, `thunk` or `unseen`.";
        kind, "", "`barrier-and`, `barrier-or`, `agent-dispatch`, `vendor-pm4-ib`, `vendor-barrier-value`, \
            `vendor-other`, `undefined` or `unread`.";
        unread, "", "Why it is unread: `reused`, `consumed`, `never-valid` or `unreadable`; null if it was read.";
        header, "", "Packet header, 16 bits, as read; 0 if unread.";
        completion_signal, "", "Handle of the completion signal; 0 if it has none.";
    }

    CodeObject {
        code_object, "", "Number of the code object in the trace, from 0, in the order of loading; never reused.";
        pid, "", "Process.";
        origin, "", "How it came to be known: `loaded` (that was watched) or `found` (it was there before, or a change was missed).";
        load_base, "address", "What was added to its addresses as it was loaded.";
        uri, "", "Where it comes from, as the runtime tells it: `file://` and a path, or `memory://` and a process id, with offset and size.";
        target, "", "GPU that it is for, such as `amdgcn-amd-amdhsa--gfx942`; null if it does not tell.";
        version, "", "Version of code objects, 2 to 6; null if it was not read.";
        kernels, "kernels", "Kernels in it; null if they are not known.";
        unread, "", "Why they are not known: `unreadable`, `changed`, `malformed`, `too-large` or `unknown-source`; null if they are.";
        loaded_ns, "ns", "Time at which it was loaded, or found.";
        unloaded_ns, "ns", "Time at which it was unloaded, or its process ended; null if it lived at the trace's end, or that was not seen.";
    }

    Kernel {
        code_object, "", "Code object, as in `code_objects.code_object`.";
        pid, "", "Process.";
        loaded_ns, "ns", "Time at which the code object was loaded, or found.";
        kernel_object, "address", "The kernel descriptor, as in `dispatches.kernel_object`.";
        name, "", "Name, demangled.";
        symbol, "", "Name in the code object, without the descriptor's suffix.";
        kernarg_bytes, "bytes", "Size of the arguments; null if not told.";
        group_bytes, "bytes", "Group memory (LDS) of a workgroup, without what a dispatch adds; null if not told.";
        private_bytes, "bytes", "Private memory (scratch) of a work item; null if not told.";
        vgprs, "registers", "Vector registers of a work item; null if not told.";
        agprs, "registers", "Accumulation vector registers; null if not told.";
        sgprs, "registers", "Scalar registers of a wave; null if not told.";
        wavefront, "work items", "Work items of a wave; null if not told.";
        max_workgroup, "work items", "Largest workgroup that it can run with; null if not told.";
    }

    Copy {
        queue, "", "Queue, as in `queues.queue`; null if unknown.";
        pid, "", "Process.";
        tid, "", "Thread.";
        time_ns, "ns", "Time of the doorbell.";
        path, "", "Way that it took: `doorbell`, `ring`, `thunk` or `unseen`.";
        begin, "bytes", "Where the submission begins in the queue's command stream.";
        end, "bytes", "Where it ends, exclusive.";
        op, "", "What its commands do: `copy`, `copy-rect`, `fill`, `mixed` or `none` (waits, padding); null if they were not read, or one is of an unknown form.";
        bytes, "bytes", "Bytes that it moves or fills; null likewise.";
        commands, "commands", "Commands that move or fill; null likewise.";
        source, "address", "What is read (of a box, the surface); null if that is nothing, not one row, or not known.";
        destination, "address", "What is written, likewise.";
        direction, "", "Between which memories, by the process's allocations: `h2d`, `d2h`, `d2d` or `h2h`; null if they do not tell.";
        engine, "", "SDMA engine that the process chose for the queue; null if the driver chose.";
        api_call, "", "Innermost API call in which the thread rang, as in `api_calls.call`; null where in none, or where calls were not recorded.";
        stream, "", "Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null likewise.";
    }

    Loss {
        time_ns, "ns", "Time at which the loss was noticed.";
        source, "", "Source that lost events; `store` for rows that the recorder could not write in time.";
        count, "events", "Events lost since the last row of this source.";
    }
}
