//! Layouts of the ioctl arguments that the simulator interprets.
//!
//! KFD: include/uapi/linux/kfd_ioctl.h; DRM: include/uapi/drm/drm.h and `amdgpu_drm.h`. All offsets are the same in every kernel
//! from 6.1 on. Where a struct grew, the shorter form is read as if the rest were zero.

/// An argument struct of an ioctl.
pub trait Abi: Sized {
    /// Size of the struct in the newest header, in bytes.
    const SIZE: usize;
    /// Reads the struct. Bytes missing at the end are zero.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the fields that fit back.
    fn store(&self, bytes: &mut [u8]);
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes.get(at + i).copied().unwrap_or(0))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + value.len()) {
        to.copy_from_slice(value);
    }
}

macro_rules! abi {
    ($(#[$doc:meta])* $name:ident[$size:literal] { $($field:ident: $ty:ty = $at:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: $ty),* }

        impl Abi for $name {
            const SIZE: usize = $size;

            fn load(bytes: &[u8]) -> Self {
                Self { $($field: <$ty>::from_le_bytes(word(bytes, $at))),* }
            }

            fn store(&self, bytes: &mut [u8]) {
                $(put(bytes, $at, &self.$field.to_le_bytes());)*
            }
        }
    };
}

abi! { /** kfd_ioctl_get_version_args */ GetVersion[8] { major: u32 = 0, minor: u32 = 4 } }

abi! {
    /** kfd_ioctl_create_queue_args; 88 bytes before KFD 1.17. */
    CreateQueue[96] {
        ring_base_address: u64 = 0, write_pointer_address: u64 = 8, read_pointer_address: u64 = 16,
        doorbell_offset: u64 = 24, ring_size: u32 = 32, gpu_id: u32 = 36, queue_type: u32 = 40,
        queue_percentage: u32 = 44, queue_priority: u32 = 48, queue_id: u32 = 52, eop_buffer_address: u64 = 56,
        eop_buffer_size: u64 = 64, ctx_save_restore_address: u64 = 72, ctx_save_restore_size: u32 = 80,
        ctl_stack_size: u32 = 84, sdma_engine_id: u32 = 88,
    }
}

abi! { /** kfd_ioctl_destroy_queue_args */ DestroyQueue[8] { queue_id: u32 = 0 } }

abi! {
    /** kfd_ioctl_update_queue_args */
    UpdateQueue[24] {
        ring_base_address: u64 = 0, queue_id: u32 = 8, ring_size: u32 = 12, queue_percentage: u32 = 16,
        queue_priority: u32 = 20,
    }
}

abi! { /** kfd_ioctl_set_cu_mask_args */ SetCuMask[16] { queue_id: u32 = 0, num_cu_mask: u32 = 4, cu_mask_ptr: u64 = 8 } }

abi! {
    /** kfd_ioctl_set_memory_policy_args */
    SetMemoryPolicy[32] {
        alternate_aperture_base: u64 = 0, alternate_aperture_size: u64 = 8, gpu_id: u32 = 16, default_policy: u32 = 20,
        alternate_policy: u32 = 24,
    }
}

abi! {
    /** kfd_ioctl_get_clock_counters_args */
    ClockCounters[40] {
        gpu_clock_counter: u64 = 0, cpu_clock_counter: u64 = 8, system_clock_counter: u64 = 16,
        system_clock_freq: u64 = 24, gpu_id: u32 = 32,
    }
}

abi! { /** kfd_ioctl_get_process_apertures_new_args */ AperturesNew[16] { apertures: u64 = 0, num_of_nodes: u32 = 8 } }

abi! {
    /** kfd_process_device_apertures */
    Apertures[56] {
        lds_base: u64 = 0, lds_limit: u64 = 8, scratch_base: u64 = 16, scratch_limit: u64 = 24, gpuvm_base: u64 = 32,
        gpuvm_limit: u64 = 40, gpu_id: u32 = 48,
    }
}

abi! {
    /** kfd_ioctl_create_event_args */
    CreateEvent[32] {
        event_page_offset: u64 = 0, event_trigger_data: u32 = 8, event_type: u32 = 12, auto_reset: u32 = 16,
        node_id: u32 = 20, event_id: u32 = 24, event_slot_index: u32 = 28,
    }
}

abi! { /** kfd_ioctl_{destroy,set,reset}_event_args */ EventId[8] { event_id: u32 = 0 } }

abi! {
    /** kfd_ioctl_wait_events_args */
    WaitEvents[24] { events_ptr: u64 = 0, num_events: u32 = 8, wait_for_all: u32 = 12, timeout: u32 = 16, wait_result: u32 = 20 }
}

abi! {
    /** kfd_event_data, of a signal event. */
    EventData[48] { last_event_age: u64 = 0, ext: u64 = 32, event_id: u32 = 40 }
}

abi! { /** kfd_ioctl_acquire_vm_args */ AcquireVm[8] { drm_fd: u32 = 0, gpu_id: u32 = 4 } }

abi! {
    /** kfd_ioctl_alloc_memory_of_gpu_args */
    AllocMemory[40] { va_addr: u64 = 0, size: u64 = 8, handle: u64 = 16, mmap_offset: u64 = 24, gpu_id: u32 = 32, flags: u32 = 36 }
}

abi! { /** kfd_ioctl_free_memory_of_gpu_args */ FreeMemory[8] { handle: u64 = 0 } }

abi! {
    /** kfd_ioctl_{map_memory_to,unmap_memory_from}_gpu_args */
    MapMemory[24] { handle: u64 = 0, device_ids: u64 = 8, n_devices: u32 = 16, n_success: u32 = 20 }
}

abi! { /** Those that begin with a gpu_id at offset 8: set_scratch_backing_va, available_memory. */ ValueOfGpu[16] { value: u64 = 0, gpu_id: u32 = 8 } }

abi! { /** kfd_ioctl_set_trap_handler_args */ TrapHandler[24] { tba_addr: u64 = 0, tma_addr: u64 = 8, gpu_id: u32 = 16 } }

abi! { /** kfd_ioctl_get_tile_config_args */ TileConfig[40] { tile_config: u64 = 0, macro_tile_config: u64 = 8, num_tile_configs: u32 = 16, num_macro_tile_configs: u32 = 20, gpu_id: u32 = 24 } }

abi! { /** kfd_ioctl_alloc_queue_gws_args */ AllocQueueGws[16] { queue_id: u32 = 0, num_gws: u32 = 4, first_gws: u32 = 8 } }

abi! { /** kfd_ioctl_svm_args, without the attributes that follow. */ Svm[24] { start_addr: u64 = 0, size: u64 = 8, op: u32 = 16, nattr: u32 = 20 } }

abi! { /** kfd_ioctl_set_xnack_mode_args */ XnackMode[4] { xnack_enabled: i32 = 0 } }

abi! { /** kfd_ioctl_export_dmabuf_args */ ExportDmabuf[16] { handle: u64 = 0, flags: u32 = 8, dmabuf_fd: u32 = 12 } }

abi! { /** kfd_ioctl_import_dmabuf_args */ ImportDmabuf[24] { va_addr: u64 = 0, handle: u64 = 8, gpu_id: u32 = 16, dmabuf_fd: u32 = 20 } }

abi! {
    /** kfd_ioctl_get_dmabuf_info_args */
    DmabufInfo[32] { size: u64 = 0, metadata_ptr: u64 = 8, metadata_size: u32 = 16, gpu_id: u32 = 20, flags: u32 = 24, dmabuf_fd: u32 = 28 }
}

abi! {
    /** kfd_ioctl_ipc_export_handle_args, of AMD's own driver package. */
    IpcExport[32] {
        handle: u64 = 0, share_0: u32 = 8, share_1: u32 = 12, share_2: u32 = 16, share_3: u32 = 20, gpu_id: u32 = 24,
        flags: u32 = 28,
    }
}

abi! {
    /** kfd_ioctl_ipc_import_handle_args, of AMD's own driver package. */
    IpcImport[48] {
        handle: u64 = 0, va_addr: u64 = 8, mmap_offset: u64 = 16, share_0: u32 = 24, share_1: u32 = 28,
        share_2: u32 = 32, share_3: u32 = 36, gpu_id: u32 = 40, flags: u32 = 44,
    }
}

abi! { /** drm_gem_close */ GemClose[8] { handle: u32 = 0 } }

abi! { /** drm_prime_handle */ PrimeHandle[12] { handle: u32 = 0, flags: u32 = 4, fd: u32 = 8 } }

abi! {
    /** drm_amdgpu_gem_mmap: the handle on input, the offset on output. */
    GemMmap[8] { offset: u64 = 0 }
}

abi! { /** drm_amdgpu_gem_metadata, without the metadata that follows. */ GemMetadata[8] { handle: u32 = 0, op: u32 = 4 } }

abi! { /** drm_amdgpu_gem_op */ GemOp[16] { handle: u32 = 0, op: u32 = 4, value: u64 = 8 } }

abi! {
    /** drm_amdgpu_gem_va, without what newer kernels append. */
    GemVa[40] { handle: u32 = 0, operation: u32 = 8, flags: u32 = 12, va_address: u64 = 16, offset_in_bo: u64 = 24, map_size: u64 = 32 }
}

abi! { /** kfd_ioctl_runtime_enable_args */ RuntimeEnable[16] { r_debug: u64 = 0, mode_mask: u32 = 8, capabilities_mask: u32 = 12 } }

abi! {
    /** drm_version */
    DrmVersion[64] {
        major: i32 = 0, minor: i32 = 4, patch: i32 = 8, name_len: u64 = 16, name: u64 = 24, date_len: u64 = 32,
        date: u64 = 40, desc_len: u64 = 48, desc: u64 = 56,
    }
}

abi! { /** drm_client */ DrmClient[40] { idx: i32 = 0, auth: i32 = 4, pid: u64 = 8, uid: u64 = 16, magic: u64 = 24, iocs: u64 = 32 } }

abi! { /** drm_amdgpu_info */ DrmInfo[32] { return_pointer: u64 = 0, return_size: u32 = 8, query: u32 = 12 } }

abi! {
    /** drm_amdgpu_info_device, the fields that user space looks at. */
    DrmDeviceInfo[448] {
        device_id: u32 = 0, pci_revision: u32 = 12, family: u32 = 16, num_shader_engines: u32 = 20, num_shader_arrays_per_engine: u32 = 24,
        gpu_counter_freq: u32 = 28, max_engine_clock: u64 = 32, max_memory_clock: u64 = 40, cu_active_number: u32 = 48,
        ids_flags: u64 = 136, virtual_address_offset: u64 = 144, virtual_address_max: u64 = 152,
        virtual_address_alignment: u32 = 160, pte_fragment_size: u32 = 164, gart_page_size: u32 = 168,
        vram_type: u32 = 176, vram_bit_width: u32 = 180,
    }
}

/// Returns `_IOC_NR`, `_IOC_TYPE` and `_IOC_SIZE` of a command.
pub fn decode_cmd(cmd: u32) -> (u8, u8, usize) {
    (cmd as u8, (cmd >> 8) as u8, (cmd >> 16 & 0x3fff) as usize)
}

/// Names of the KFD ioctls without the prefix `AMDKFD_IOC_`, by number from 1 on.
const KFD_NAMES: [&str; 0x26] = [
    "GET_VERSION",
    "CREATE_QUEUE",
    "DESTROY_QUEUE",
    "SET_MEMORY_POLICY",
    "GET_CLOCK_COUNTERS",
    "GET_PROCESS_APERTURES",
    "UPDATE_QUEUE",
    "CREATE_EVENT",
    "DESTROY_EVENT",
    "SET_EVENT",
    "RESET_EVENT",
    "WAIT_EVENTS",
    "DBG_REGISTER_DEPRECATED",
    "DBG_UNREGISTER_DEPRECATED",
    "DBG_ADDRESS_WATCH_DEPRECATED",
    "DBG_WAVE_CONTROL_DEPRECATED",
    "SET_SCRATCH_BACKING_VA",
    "GET_TILE_CONFIG",
    "SET_TRAP_HANDLER",
    "GET_PROCESS_APERTURES_NEW",
    "ACQUIRE_VM",
    "ALLOC_MEMORY_OF_GPU",
    "FREE_MEMORY_OF_GPU",
    "MAP_MEMORY_TO_GPU",
    "UNMAP_MEMORY_FROM_GPU",
    "SET_CU_MASK",
    "GET_QUEUE_WAVE_STATE",
    "GET_DMABUF_INFO",
    "IMPORT_DMABUF",
    "ALLOC_QUEUE_GWS",
    "SMI_EVENTS",
    "SVM",
    "SET_XNACK_MODE",
    "CRIU_OP",
    "AVAILABLE_MEMORY",
    "EXPORT_DMABUF",
    "RUNTIME_ENABLE",
    "DBG_TRAP",
];

/// Those of AMD's own driver package.
const OWN_KFD_NAMES: [(u8, &str); 2] = [(0x80, "IPC_IMPORT_HANDLE"), (0x81, "IPC_EXPORT_HANDLE")];

/// Returns the name of a KFD ioctl.
pub fn kfd_name(nr: u8) -> &'static str {
    if let Some((_, name)) = OWN_KFD_NAMES.iter().find(|(own, _)| *own == nr) {
        return name;
    }
    usize::from(nr)
        .checked_sub(1)
        .and_then(|at| KFD_NAMES.get(at))
        .copied()
        .unwrap_or("UNKNOWN")
}

