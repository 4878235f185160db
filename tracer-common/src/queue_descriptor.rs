//! `hsa_amd_queue_create_desc_t` (hsa_ext_amd.h, from interface 1.26 on): what `hsa_amd_queue_create` takes an array of.
//!
//! No packaged ROCr has this function (Debian's newest is 7.2.4). The layout is from public sources of November 2026.

/// Size in bytes.
pub const LEN: usize = 96;
/// u8: the engine.
pub const ENGINE: usize = 4;
/// The engine that takes AQL packets; 1 is SDMA.
pub const ENGINE_COMPUTE: u8 = 0;
/// The handle, which the function writes.
pub const QUEUE: usize = 32;
