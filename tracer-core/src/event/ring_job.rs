//! Jobs on rings of the kernel driver.

use super::Origin;

/// Key that the events of one job have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKey {
    /// Address of its finished fence (kernels before 6.17, without BTF). The address is reused after the job's end.
    Fence(u64),
    /// Context and sequence number of its finished fence. They are unique while the machine is up.
    Seqno {
        /// Fence context.
        context: u64,
        /// Sequence number in that context.
        seqno: u64,
    },
}

/// A step in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingStep {
    /// The submitter's context put the job into its entity's queue.
    Submit,
    /// A kernel thread handed the job to the hardware.
    Run,
    /// Its hardware fence signalled.
    Done,
}

/// A step in the life of a job of the DRM scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingJob<'a> {
    /// Time and context. Only the context of a submit is the submitter's.
    pub origin: Origin,
    /// The step.
    pub step: RingStep,
    /// The job.
    pub key: JobKey,
    /// Name of the ring; `None` if the event does not say.
    pub ring: Option<&'a [u8]>,
    /// Name of the device; `None` if the event does not say.
    pub device: Option<&'a [u8]>,
    /// Client id, or a reason code; `None` if the event does not say.
    pub client_id: Option<u64>,
    /// Number of the job on its ring; `None` if the event does not say.
    pub job_id: Option<u64>,
    /// Jobs in the entity's queue; `None` if the event does not say.
    pub queued: Option<u32>,
    /// Whether the process in whose context the event occurred is traced.
    pub traced: bool,
}
