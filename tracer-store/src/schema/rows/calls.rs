//! Calls: of HIP and HSA, and of the kernel.

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

    Ioctl {
        pid, "", "Process.";
        tid, "", "Thread.";
        enter_ns, "ns", "Entry.";
        exit_ns, "ns", "Exit; of a call that never returned, the thread's end or the recording's.";
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
