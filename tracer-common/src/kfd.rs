//! The KFD's ioctl ABI: numbers, names and the layouts that tracer reads.
//!
//! Source: `include/uapi/linux/kfd_ioctl.h` of Linux 6.1, 6.12 and 7.2; sizes and offsets by `offsetof` against each. The driver
//! dispatches on the number alone (`kfd_ioctl` in `kfd_chardev.c`); the size in the command is the caller's.

/// The ioctl type (magic) of /dev/kfd: 'K'. Console ioctls share it, but carry no direction and no size.
pub const IOC_TYPE_KFD: u8 = b'K';
/// The ioctl type of DRM nodes: 'd'.
pub const IOC_TYPE_DRM: u8 = b'd';

/// `_IOC_TYPE`.
#[must_use]
pub const fn ioc_type(cmd: u32) -> u8 {
    (cmd >> 8) as u8
}
/// `_IOC_NR`.
#[must_use]
pub const fn ioc_nr(cmd: u32) -> u8 {
    cmd as u8
}
/// `_IOC_SIZE`, in bytes.
#[must_use]
pub const fn ioc_size(cmd: u32) -> usize {
    (cmd >> 16 & 0x3fff) as usize
}
/// `_IOC_DIR`: 0 none, 1 write (user to kernel), 2 read, 3 both.
#[must_use]
pub const fn ioc_dir(cmd: u32) -> u8 {
    (cmd >> 30) as u8
}

/// Returns whether a process that was not seen before begins to use the KFD with this command.
///
/// A process that waits for events began long ago. If it was stopped during that wait, then not by a tracer that pauses processes
/// at their first command.
#[must_use]
pub const fn begins(cmd: u32) -> bool {
    ioc_type(cmd) == IOC_TYPE_KFD && ioc_dir(cmd) != 0 && ioc_nr(cmd) != NR_WAIT_EVENTS
}

/// AMDKFD_IOC_WAIT_EVENTS.
pub const NR_WAIT_EVENTS: u8 = 0x0c;
/// AMDKFD_IOC_GET_CLOCK_COUNTERS.
pub const NR_GET_CLOCK_COUNTERS: u8 = 0x05;
/// AMDKFD_IOC_CREATE_QUEUE.
pub const NR_CREATE_QUEUE: u8 = 0x02;
/// AMDKFD_IOC_DESTROY_QUEUE.
pub const NR_DESTROY_QUEUE: u8 = 0x03;
/// AMDKFD_IOC_UPDATE_QUEUE.
pub const NR_UPDATE_QUEUE: u8 = 0x07;

/// `kfd_ioctl_create_queue_args`: 88 bytes in 6.1, 96 in 6.12 and later (`sdma_engine_id` added).
pub mod create_queue {
    /// u64, in: user address of the ring.
    pub const RING_BASE: usize = 0;
    /// u64, in: user address of the write index.
    pub const WRITE_POINTER: usize = 8;
    /// u64, in: user address of the read index.
    pub const READ_POINTER: usize = 16;
    /// u64, out: offset for mmap of the doorbell page, and of the doorbell within the page.
    pub const DOORBELL_OFFSET: usize = 24;
    /// u32, in: size of the ring in bytes.
    pub const RING_SIZE: usize = 32;
    /// u32, in.
    pub const GPU_ID: usize = 36;
    /// u32, in: see [`super::QueueType`].
    pub const QUEUE_TYPE: usize = 40;
    /// u32, in: 0 to 100.
    pub const PERCENTAGE: usize = 44;
    /// u32, in: 0 to 15.
    pub const PRIORITY: usize = 48;
    /// u32, out: per process.
    pub const QUEUE_ID: usize = 52;
    /// u32, in: the engine of a [`super::QueueType::SdmaByEngine`] queue; absent from arguments of 88 bytes.
    pub const SDMA_ENGINE: usize = 88;
    /// The smallest length that includes every field named here except the engine.
    pub const MIN_LEN: usize = 56;
}

/// `kfd_ioctl_get_clock_counters_args`: 40 bytes in every version.
pub mod clock_counters {
    /// u64, out: ticks of the GPU's clock; 0 for a node without a GPU.
    pub const GPU_CLOCK: usize = 0;
    /// u32, in.
    pub const GPU_ID: usize = 32;
}

/// AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.
pub const NR_ALLOC_MEMORY_OF_GPU: u8 = 0x16;
/// AMDKFD_IOC_FREE_MEMORY_OF_GPU.
pub const NR_FREE_MEMORY_OF_GPU: u8 = 0x17;

/// `kfd_ioctl_alloc_memory_of_gpu_args`: 40 bytes in every version.
pub mod alloc_memory {
    /// u64, in: address for the GPU and, by the runtime's convention, for the process.
    pub const ADDRESS: usize = 0;
    /// u64, in: bytes.
    pub const SIZE: usize = 8;
    /// u64, out.
    pub const HANDLE: usize = 16;
    /// u32, in: the bits below, and others.
    pub const FLAGS: usize = 36;
    /// The GPU's own memory.
    pub const VRAM: u32 = 1;
    /// Memory of the host that the driver allocates.
    pub const GTT: u32 = 2;
    /// Memory that the process already has.
    pub const USERPTR: u32 = 4;
}

/// AMDKFD_IOC_IMPORT_DMABUF.
pub const NR_IMPORT_DMABUF: u8 = 0x1d;
/// AMDKFD_IOC_SVM.
pub const NR_SVM: u8 = 0x20;
/// AMDKFD_IOC_SET_XNACK_MODE: a 32-bit mode, in and out. -1 asks, 0 is off.
pub const NR_SET_XNACK_MODE: u8 = 0x21;
/// AMDKFD_IOC_CRIU_OP.
pub const NR_CRIU_OP: u8 = 0x22;
/// The first number of the ioctls that only the driver outside of the kernel has (DKMS); some of them import memory.
pub const FIRST_OF_DKMS: u8 = 0x80;
/// DRM_AMDGPU_GEM_VA: maps buffers of DRM to addresses.
pub const NR_DRM_GEM_VA: u8 = 0x48;

/// `kfd_ioctl_svm_args`, and the attributes that follow it: a type and a value of 32 bits each.
pub mod svm {
    /// u64, in: address.
    pub const START: usize = 0;
    /// u64, in: bytes.
    pub const SIZE: usize = 8;
    /// u32, in: 0 sets attributes, 1 asks for them.
    pub const OP: usize = 16;
    /// u32, in.
    pub const ATTRIBUTE_COUNT: usize = 20;
    /// The first attribute.
    pub const ATTRIBUTES: usize = 24;
    /// Bytes of an attribute.
    pub const ATTRIBUTE_LEN: usize = 8;
    /// `KFD_IOCTL_SVM_OP_SET_ATTR`.
    pub const SET_ATTRIBUTES: u32 = 0;
    /// `KFD_IOCTL_SVM_ATTR_PREFERRED_LOC`: the GPU to which pages move at a fault.
    pub const PREFERRED_LOCATION: u32 = 0;
    /// `KFD_IOCTL_SVM_ATTR_PREFETCH_LOC`: the GPU to which pages move now.
    pub const PREFETCH_LOCATION: u32 = 1;
    /// `KFD_IOCTL_SVM_LOCATION_SYSMEM`.
    pub const HOST: u32 = 0;
    /// `KFD_IOCTL_SVM_LOCATION_UNDEFINED`.
    pub const UNDEFINED: u32 = u32::MAX;
}

named! {
    /// `queue_type` of CREATE_QUEUE.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum QueueType {
        /// 0: compute, PM4 packets.
        ComputePm4 = "compute-pm4",
        /// 1: SDMA.
        Sdma = "sdma",
        /// 2: compute, AQL packets.
        ComputeAql = "compute-aql",
        /// 3: SDMA over XGMI.
        SdmaXgmi = "sdma-xgmi",
        /// 4: SDMA on a chosen engine (KFD 1.17 and later).
        SdmaByEngine = "sdma-by-engine",
        /// A number that is not in the header.
        Other = "other",
    }
}

impl QueueType {
    /// Converts the ioctl's field.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Self::ComputePm4,
            1 => Self::Sdma,
            2 => Self::ComputeAql,
            3 => Self::SdmaXgmi,
            4 => Self::SdmaByEngine,
            _ => Self::Other,
        }
    }
    /// Returns whether packets of this queue are SDMA packets.
    #[must_use]
    pub const fn is_sdma(self) -> bool {
        matches!(self, Self::Sdma | Self::SdmaXgmi | Self::SdmaByEngine)
    }
}

