//! Jobs on rings of the kernel driver.

/// A job of the DRM scheduler, with the steps of its life that were seen.
///
/// Only the submit event links a job to a process, because only that event runs in the submitter's context. If it was not seen,
/// `pid` is `None`, whichever thread ran the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingJob {
    /// Time of the first event of the job that was seen.
    pub time_ns: u64,
    /// Name of the ring, as given by the driver; `None` if neither submit nor run was seen.
    pub ring: Option<String>,
    /// Class of the ring: `gfx`, `comp`, `sdma`, ... (`tracer_common::ring::RingClass::name`); `other` if the ring is unknown.
    pub class: String,
    /// Device, as named by the driver core (`0000:c1:00.0`); `None` if the kernel's events do not say.
    pub device: Option<String>,
    /// Context of its finished fence; `None` if the kernel's events do not say.
    pub context: Option<u64>,
    /// Sequence number in that context; `None` under the same condition.
    pub seqno: Option<u64>,
    /// Job number, unique per ring; `None` if the kernel's events do not say.
    pub job_id: Option<u64>,
    /// Id of the DRM client that the job was submitted for, or a reason code of the driver; `None` if the kernel's events do not
    /// say.
    pub client_id: Option<u64>,
    /// Why the driver created the job for itself: `tracer_common::ring::reason`; `None` if a client created it, or if that is
    /// unknown.
    pub reason: Option<String>,
    /// Process in whose context it was submitted; `None` if its submit was not seen.
    pub pid: Option<u32>,
    /// Thread; `None` under the same condition.
    pub tid: Option<u32>,
    /// Whether that process was traced. `None` if the submit was not seen: the process may have been traced.
    pub traced: Option<bool>,
    /// Time at which the job was submitted to its entity's queue; `None` if not seen.
    pub submit_ns: Option<u64>,
    /// Time at which the job was handed to the hardware; `None` if not seen.
    pub run_ns: Option<u64>,
    /// Time at which the CPU noticed that the job's hardware fence had signalled; `None` if not seen.
    pub done_ns: Option<u64>,
    /// Jobs that waited before it in its entity's queue at its submit; `None` if the kernel's events do not say.
    pub queued: Option<u32>,
}

impl RingJob {
    /// Returns the time from submit to run, in ns.
    #[must_use]
    pub fn queued_ns(&self) -> Option<u64> {
        Some(self.run_ns?.saturating_sub(self.submit_ns?))
    }

    /// Returns the time from run to done, in ns.
    #[must_use]
    pub fn running_ns(&self) -> Option<u64> {
        Some(self.done_ns?.saturating_sub(self.run_ns?))
    }
}
