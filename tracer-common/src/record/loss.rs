//! Losses by source.

named! {
    /// A source of lost events, and the index of its counter in the LOSSES map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum LossSource {
        /// Ring buffer full: a doorbell. The queue's next doorbell walks its packets again.
        DoorbellRing = "doorbell-ring",
        /// Ring buffer full: packets of a walk.
        PacketsRing = "packets-ring",
        /// Ring buffer full: an ioctl.
        IoctlRing = "ioctl-ring",
        /// Ring buffer full: a reserve.
        ReserveRing = "reserve-ring",
        /// Ring buffer full: fork, exec or exit.
        TaskRing = "task-ring",
        /// Ring buffer full: a paused process was not announced.
        HoldRing = "hold-ring",
        /// Map full: a queue's walk state could not be kept.
        QueueMap = "queue-map",
        /// Map full: an ioctl's entry could not be kept.
        IoctlMap = "ioctl-map",
        /// Map full: a child process could not be added to the traced ones.
        TracedMap = "traced-map",
        /// Ring buffer full: an SDMA doorbell.
        SdmaRing = "sdma-ring",
        /// A process could not be stopped until its probes were attached.
        HoldFailed = "hold-failed",
        /// Ring buffer full: a step of a job of the DRM scheduler.
        RingJobRing = "ring-job-ring",
        /// Ring buffer full: a call of a driver function.
        DriverRing = "driver-ring",
        /// Map full: the entry of a driver function could not be kept.
        DriverMap = "driver-map",
        /// Ring buffer full: a trace event of the driver.
        DriverEventRing = "driver-event-ring",
        /// Ring buffer full: a change of a list of code objects was not announced.
        CodeObjectRing = "code-object-ring",
        /// An exported function stored to a signal, and tracer could not read whether the signal is a doorbell.
        SignalUnread = "signal-unread",
        /// Ring buffer full: a last sample of a queue.
        ProgressRing = "progress-ring",
        /// Ring buffer full: an API call.
        ApiRing = "api-ring",
        /// Map full: the calls of a thread could not be kept.
        ApiMap = "api-map",
        /// A thread was in more nested API calls than are kept.
        ApiDepth = "api-depth",
        /// Ring buffer full: a queue that a program created for itself.
        HsaQueueRing = "hsa-queue-ring",
        /// tracer could not read whether a queue that a program received is a proxy, or a program rang a proxy that is not known.
        ProxyUnknown = "proxy-unknown",
        /// Ring buffer full: a stack.
        StackRing = "stack-ring",
        /// A stack above the limit of stacks per second.
        StackLimit = "stack-limit",
    }
}

impl LossSource {
    /// The number of processors with counters of their own. Processors beyond it share counters, two at a time.
    pub const PROCESSORS: u32 = 1024;
    /// Counters per processor: a power of two, with room for every source.
    pub const STRIDE: u32 = 32;
}
