//! Events of the kernel driver, and losses of all sources.

use tracer_core::fact::{DriverCall, DriverEvent, Loss, RingJob};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
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
        pid, "", "Process in whose context it came: of `amdgpu_cs_ioctl` the submitter, of `amdgpu_bo_move` the process that made the driver move the buffer (the event does not name its owner); null for the others, which come from kernel threads.";
        tid, "", "Thread; null in the same case.";
        traced, "", "Whether that process was traced; null in the same case.";
        ring, "", "Name of the ring; null if the event does not contain it.";
        context, "", "Context of the job's finished fence, as in `ring_jobs.context`; only its lower 32 bits on kernels before 6.17; null if the event does not contain it.";
        seqno, "", "Sequence number in that context; null in the same case; of `amdgpu_cleaner_shader`, of its own fence on the ring.";
        job_id, "", "Number of the job, unique per ring; null if the event does not contain it, as on kernels from 6.17 on.";
        ibs, "", "Indirect buffers of the job; null if the event does not contain it.";
        vmid, "", "Hardware id of the address space; null if the event does not contain it.";
        bytes, "bytes", "Size of the buffer; null if the event does not contain it.";
        old_placement, "", "Memory that the buffer was in: `system`, `gtt`, `vram`, `gds`, `gws`, `oa`, `preempt`, `doorbell`, `mmio-remap`, `none`, or a number that is not known; null if the event does not contain it.";
        new_placement, "", "Memory that it moves to; the same values.";
    }

    RingJob {
        time_ns, "ns", "First event seen of it.";
        ring, "", "Name of the ring, as the driver gives it; null if tracer saw only its end.";
        class, "", "Class of the ring: `gfx`, `comp`, `sdma`, `page`, `vcn`, `jpeg`, `media`, `kiq`, `mes`, `other`.";
        device, "", "Device, such as `0000:c1:00.0`; null if the kernel's events do not contain it.";
        context, "", "Context of its finished fence; null if the kernel's events do not contain it.";
        seqno, "", "Sequence number in that context; null in the same case.";
        job_id, "", "Number of the job, unique per ring; null if the kernel's events do not contain it.";
        client_id, "", "DRM client that it was submitted for, or a reason code of the driver; null if the kernel's events do not contain it.";
        reason, "", "Why the driver submitted it itself; null if a client submitted it, or if that is unknown.";
        pid, "", "Process in whose context it was submitted; null if its submit was not seen.";
        tid, "", "Thread; null in the same case.";
        traced, "", "Whether that process was traced; null in the same case.";
        submit_ns, "ns", "Put into its entity's queue; null if not seen.";
        run_ns, "ns", "Handed to the hardware; null if not seen.";
        done_ns, "ns", "Its hardware fence signalled; null if not seen.";
        queued, "jobs", "Jobs in its entity's queue at its submit; null if the kernel's events do not contain it.";
    }

    Loss {
        time_ns, "ns", "Time at which the loss was noticed.";
        source, "", "Source that lost events; `store` for rows that the recorder could not write in time.";
        count, "events", "Events lost since the last row of this source.";
    }
}
