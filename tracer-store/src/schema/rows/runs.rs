//! What stands for rows that the disk could not take in time.

use tracer_core::fact::{DispatchRun, DoorbellRun};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
    DoorbellRun {
        queue, "", "Queue, as in `queues.queue`; null if the process's memory could not be read.";
        pid, "", "Process.";
        beyond, "", "Whether the value of each names an index that nobody had reserved.";
        count, "doorbells", "How many they are.";
        highest_value, "index", "The highest value stored.";
        published, "packets", "Indexes that they published together.";
        first_index, "index", "The first index published, as value and number of the first doorbell that published any say; null if none did.";
        last_index, "index", "The last index published, likewise: `published` indexes from the first one on.";
        begin_ns, "ns", "Time of the first.";
        end_ns, "ns", "Time of the last.";
    }

    DispatchRun {
        queue, "", "Queue, as in `queues.queue`.";
        pid, "", "Process.";
        path, "", "Way that each of them took: `doorbell`, `ring`, `thunk` or `unseen`.";
        evidence, "", "What says that each is a dispatch: `header` (valid when read) or `body` (already consumed).";
        kernel_object, "address", "The kernel descriptor; null if they are of several kernels.";
        kernel, "", "Name of the kernel; null if it is not known, or there are several.";
        first_index, "index", "Packet index of the first.";
        last_index, "index", "Packet index of the last.";
        count, "packets", "How many they are: every index from the first to the last.";
        begin_ns, "ns", "Time of the earliest of their doorbells.";
        end_ns, "ns", "Time of the latest of their doorbells.";
    }
}
