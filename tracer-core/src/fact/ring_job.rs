//! Jobs on rings of the kernel driver.

/// A job of the DRM scheduler, with as much of its life as was seen.
///
/// It belongs to a process only through its submit event, the one that runs in the submitter's context: where that was
/// not seen, `pid` is `None`, whatever thread ran the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingJob {
    /// First event of it that was seen.
    pub time_ns: u64,
    /// Name of the ring, as the driver gives it; `None` if neither its submit nor its run was seen.
    pub ring: Option<String>,
    /// `gfx`, `comp`, `sdma`, ...: `tracer_common::ring::RingClass::name`; `other` if the ring is not known.
    pub class: String,
    /// Device, as the driver core names it (`0000:c1:00.0`); `None` where the kernel's events do not tell.
    pub device: Option<String>,
    /// Context of its finished fence; `None` where the kernel's events do not tell.
    pub context: Option<u64>,
    /// Sequence number in that context; `None` as above.
    pub seqno: Option<u64>,
    /// Job number, unique per ring; `None` where the kernel's events do not tell.
    pub job_id: Option<u64>,
    /// Id of the DRM client that it was submitted for, or a reason code of the driver; `None` where the kernel's events do
    /// not tell.
    pub client_id: Option<u64>,
    /// Why the driver made it for itself: `tracer_common::ring::reason`; `None` if a client made it, or no one knows.
    pub reason: Option<String>,
    /// Process in whose context it was submitted; `None` if its submit was not seen.
    pub pid: Option<u32>,
    /// Thread; `None` as above.
    pub tid: Option<u32>,
    /// Whether that process was traced. `None` if its submit was not seen: it may have been.
    pub traced: Option<bool>,
    /// Submitted to its entity's queue; `None` if not seen.
    pub submit_ns: Option<u64>,
    /// Handed to the hardware; `None` if not seen.
    pub run_ns: Option<u64>,
    /// Its hardware fence signalled, as the processor noticed; `None` if not seen.
    pub done_ns: Option<u64>,
    /// Jobs waiting before it in its entity's queue at its submit; `None` where the kernel's events do not tell.
    pub queued: Option<u32>,
}

impl RingJob {
    /// Time from submit to run, ns.
    #[must_use]
    pub fn queued_ns(&self) -> Option<u64> {
        Some(self.run_ns?.saturating_sub(self.submit_ns?))
    }

    /// Time from run to done, ns.
    #[must_use]
    pub fn running_ns(&self) -> Option<u64> {
        Some(self.done_ns?.saturating_sub(self.run_ns?))
    }
}
