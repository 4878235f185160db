//! Trace events of the kernel driver itself.

/// A trace event of amdgpu: what the driver says of its own work, beside the scheduler's jobs.
///
/// It is no job: amdgpu_cs_ioctl and amdgpu_sched_run_job tell of jobs that are [`super::RingJob`]s already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverEvent {
    /// When.
    pub time_ns: u64,
    /// Its name in the kernel: `crate::event::DriverEventKind::name`.
    pub event: String,
    /// Process in whose context it came, where that says something: of amdgpu_cs_ioctl the submitter, of amdgpu_bo_move
    /// who made the driver move the buffer (whose buffer it is, the event does not tell). `None` of the others: they come
    /// in threads of the kernel.
    pub pid: Option<u32>,
    /// Thread; `None` likewise.
    pub tid: Option<u32>,
    /// Whether that process was traced; `None` likewise.
    pub traced: Option<bool>,
    /// Name of the ring; `None` if the event does not tell.
    pub ring: Option<String>,
    /// Context of the job's finished fence (its lower 32 bits on kernels before 6.17); `None` if the event does not tell.
    pub context: Option<u64>,
    /// Sequence number of that fence, likewise; of amdgpu_cleaner_shader, of its own fence on the ring.
    pub seqno: Option<u64>,
    /// Job number, unique per ring; `None` if the event does not tell (kernels from 6.17 on).
    pub job_id: Option<u64>,
    /// Indirect buffers of the job; `None` if the event does not tell.
    pub ibs: Option<u32>,
    /// Hardware id of the address space; `None` if the event does not tell.
    pub vmid: Option<u32>,
    /// Bytes of the buffer; `None` if the event does not tell.
    pub bytes: Option<u64>,
    /// Memory that it was in: `tracer_common::placement::name`, or the number; `None` if the event does not tell.
    pub old_placement: Option<String>,
    /// Memory that it moves to; the same values.
    pub new_placement: Option<String>,
}