/// Returns the name of a DRM ioctl. The names of amdgpu's ioctls keep their prefix.
pub fn drm_name(nr: u8) -> &'static str {
    match nr {
        0x00 => "VERSION",
        0x05 => "GET_CLIENT",
        0x09 => "GEM_CLOSE",
        0x0c => "GET_CAP",
        0x2d => "PRIME_HANDLE_TO_FD",
        0x2e => "PRIME_FD_TO_HANDLE",
        0x40 => "AMDGPU_GEM_CREATE",
        0x41 => "AMDGPU_GEM_MMAP",
        0x42 => "AMDGPU_CTX",
        0x44 => "AMDGPU_CS",
        0x45 => "AMDGPU_INFO",
        0x46 => "AMDGPU_GEM_METADATA",
        0x48 => "AMDGPU_GEM_VA",
        0x50 => "AMDGPU_GEM_OP",
        _ => "UNKNOWN",
    }
}

/// Returns the number of the KFD ioctl of that name, with or without `AMDKFD_IOC_`.
pub fn kfd_nr(name: &str) -> Option<u8> {
    let name = name.strip_prefix("AMDKFD_IOC_").unwrap_or(name);
    let own = OWN_KFD_NAMES.iter().find(|(_, own)| *own == name).map(|&(nr, _)| nr);
    own.or_else(|| KFD_NAMES.iter().position(|&known| known == name).map(|at| at as u8 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_queue_of_both_sizes() {
        let mut bytes = [0u8; 96];
        bytes[36..40].copy_from_slice(&0x9c0fu32.to_le_bytes());
        bytes[88..92].copy_from_slice(&1u32.to_le_bytes());
        let new = CreateQueue::load(&bytes);
        assert_eq!((new.gpu_id, new.sdma_engine_id), (0x9c0f, 1));
        let old = CreateQueue::load(&bytes[..88]);
        assert_eq!((old.gpu_id, old.sdma_engine_id), (0x9c0f, 0));
        let mut short = [0u8; 88];
        CreateQueue {
            queue_id: 5,
            sdma_engine_id: 3,
            ..new
        }
        .store(&mut short);
        assert_eq!(
            CreateQueue::load(&short),
            CreateQueue {
                queue_id: 5,
                sdma_engine_id: 0,
                ..new
            }
        );
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(kfd_name(0x02), "CREATE_QUEUE");
        assert_eq!(kfd_name(0x14), "GET_PROCESS_APERTURES_NEW");
        assert_eq!(kfd_name(0x26), "DBG_TRAP");
        assert_eq!(kfd_name(0), "UNKNOWN");
        assert_eq!(kfd_name(0x82), "UNKNOWN");
        assert_eq!(kfd_nr("AMDKFD_IOC_SVM"), Some(0x20));
        assert_eq!(kfd_nr("RUNTIME_ENABLE"), Some(0x25));
        assert_eq!(
            (kfd_name(0x81), kfd_nr("IPC_IMPORT_HANDLE")),
            ("IPC_EXPORT_HANDLE", Some(0x80))
        );
        assert_eq!(kfd_nr("NOPE"), None);
        assert_eq!(decode_cmd(0xc060_4b02), (2, b'K', 96));
    }
}
