//! When dispatches ran, by the GPU's own clock.

use std::sync::Arc;

/// When a dispatch ran: exact, as the GPU wrote it into the completion signal.
///
/// A dispatch has none if it has no completion signal, its queue is not profiled, or nobody can say that what the signal holds
/// is its time: several packets used it at once, or another one before it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuTime {
    /// Queue, by its number in the trace ([`super::Dispatch::queue`]).
    pub queue: u32,
    /// Packet index in its queue ([`super::Dispatch::index`]).
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Time of the doorbell that published it ([`super::Dispatch::time_ns`]).
    pub time_ns: u64,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel; `None` if it is not known.
    pub kernel: Option<Arc<str>>,
    /// KFD gpu id, whose clock it is; `None` if the queue's is not known.
    pub gpu_id: Option<u32>,
    /// It began: ticks of the GPU's clock.
    pub start_ticks: u64,
    /// It ended.
    pub end_ticks: u64,
    /// The same on the trace's clock; `None` if the GPU's was not read near enough to tell.
    pub start_ns: Option<u64>,
    /// Likewise.
    pub end_ns: Option<u64>,
    /// How far `start_ns` and `end_ns` can be off, both by the same; `None` where they are.
    pub clock_error_ns: Option<u64>,
}
