//! The GPUs that can be simulated, with the properties that the driver would report of each.
//!
//! The numbers come from AMD's data sheets and from the driver's published tables. They were not dumped from hardware.

/// A kind of GPU.
#[derive(Debug, PartialEq, Eq)]
pub struct Asic {
    /// The LLVM processor name, as given on the command line.
    pub name: &'static str,
    /// KFD's node name.
    pub kfd_name: &'static str,
    /// major * 10000 + minor * 100 + stepping.
    pub gfx_target_version: u32,
    /// PCI device id.
    pub device_id: u32,
    /// PCI revision. It and the device id decide the marketing name.
    pub pci_revision: u32,
    /// Compute units over all dies.
    pub compute_units: u32,
    /// SIMDs in a compute unit.
    pub simd_per_cu: u32,
    /// Waves that a SIMD holds.
    pub max_waves_per_simd: u32,
    /// Threads in a wave.
    pub wave_front_size: u32,
    /// Shader arrays over all engines and dies.
    pub array_count: u32,
    /// Shader arrays in a shader engine.
    pub simd_arrays_per_engine: u32,
    /// Compute units in a shader array.
    pub cu_per_simd_array: u32,
    /// Compute dies.
    pub num_xcc: u32,
    /// Copy engines for host transfers.
    pub num_sdma_engines: u32,
    /// Copy engines for transfers between GPUs.
    pub num_sdma_xgmi_engines: u32,
    /// User queues of one copy engine.
    pub num_sdma_queues_per_engine: u32,
    /// Compute queues of the command processor.
    pub num_cp_queues: u32,
    /// Bytes of device memory.
    pub vram_bytes: u64,
    /// Width of the memory bus in bits.
    pub vram_width: u32,
    /// Highest memory clock, MHz.
    pub vram_clock_mhz: u32,
    /// Highest engine clock, MHz.
    pub engine_clock_mhz: u32,
    /// L1, L2 (and L3) cache sizes in KiB with their levels.
    pub caches: &'static [(u32, u32)],
    /// Command processor firmware.
    pub fw_version: u32,
    /// Copy engine firmware.
    pub sdma_fw_version: u32,
    /// Whether page-fault retry (XNACK) can be enabled.
    pub xnack: bool,
    /// AMDGPU_FAMILY_* of the DRM interface.
    pub drm_family: u32,
    /// Bits of KFD's `debug_prop`.
    pub debug_prop: u32,
}

/// The scheduler of the device's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Hardware scheduler firmware, driven by run lists (gfx9).
    Hws,
    /// Micro engine scheduler (gfx11).
    Mes,
}

impl Asic {
    /// All GPUs, the default first.
    pub const ALL: [&'static Asic; 3] = [&GFX942, &GFX90A, &GFX1100];

    /// Returns the GPU with that LLVM processor name.
    pub fn by_name(name: &str) -> Option<&'static Asic> {
        Self::ALL.into_iter().find(|asic| asic.name == name)
    }

    /// Returns the scheduler that the driver uses.
    pub fn scheduler(&self) -> Scheduler {
        if self.gfx_target_version >= 110_000 {
            Scheduler::Mes
        } else {
            Scheduler::Hws
        }
    }

    /// Returns the `HSA_CAPABILITY` bits of the node.
    pub fn capability(&self) -> u32 {
        const QUEUE_SIZE_POW2: u32 = 1 << 3;
        const QUEUE_SIZE_32BIT: u32 = 1 << 4;
        const WATCH_POINTS: u32 = 1 << 7 | 2 << 8;
        const DOORBELL_TYPE_2_0: u32 = 2 << 12;
        const TRAP_DEBUG: u32 = 1 << 15 | 1 << 16 | 1 << 17;
        const SRAM_EDC: u32 = 1 << 26;
        const SVM_API: u32 = 1 << 27;
        const DEBUG_FIRMWARE: u32 = 1 << 29;
        let common = QUEUE_SIZE_POW2
            | QUEUE_SIZE_32BIT
            | WATCH_POINTS
            | DOORBELL_TYPE_2_0
            | TRAP_DEBUG
            | SVM_API
            | DEBUG_FIRMWARE;
        match self.scheduler() {
            Scheduler::Hws => common | SRAM_EDC,
            Scheduler::Mes => common,
        }
    }

