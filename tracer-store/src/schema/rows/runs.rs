//! Runs, which represent rows that the disk could not take in time.

use tracer_core::fact::{DispatchRun, DoorbellRun};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
    DoorbellRun {
        queue, "", "Queue, as in `queues.queue`; null if tracer could not read the memory of the process.";
        pid, "", "Process.";
        beyond, "", "Whether the value of each is an index that was not reserved.";
        count, "doorbells", "Number of them.";
        highest_value, "index", "The highest value stored.";
        published, "packets", "Indexes that they published together.";
        first_index, "index", "The first index published, as value and number of the first doorbell that published any say; null if none did.";
        last_index, "index", "The last index published: `published` indexes from the first one on; null in the same case.";
        begin_ns, "ns", "Time of the first.";
        end_ns, "ns", "Time of the last.";
    }

    DispatchRun {
        queue, "", "Queue, as in `queues.queue`.";
        pid, "", "Process.";
        path, "", "Path of each: `doorbell`, `ring`, `thunk` or `unseen`.";
        evidence, "", "Evidence that each is a dispatch: `header` (valid when read) or `body` (already consumed).";
        kernel_object, "address", "The kernel descriptor; null if the run has several kernels.";
        kernel, "", "Name of the kernel; null if unknown, or if the run has several.";
        first_index, "index", "Packet index of the first.";
        last_index, "index", "Packet index of the last.";
        count, "packets", "Number of them: every index from the first to the last.";
        begin_ns, "ns", "Time of the earliest of their doorbells.";
        end_ns, "ns", "Time of the latest of their doorbells.";
    }
}
