//! Losses by source.

/// A source of lost events, and the index of its counter in the LOSSES map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LossSource {
    /// Ring buffer full: a doorbell. The queue's next doorbell walks its packets again.
    DoorbellRing = 0,
    /// Ring buffer full: packets of a walk.
    PacketsRing = 1,
    /// Ring buffer full: an ioctl.
    IoctlRing = 2,
    /// Ring buffer full: a reserve.
    ReserveRing = 3,
    /// Ring buffer full: fork, exec or exit.
    TaskRing = 4,
    /// Ring buffer full: a paused process was not announced.
    HoldRing = 5,
    /// Map full: a queue's walk state could not be kept.
    QueueMap = 6,
    /// Map full: an ioctl's entry could not be kept.
    IoctlMap = 7,
    /// Map full: a child process could not be added to the traced ones.
    TracedMap = 8,
    /// Ring buffer full: an SDMA doorbell.
    SdmaRing = 9,
    /// A process could not be stopped until its probes were attached.
    HoldFailed = 10,
    /// Ring buffer full: a step of a job of the DRM scheduler.
    RingJobRing = 11,
    /// Ring buffer full: a call of a driver function.
    DriverRing = 12,
    /// Map full: the entry of a driver function could not be kept.
    DriverMap = 13,
    /// Ring buffer full: a trace event of the driver.
    DriverEventRing = 14,
    /// Ring buffer full: a change of a list of code objects was not announced.
    CodeObjectRing = 15,
    /// An exported function stored to a signal, and tracer could not read whether the signal is a doorbell.
    SignalUnread = 16,
    /// Ring buffer full: a last sample of a queue.
    ProgressRing = 17,
    /// Ring buffer full: an API call.
    ApiRing = 18,
    /// Map full: the calls of a thread could not be kept.
    ApiMap = 19,
    /// A thread was in more nested API calls than are kept.
    ApiDepth = 20,
    /// Ring buffer full: a queue that a program created for itself.
    HsaQueueRing = 21,
    /// tracer could not read whether a queue that a program received is a proxy, or a program rang a proxy that is not known.
    ProxyUnknown = 22,
}

impl LossSource {
    /// The number of processors with counters of their own. Processors beyond it share counters, two at a time.
    pub const PROCESSORS: u32 = 1024;
    /// Counters per processor: a power of two, with room for every source.
    pub const STRIDE: u32 = 32;

    /// Every source, in the order of the map.
    pub const ALL: [Self; 23] = [
        Self::DoorbellRing,
        Self::PacketsRing,
        Self::IoctlRing,
        Self::ReserveRing,
        Self::TaskRing,
        Self::HoldRing,
        Self::QueueMap,
        Self::IoctlMap,
        Self::TracedMap,
        Self::SdmaRing,
        Self::HoldFailed,
        Self::RingJobRing,
        Self::DriverRing,
        Self::DriverMap,
        Self::DriverEventRing,
        Self::CodeObjectRing,
        Self::SignalUnread,
        Self::ProgressRing,
        Self::ApiRing,
        Self::ApiMap,
        Self::ApiDepth,
        Self::HsaQueueRing,
        Self::ProxyUnknown,
    ];

    /// Returns the name in reports, metrics and the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DoorbellRing => "doorbell-ring",
            Self::PacketsRing => "packets-ring",
            Self::IoctlRing => "ioctl-ring",
            Self::ReserveRing => "reserve-ring",
            Self::TaskRing => "task-ring",
            Self::HoldRing => "hold-ring",
            Self::QueueMap => "queue-map",
            Self::IoctlMap => "ioctl-map",
            Self::TracedMap => "traced-map",
            Self::SdmaRing => "sdma-ring",
            Self::HoldFailed => "hold-failed",
            Self::RingJobRing => "ring-job-ring",
            Self::DriverRing => "driver-ring",
            Self::DriverMap => "driver-map",
            Self::DriverEventRing => "driver-event-ring",
            Self::CodeObjectRing => "code-object-ring",
            Self::SignalUnread => "signal-unread",
            Self::ProgressRing => "progress-ring",
            Self::ApiRing => "api-ring",
            Self::ApiMap => "api-map",
            Self::ApiDepth => "api-depth",
            Self::HsaQueueRing => "hsa-queue-ring",
            Self::ProxyUnknown => "proxy-unknown",
        }
    }
}
