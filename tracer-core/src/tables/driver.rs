//! Calls of functions of the kernel driver, and its own trace events.

use std::borrow::Cow;

use super::table;

table! {
    /// Calls of functions of the kernel driver: KFD handlers, queue life, MES and HWS.
    pub struct DriverCall: "driver_calls" by enter_ns, Events {
        /// Process of the thread that ran it.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Entry.
        pub enter_ns: u64 => "ns",
        /// Return.
        pub exit_ns: u64 => "ns",
        /// Name of the function, without a compiler's suffix.
        pub function: String,
        /// Low half of the return register: the result, of functions that return `int`.
        pub ret: i32,
        /// Whether that process was traced.
        pub traced: bool,
        /// Index of the doorbell of the queue that the call is about, in the GPU's doorbell BAR (32-bit words). Null for functions
        /// whose arguments do not lead to a queue, if the kernel's BTF does not describe them, if the compiler changed them
        /// (`.constprop`, `.isra`), or if a function that creates a queue failed. The same applies to the next four columns.
        pub doorbell_index: Option<u64> => "index",
        /// Its type, by the kernel's name: `compute`, `sdma`, `hiq`, ...; a number in calls of the MES, whose types have no names in
        /// the kernel's BTF (1 is compute, 2 is SDMA).
        pub queue_type: Option<String>,
        /// Its KFD id.
        pub queue_id: Option<u32>,
        /// Process that owns the queue, or whose queues are evicted or restored: not always the one that ran the function.
        pub owner: Option<u32>,
        /// Number of its address space on the GPU (PASID). From Linux 6.16 on, only calls of the MES show it.
        pub pasid: Option<u32>,
    }
}

table! {
    /// Trace events of amdgpu itself, of every process and of the driver. An event that names a job is about a job that is also in
    /// `ring_jobs`; do not add the two tables.
    pub struct DriverEvent: "driver_events" by time_ns, Events {
        /// Time.
        pub time_ns: u64 => "ns",
        /// Name in the kernel: `amdgpu_cs_ioctl`, `amdgpu_sched_run_job`, `amdgpu_bo_move`, `amdgpu_vm_flush` or
        /// `amdgpu_cleaner_shader`.
        pub event: Cow<'static, str>,
        /// Process in whose context it came: of `amdgpu_cs_ioctl` the submitter, of `amdgpu_bo_move` the process that made the
        /// driver move the buffer (the event does not name its owner); null for the others, which come from kernel threads.
        pub pid: Option<u32>,
        /// Thread; null in the same case.
        pub tid: Option<u32>,
        /// Whether that process was traced; null in the same case.
        pub traced: Option<bool>,
        /// Name of the ring; null if the event does not contain it.
        pub ring: Option<String>,
        /// Context of the job's finished fence, as in `ring_jobs.context`; only its lower 32 bits on kernels before 6.17; null if
        /// the event does not contain it.
        pub context: Option<u64>,
        /// Sequence number in that context; null in the same case; of `amdgpu_cleaner_shader`, of its own fence on the ring.
        pub seqno: Option<u64>,
        /// Number of the job, unique per ring; null if the event does not contain it, as on kernels from 6.17 on.
        pub job_id: Option<u64>,
        /// Indirect buffers of the job; null if the event does not contain it.
        pub ibs: Option<u32>,
        /// Hardware id of the address space; null if the event does not contain it.
        pub vmid: Option<u32>,
        /// Size of the buffer; null if the event does not contain it.
        pub bytes: Option<u64> => "bytes",
        /// Memory that the buffer was in: `system`, `gtt`, `vram`, `gds`, `gws`, `oa`, `preempt`, `doorbell`, `mmio-remap`, `none`,
        /// or a number that is not known; null if the event does not contain it.
        pub old_placement: Option<Cow<'static, str>>,
        /// Memory that it moves to; the same values.
        pub new_placement: Option<Cow<'static, str>>,
    }
}
