//! Times of dispatches, by the GPU's own clock.

use std::sync::Arc;

use super::table;

table! {
    /// Exact times when dispatches ran, as the GPU wrote them into their completion signals. There are rows for dispatches that
    /// have such a signal to themselves, on queues that the runtime profiles (HIP does, but gives signals only to dispatches that
    /// events or a profiler ask about). Where packets are unread, or doorbells lost, a row can have the time of such a packet that
    /// used the same signal.
    pub struct GpuTime: "gpu_times" by time_ns, Events {
        /// Queue, as in `dispatches.queue`.
        pub queue: u32,
        /// Packet index in its queue, as in `dispatches.index`.
        pub index: u64 => "index",
        /// Process.
        pub pid: u32,
        /// Time of the doorbell that published it, as in `dispatches.time_ns`.
        pub time_ns: u64 => "ns",
        /// The kernel descriptor.
        pub kernel_object: u64 => "address",
        /// Name of the kernel, as in `dispatches.kernel`.
        pub kernel: Option<Arc<str>>,
        /// KFD gpu id, whose clock it is; null if the queue's is not known.
        pub gpu_id: Option<u32>,
        /// Start, by the GPU's clock.
        pub start_ticks: u64 => "ticks",
        /// End, by the GPU's clock.
        pub end_ticks: u64 => "ticks",
        /// Start on the trace's clock; null if the process read the GPU's clock (GET_CLOCK_COUNTERS) less than twice, or too long
        /// before or after for an error below one millisecond.
        pub start_ns: Option<u64> => "ns",
        /// End on the trace's clock; null in the same case.
        pub end_ns: Option<u64> => "ns",
        /// Maximum error of `start_ns` and `end_ns`, about the same for both: when in these calls the clock was read is unknown,
        /// and the rates of the two clocks may have changed since by 100 millionths; null if they are null.
        pub clock_error_ns: Option<u64> => "ns",
    }
}
