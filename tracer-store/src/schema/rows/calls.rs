//! Calls of HIP and HSA, and of the kernel.

use tracer_core::fact::{ApiCall, ApiStats, Ioctl};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
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
        failed, "", "Whether that is an error (`hipErrorNotReady` is not); null in the same case.";
        stream, "", "Its stream argument (`hipStream_t`), 0 for the default stream; null if the function has none.";
        bytes, "bytes", "Number of bytes that the call concerns; null if the function has no such argument.";
        object, "", "Object of the call (kernel function, destination, handle), or the handle or address that it returned; null if there is none.";
        dispatches, "packets", "Dispatches whose `api_call` it is, or a call inside it.";
        copies, "", "Rows of `copies` under the same condition.";
    }

    ApiStats {
        counter, "", "Number of the counter in the recording.";
        pid, "", "Process; null for the calls of all processes beyond the limit, which share one row.";
        time_ns, "ns", "Time of the first sample with these numbers.";
        layer, "", "Library: `hip` or `hsa`.";
        function, "", "Exported name of the function.";
        calls, "calls", "Calls that began; calls that neither returned nor were left were still open at the end.";
        returned, "calls", "Calls that returned.";
        failed, "calls", "Calls that returned an error (`hipErrorNotReady` is not one).";
        left, "calls", "Calls that were left without a return, or whose thread exited.";
        total_ns, "ns", "Sum of the durations of the calls that returned.";
        min_ns, "ns", "The least duration; null if none returned, or it may be that of a call before the recording (`top`, key R).";
        max_ns, "ns", "The greatest duration; null in the same cases.";
        durations, "", "All durations, in buckets whose width is at most an eighth of their durations: `END:COUNT`, separated by spaces, with the bucket's greatest duration in ns and its count.";
    }

    Ioctl {
        pid, "", "Process.";
        tid, "", "Thread.";
        enter_ns, "ns", "Entry.";
        exit_ns, "ns", "Exit; for a call that never returned, the exit of the thread or the end of the recording.";
        device, "", "Class of the device: `kfd` or `drm`.";
        fd, "", "File descriptor.";
        cmd, "", "The whole ioctl command.";
        name, "", "Name of the command; `nr-0xNN` for an unknown one.";
        ret, "", "Result, negative for -errno; null if the call never returned.";
        args, "", "Fields of the argument, `name=value`, the results of a call that succeeded behind `->`; null where the layout is not known or the argument was unreadable.";
        arg_in, "", "Argument at entry, perhaps only its start; null if unreadable.";
        arg_out, "", "Argument at exit, perhaps only its start; null if unreadable.";
    }
}