    /// Size of one process's doorbell page on a SOC15 device.
    pub const DOORBELL_PAGE: u64 = 8192;
}

/// MI300X.
static GFX942: Asic = Asic {
    name: "gfx942",
    kfd_name: "ip discovery",
    gfx_target_version: 90402,
    device_id: 0x74a1,
    pci_revision: 0x00,
    compute_units: 304,
    simd_per_cu: 4,
    max_waves_per_simd: 8,
    wave_front_size: 64,
    array_count: 32,
    simd_arrays_per_engine: 1,
    cu_per_simd_array: 10,
    num_xcc: 8,
    num_sdma_engines: 2,
    num_sdma_xgmi_engines: 14,
    num_sdma_queues_per_engine: 8,
    num_cp_queues: 24,
    vram_bytes: 206_141_652_992,
    vram_width: 8192,
    vram_clock_mhz: 1300,
    engine_clock_mhz: 2100,
    caches: &[(1, 32), (2, 4096), (3, 262_144)],
    fw_version: 166,
    sdma_fw_version: 19,
    xnack: true,
    drm_family: 141,
    debug_prop: 1511,
};

/// One die of MI250X.
static GFX90A: Asic = Asic {
    name: "gfx90a",
    kfd_name: "aldebaran",
    gfx_target_version: 90010,
    device_id: 0x740c,
    pci_revision: 0x01,
    compute_units: 104,
    simd_per_cu: 4,
    max_waves_per_simd: 8,
    wave_front_size: 64,
    array_count: 8,
    simd_arrays_per_engine: 1,
    cu_per_simd_array: 14,
    num_xcc: 1,
    num_sdma_engines: 2,
    num_sdma_xgmi_engines: 3,
    num_sdma_queues_per_engine: 8,
    num_cp_queues: 24,
    vram_bytes: 68_702_699_520,
    vram_width: 4096,
    vram_clock_mhz: 1600,
    engine_clock_mhz: 1700,
    caches: &[(1, 16), (2, 8192)],
    fw_version: 88,
    sdma_fw_version: 8,
    xnack: true,
    drm_family: 141,
    debug_prop: 1511,
};

/// Radeon RX 7900 XTX.
static GFX1100: Asic = Asic {
    name: "gfx1100",
    kfd_name: "ip discovery",
    gfx_target_version: 110_000,
    device_id: 0x744c,
    pci_revision: 0xc8,
    compute_units: 96,
    simd_per_cu: 2,
    max_waves_per_simd: 16,
    wave_front_size: 32,
    array_count: 12,
    simd_arrays_per_engine: 2,
    cu_per_simd_array: 8,
    num_xcc: 1,
    num_sdma_engines: 2,
    num_sdma_xgmi_engines: 0,
    num_sdma_queues_per_engine: 6,
    num_cp_queues: 8,
    vram_bytes: 25_753_026_560,
    vram_width: 384,
    vram_clock_mhz: 1249,
    engine_clock_mhz: 2304,
    caches: &[(1, 32), (2, 6144), (3, 98_304)],
    fw_version: 550,
    sdma_fw_version: 19,
    xnack: false,
    drm_family: 145,
    debug_prop: 1495,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aql_doorbells_on_all() {
        for asic in Asic::ALL {
            assert_eq!(asic.capability() >> 12 & 3, 2, "{}", asic.name);
            assert_eq!(Asic::by_name(asic.name), Some(asic));
        }
        assert_eq!(Asic::by_name("gfx803"), None);
    }

    #[test]
    fn only_gfx11_has_mes() {
        let of = |name| Asic::by_name(name).map(Asic::scheduler);
        assert_eq!(of("gfx90a"), Some(Scheduler::Hws));
        assert_eq!(of("gfx942"), Some(Scheduler::Hws));
        assert_eq!(of("gfx1100"), Some(Scheduler::Mes));
    }
}
