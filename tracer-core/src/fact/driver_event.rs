//! Trace events of the kernel driver itself.

/// A trace event of amdgpu: what the driver reports of its own work, apart from the jobs of the scheduler.
///
/// It is not a job: amdgpu_cs_ioctl and amdgpu_sched_run_job are about jobs that are already recorded as [`super::RingJob`]s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverEvent {
    /// Time of the event.
    pub time_ns: u64,
    /// Its name in the kernel: `crate::event::DriverEventKind::name`.
    pub event: String,
    /// Process in whose context the event occurred, where that is meaningful. For amdgpu_cs_ioctl it is the submitter. For
    /// amdgpu_bo_move it is the process that made the driver move the buffer; the event does not say whose buffer it is. `None` for
    /// the other events, because they occur in kernel threads.
    pub pid: Option<u32>,
    /// Thread; `None` under the same conditions.
    pub tid: Option<u32>,
    /// Whether that process was traced; `None` under the same conditions.
    pub traced: Option<bool>,
    /// Name of the ring; `None` if the event does not say.
    pub ring: Option<String>,
    /// Context of the job's finished fence (its lower 32 bits on kernels before 6.17); `None` if the event does not say.
    pub context: Option<u64>,
    /// Sequence number of that fence, in the same way; for amdgpu_cleaner_shader, of the event's own fence on the ring.
    pub seqno: Option<u64>,
    /// Job number, unique per ring; `None` if the event does not say (kernels from 6.17 on).
    pub job_id: Option<u64>,
    /// Indirect buffers of the job; `None` if the event does not say.
    pub ibs: Option<u32>,
    /// Hardware id of the address space; `None` if the event does not say.
    pub vmid: Option<u32>,
    /// Bytes of the buffer; `None` if the event does not say.
    pub bytes: Option<u64>,
    /// Memory that the buffer was in: `tracer_common::placement::name`, or the number; `None` if the event does not say.
    pub old_placement: Option<String>,
    /// Memory that the buffer moves to, in the same form.
    pub new_placement: Option<String>,
}
