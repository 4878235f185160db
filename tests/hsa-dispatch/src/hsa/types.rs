//! Layouts and constants of the HSA interface, each with the header that defines it.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

/// Declares an opaque handle of `hsa.h` or `hsa_ext_amd.h`: a structure of one 64-bit number, passed by value.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                /// The runtime's number for the object; 0 is no object.
                pub handle: u64,
            }
        )*
    };
}

handles! {
    /// `hsa_agent_t`.
    AgentHandle;
    /// `hsa_isa_t`.
    IsaHandle;
    /// `hsa_signal_t`: the address of an `amd_signal_t`.
    SignalHandle;
    /// `hsa_amd_memory_pool_t`.
    PoolHandle;
    /// `hsa_code_object_reader_t`.
    ReaderHandle;
    /// `hsa_executable_t`.
    ExecutableHandle;
    /// `hsa_executable_symbol_t`.
    SymbolHandle;
}

/// `hsa_queue_t` (hsa.h), which is the start of `amd_queue_t` (`amd_hsa_queue.h`).
#[repr(C)]
#[derive(Debug)]
pub struct RawQueue {
    /// `hsa_queue_type32_t`.
    pub kind: u32,
    /// `HSA_QUEUE_FEATURE_*` bits.
    pub features: u32,
    /// The ring: `size` packets of 64 bytes.
    pub base_address: *mut c_void,
    /// The signal to store to when packets are ready.
    pub doorbell_signal: SignalHandle,
    /// Number of packets in the ring, a power of two.
    pub size: u32,
    reserved1: u32,
    /// Number of the queue in its process.
    pub id: u64,
}

const _: () = {
    assert!(size_of::<RawQueue>() == 0x28);
    assert!(offset_of!(RawQueue, base_address) == 0x08);
    assert!(offset_of!(RawQueue, doorbell_signal) == 0x10);
    assert!(offset_of!(RawQueue, size) == 0x18);
    assert!(offset_of!(RawQueue, id) == 0x20);
};

/// `hsa_status_t` (hsa.h): 0 is success, 1 a voluntary stop of an iteration, the rest are errors.
pub type Status = u32;

/// `hsa_status_t` values that the program tests.
pub mod status {
    use super::Status;
    /// `HSA_STATUS_SUCCESS`.
    pub const SUCCESS: Status = 0;
    /// `HSA_STATUS_ERROR_INVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: Status = 0x1001;
    /// `HSA_STATUS_ERROR_INVALID_PACKET_FORMAT`.
    pub const INVALID_PACKET_FORMAT: Status = 0x1009;
    /// `HSA_STATUS_ERROR_INVALID_CODE_OBJECT`.
    pub const INVALID_CODE_OBJECT: Status = 0x1010;
    /// `HSA_STATUS_ERROR_INVALID_SYMBOL_NAME`.
    pub const INVALID_SYMBOL_NAME: Status = 0x1013;
}

/// `hsa_system_info_t` (hsa.h).
pub mod system_info {
    /// `HSA_SYSTEM_INFO_VERSION_MAJOR`, u16.
    pub const VERSION_MAJOR: u32 = 0;
    /// `HSA_SYSTEM_INFO_VERSION_MINOR`, u16.
    pub const VERSION_MINOR: u32 = 1;
    /// `HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY`, u64: the unit of timeouts.
    pub const TIMESTAMP_FREQUENCY: u32 = 3;
    /// `HSA_AMD_SYSTEM_INFO_BUILD_VERSION`, a C string; not in old releases.
    pub const BUILD_VERSION: u32 = 0x200;
}