/// Returns the name of a KFD ioctl by its number, as in the header without `AMDKFD_IOC_`; `None` for an unknown number.
#[must_use]
pub const fn ioctl_name(nr: u8) -> Option<&'static str> {
    Some(match nr {
        0x01 => "GET_VERSION",
        0x02 => "CREATE_QUEUE",
        0x03 => "DESTROY_QUEUE",
        0x04 => "SET_MEMORY_POLICY",
        0x05 => "GET_CLOCK_COUNTERS",
        0x06 => "GET_PROCESS_APERTURES",
        0x07 => "UPDATE_QUEUE",
        0x08 => "CREATE_EVENT",
        0x09 => "DESTROY_EVENT",
        0x0a => "SET_EVENT",
        0x0b => "RESET_EVENT",
        0x0c => "WAIT_EVENTS",
        0x0d => "DBG_REGISTER_DEPRECATED",
        0x0e => "DBG_UNREGISTER_DEPRECATED",
        0x0f => "DBG_ADDRESS_WATCH_DEPRECATED",
        0x10 => "DBG_WAVE_CONTROL_DEPRECATED",
        0x11 => "SET_SCRATCH_BACKING_VA",
        0x12 => "GET_TILE_CONFIG",
        0x13 => "SET_TRAP_HANDLER",
        0x14 => "GET_PROCESS_APERTURES_NEW",
        0x15 => "ACQUIRE_VM",
        0x16 => "ALLOC_MEMORY_OF_GPU",
        0x17 => "FREE_MEMORY_OF_GPU",
        0x18 => "MAP_MEMORY_TO_GPU",
        0x19 => "UNMAP_MEMORY_FROM_GPU",
        0x1a => "SET_CU_MASK",
        0x1b => "GET_QUEUE_WAVE_STATE",
        0x1c => "GET_DMABUF_INFO",
        0x1d => "IMPORT_DMABUF",
        0x1e => "ALLOC_QUEUE_GWS",
        0x1f => "SMI_EVENTS",
        0x20 => "SVM",
        0x21 => "SET_XNACK_MODE",
        0x22 => "CRIU_OP",
        0x23 => "AVAILABLE_MEMORY",
        0x24 => "EXPORT_DMABUF",
        0x25 => "RUNTIME_ENABLE",
        0x26 => "DBG_TRAP",
        0x27 => "CREATE_PROCESS",
        0x28 => "PROFILER",
        _ => return None,
    })
}

/// Returns the name of a DRM ioctl that the AMD user space uses, by its number; `None` for other numbers.
///
/// Source: `include/uapi/drm/drm.h`, `amdgpu_drm.h` (driver commands start at 0x40; other drivers use the same numbers for theirs).
#[must_use]
pub const fn drm_ioctl_name(nr: u8) -> Option<&'static str> {
    Some(match nr {
        0x00 => "DRM_VERSION",
        0x05 => "DRM_GET_CLIENT",
        0x09 => "DRM_GEM_CLOSE",
        0x2d => "DRM_PRIME_HANDLE_TO_FD",
        0x2e => "DRM_PRIME_FD_TO_HANDLE",
        0x40 => "AMDGPU_GEM_CREATE",
        0x41 => "AMDGPU_GEM_MMAP",
        0x42 => "AMDGPU_CTX",
        0x43 => "AMDGPU_BO_LIST",
        0x44 => "AMDGPU_CS",
        0x45 => "AMDGPU_INFO",
        0x46 => "AMDGPU_GEM_METADATA",
        0x47 => "AMDGPU_GEM_WAIT_IDLE",
        0x48 => "AMDGPU_GEM_VA",
        0x49 => "AMDGPU_WAIT_CS",
        0x50 => "AMDGPU_GEM_OP",
        0x51 => "AMDGPU_GEM_USERPTR",
        0x52 => "AMDGPU_WAIT_FENCES",
        0x53 => "AMDGPU_VM",
        0x54 => "AMDGPU_FENCE_TO_HANDLE",
        0x55 => "AMDGPU_SCHED",
        0x56 => "AMDGPU_USERQ",
        0x57 => "AMDGPU_USERQ_SIGNAL",
        0x58 => "AMDGPU_USERQ_WAIT",
        0x59 => "AMDGPU_GEM_LIST_HANDLES",
        _ => return None,
    })
}
