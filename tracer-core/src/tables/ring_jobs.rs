//! Jobs on rings of the kernel driver.

use super::table;

table! {
    /// Jobs of the DRM scheduler on rings of the kernel driver, of every process and of the driver itself.
    pub struct RingJob: "ring_jobs" by time_ns, Events {
        /// First event seen of it.
        pub time_ns: u64 => "ns",
        /// Name of the ring, as the driver gives it; null if tracer saw only its end.
        pub ring: Option<String>,
        /// Class of the ring: `gfx`, `comp`, `sdma`, `page`, `vcn`, `jpeg`, `media`, `kiq`, `mes`, `other`.
        pub class: String,
        /// Device, such as `0000:c1:00.0`; null if the kernel's events do not contain it.
        pub device: Option<String>,
        /// Context of its finished fence; null if the kernel's events do not contain it.
        pub context: Option<u64>,
        /// Sequence number in that context; null in the same case.
        pub seqno: Option<u64>,
        /// Number of the job, unique per ring; null if the kernel's events do not contain it.
        pub job_id: Option<u64>,
        /// DRM client that it was submitted for, or a reason code of the driver; null if the kernel's events do not contain it.
        pub client_id: Option<u64>,
        /// Why the driver submitted it itself; null if a client submitted it, or if that is unknown.
        pub reason: Option<String>,
        /// Process in whose context it was submitted; null if its submit was not seen, or if the imported text does not name it.
        pub pid: Option<u32>,
        /// Thread; null if its submit was not seen.
        pub tid: Option<u32>,
        /// Whether that process was traced, true for imported text; null in the same case.
        pub traced: Option<bool>,
        /// Put into its entity's queue; null if not seen.
        pub submit_ns: Option<u64> => "ns",
        /// Handed to the hardware; null if not seen.
        pub run_ns: Option<u64> => "ns",
        /// Its hardware fence signalled; null if not seen.
        pub done_ns: Option<u64> => "ns",
        /// Jobs in its entity's queue at its submit; null if the kernel's events do not contain it.
        pub queued: Option<u32> => "jobs",
    }
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