/// `hsa_agent_info_t` (hsa.h) and `hsa_amd_agent_info_t` (hsa_ext_amd.h).
pub mod agent_info {
    /// `HSA_AGENT_INFO_NAME`, char[64]: for a GPU its ISA's short name, such as gfx942.
    pub const NAME: u32 = 0;
    /// `HSA_AGENT_INFO_QUEUE_MAX_SIZE`, u32.
    pub const QUEUE_MAX_SIZE: u32 = 14;
    /// `HSA_AGENT_INFO_DEVICE`, u32: `HSA_DEVICE_TYPE_*`.
    pub const DEVICE: u32 = 17;
    /// `HSA_AMD_AGENT_INFO_PRODUCT_NAME`, char[64].
    pub const PRODUCT_NAME: u32 = 0xA009;
    /// `HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY`, u64 in Hz: the constant clock that kernels can read.
    pub const TIMESTAMP_FREQUENCY: u32 = 0xA016;
}

/// `hsa_device_type_t` (hsa.h).
pub mod device_type {
    /// `HSA_DEVICE_TYPE_CPU`.
    pub const CPU: u32 = 0;
    /// `HSA_DEVICE_TYPE_GPU`.
    pub const GPU: u32 = 1;
}

/// `hsa_isa_info_t` (hsa.h).
pub mod isa_info {
    /// `HSA_ISA_INFO_NAME_LENGTH`, u32, with the final NUL.
    pub const NAME_LENGTH: u32 = 0;
    /// `HSA_ISA_INFO_NAME`, such as `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`.
    pub const NAME: u32 = 1;
}

/// `hsa_amd_memory_pool_info_t` and its values (hsa_ext_amd.h).
pub mod pool_info {
    /// `HSA_AMD_MEMORY_POOL_INFO_SEGMENT`, u32.
    pub const SEGMENT: u32 = 0;
    /// `HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS`, u32.
    pub const GLOBAL_FLAGS: u32 = 1;
    /// `HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED`, bool.
    pub const ALLOC_ALLOWED: u32 = 5;
    /// `HSA_AMD_SEGMENT_GLOBAL`.
    pub const SEGMENT_GLOBAL: u32 = 0;
    /// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT`.
    pub const FLAG_KERNARG: u32 = 1;
    /// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED`.
    pub const FLAG_FINE_GRAINED: u32 = 2;
    /// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED`.
    pub const FLAG_COARSE_GRAINED: u32 = 4;
}

/// `hsa_executable_symbol_info_t` (hsa.h).
pub mod symbol_info {
    /// `..._KERNEL_KERNARG_SEGMENT_SIZE`, u32.
    pub const KERNARG_SEGMENT_SIZE: u32 = 11;
    /// `..._KERNEL_GROUP_SEGMENT_SIZE`, u32.
    pub const GROUP_SEGMENT_SIZE: u32 = 13;
    /// `..._KERNEL_PRIVATE_SEGMENT_SIZE`, u32.
    pub const PRIVATE_SEGMENT_SIZE: u32 = 14;
    /// `..._KERNEL_OBJECT`, u64: the device address of the kernel's descriptor.
    pub const KERNEL_OBJECT: u32 = 22;
}

/// `HSA_PROFILE_FULL` (hsa.h), with which HIP creates executables.
pub const PROFILE_FULL: u32 = 1;
/// `HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT` (hsa.h).
pub const ROUNDING_DEFAULT: u32 = 0;
/// `HSA_SIGNAL_CONDITION_LT` (hsa.h).
pub const CONDITION_LT: u32 = 2;
/// `HSA_WAIT_STATE_BLOCKED` (hsa.h).
pub const WAIT_BLOCKED: u32 = 0;
/// `HSA_QUEUE_TYPE_MULTI` (hsa.h): many threads may submit.
pub const QUEUE_MULTI: u32 = 0;
/// `HSA_QUEUE_TYPE_SINGLE` (hsa.h): one thread submits.
pub const QUEUE_SINGLE: u32 = 1;
/// `HSA_QUEUE_TYPE_COOPERATIVE` (hsa.h): kernels on it may use the GPU's global wave sync.
pub const QUEUE_COOPERATIVE: u32 = 2;

/// `hsa_amd_profiling_dispatch_time_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DispatchTime {
    /// Ticks of the system's clock, which is `CLOCK_BOOTTIME` in ns.
    pub start: u64,
    /// The end, in the same unit.
    pub end: u64,
}
