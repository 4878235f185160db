//! Times of dispatches, by the GPU's own clock.

use std::sync::Arc;

/// Exact start and end of a dispatch, as the GPU wrote them into the completion signal.
///
/// A dispatch has no such times if it has no completion signal, if its queue is not profiled, or if the contents of the signal
/// cannot be attributed to it: several packets used the signal at once, or another packet used it before it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuTime {
    /// Queue number in the trace ([`super::Dispatch::queue`]).
    pub queue: u32,
    /// Packet index in its queue ([`super::Dispatch::index`]).
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Time of the doorbell that published it ([`super::Dispatch::time_ns`]).
    pub time_ns: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel; `None` if unknown.
    pub kernel: Option<Arc<str>>,
    /// KFD gpu id of the GPU whose clock it is; `None` if the queue's GPU is unknown.
    pub gpu_id: Option<u32>,
    /// Start, in ticks of the GPU's clock.
    pub start_ticks: u64,
    /// End, in ticks of the GPU's clock.
    pub end_ticks: u64,
    /// Start on the trace's clock; `None` if the GPU's clock was not read near enough to this time.
    pub start_ns: Option<u64>,
    /// End on the trace's clock; `None` under the same condition.
    pub end_ns: Option<u64>,
    /// Largest possible error of `start_ns` and `end_ns`, the same for both; `None` if they are `None`.
    pub clock_error_ns: Option<u64>,
}
