//! Offsets of the fields of `amd_queue_t` and `amd_signal_t`.
//!
//! Source: `amd_hsa_queue.h` and `amd_hsa_signal.h` of ROCR-Runtime. The offsets below are the same in 5.2.3, 6.1.2, 6.4.3 and
//! 7.2.4 (measured by `offsetof` against the four sets of headers); `amd_queue_v2_t` moved other fields only.

/// `hsa_queue_t::base_address`: user address of packet 0 of the ring (u64).
pub const BASE_ADDRESS: usize = 0x08;
/// `hsa_queue_t::doorbell_signal`: handle of the signal that producers store to (u64).
pub const DOORBELL_SIGNAL: usize = 0x10;
/// `hsa_queue_t::size`: number of packets in the ring, a power of two (u32).
pub const SIZE: usize = 0x18;
/// `amd_queue_t::write_dispatch_id`: the write index, next free packet index (u64).
///
/// Its address is the `write_pointer_address` of the KFD's CREATE_QUEUE, so `handle = write pointer - this`.
pub const WRITE_DISPATCH_ID: usize = 0x38;
/// `amd_queue_t::read_dispatch_id`: the read index, first index that the GPU has not consumed (u64).
pub const READ_DISPATCH_ID: usize = 0x80;
/// `amd_queue_t::queue_properties`: bits (u32).
pub const PROPERTIES: usize = 0xb4;
/// `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`: the GPU writes the times at which packets ran into their completion signals.
pub const PROFILED: u32 = 1 << 3;
/// Bytes from the start of `amd_queue_t` that include every field above except the properties.
pub const HEAD_LEN: usize = 0x88;

/// `amd_signal_t::kind` (i64).
pub const SIGNAL_KIND: usize = 0x00;
/// `AMD_SIGNAL_KIND_DOORBELL`: a store to it is a store to a doorbell.
pub const SIGNAL_KIND_DOORBELL: i64 = -1;
/// `AMD_SIGNAL_KIND_LEGACY_DOORBELL`: the same on older GPUs.
pub const SIGNAL_KIND_LEGACY_DOORBELL: i64 = -2;
/// `amd_signal_t::queue_ptr`: the `amd_queue_t` of a doorbell signal (u64).
pub const SIGNAL_QUEUE_PTR: usize = 0x30;
/// `SharedSignal::core_signal` (`core/inc/signal.h` of ROCR-Runtime, the same in all four): the object whose functions are called
/// for the signal (u64).
pub const SIGNAL_OBJECT: usize = 0x48;
/// `amd_signal_t::value` (i64): a packet that names the signal subtracts 1 from it when the packet completes.
pub const SIGNAL_VALUE: usize = 0x08;
/// `amd_signal_t::start_ts` (u64): GPU ticks when the packet began, written before the value if the queue is profiled.
pub const SIGNAL_START: usize = 0x20;
/// `amd_signal_t::end_ts` (u64): GPU ticks when the packet ended, written before the value if the queue is profiled.
pub const SIGNAL_END: usize = 0x28;

/// The largest ring that ROCr creates, in packets (`0x20000` in `GpuAgent::QueueCreate`); a larger size is not a queue.
pub const MAX_PACKETS: u32 = 0x2_0000;
/// The largest ring of another program that tracer reads, in packets: 64 MiB. The KFD demands a power of two, and sets no limit. The
/// rings of tinygrad have a quarter of this.
pub const MAX_OWN_PACKETS: u32 = 0x10_0000;
