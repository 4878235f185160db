//! The properties of each GPU.
//!
//! The numbers come from AMD's data sheets and from the driver's published tables. They were not dumped from hardware.

use super::{Asic, IpBlock};

/// Register segments, from the driver's tables of offsets.
const GC_VEGA: &[u32] = &[0x2000, 0xa000];
const SDMA_VEGA: &[u32] = &[0x1260];
const NBIF_VEGA: &[u32] = &[0, 0x14, 0xd20, 0x10400];
const GC_NAVI: &[u32] = &[0x1260, 0xa000, 0x1_c000, 0x240_2c00];
const NBIF_NAVI: &[u32] = &[0, 0x14, 0xd20, 0x10400, 0x241_b000];

/// The graphics core.
const fn gc(version: (u8, u8, u8), instances: u8, bases: &'static [u32]) -> IpBlock {
    IpBlock {
        name: "GC",
        hw_id: 11,
        version,
        instances,
        bases,
    }
}

/// The copy engines.
const fn sdma(version: (u8, u8, u8), instances: u8, bases: &'static [u32]) -> IpBlock {
    IpBlock {
        name: "SDMA0",
        hw_id: 42,
        version,
        instances,
        bases,
    }
}

/// The bus interface.
const fn nbif(version: (u8, u8, u8), bases: &'static [u32]) -> IpBlock {
    IpBlock {
        name: "NBIF",
        hw_id: 108,
        version,
        instances: 1,
        bases,
    }
}

/// MI300X.
pub static GFX942: Asic = Asic {
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
    lds_kib: 64,
    caches: &[(1, 32), (2, 4096), (3, 262_144)],
    fw_version: 166,
    sdma_fw_version: 19,
    xnack: true,
    drm_family: 141,
    debug_prop: 1511,
    ip_blocks: &[
        gc((9, 4, 3), 8, GC_VEGA),
        sdma((4, 4, 2), 4, SDMA_VEGA),
        nbif((7, 9, 0), NBIF_VEGA),
    ],
};

/// One die of MI250X.
pub static GFX90A: Asic = Asic {
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
    lds_kib: 64,
    caches: &[(1, 16), (2, 8192)],
    fw_version: 88,
    sdma_fw_version: 8,
    xnack: true,
    drm_family: 141,
    debug_prop: 1511,
    ip_blocks: &[],
};

/// Radeon RX 7900 XTX.
pub static GFX1100: Asic = Asic {
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
    lds_kib: 64,
    caches: &[(1, 32), (2, 6144), (3, 98_304)],
    fw_version: 550,
    sdma_fw_version: 19,
    xnack: false,
    drm_family: 145,
    debug_prop: 1495,
    ip_blocks: &[
        gc((11, 0, 0), 1, GC_NAVI),
        sdma((6, 0, 0), 2, GC_NAVI),
        nbif((4, 3, 0), NBIF_NAVI),
    ],
};

/// MI355X.
pub static GFX950: Asic = Asic {
    name: "gfx950",
    kfd_name: "ip discovery",
    gfx_target_version: 90500,
    device_id: 0x75a3,
    pci_revision: 0x00,
    compute_units: 256,
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
    vram_bytes: 309_220_868_096,
    vram_width: 8192,
    vram_clock_mhz: 2000,
    engine_clock_mhz: 2400,
    lds_kib: 160,
    caches: &[(1, 32), (2, 4096), (3, 262_144)],
    fw_version: 32,
    sdma_fw_version: 7,
    xnack: true,
    drm_family: 141,
    debug_prop: 1511,
    ip_blocks: &[
        gc((9, 5, 0), 8, GC_VEGA),
        sdma((4, 4, 5), 4, SDMA_VEGA),
        nbif((7, 9, 1), NBIF_VEGA),
    ],
};

/// Radeon RX 9070 XT.
pub static GFX1201: Asic = Asic {
    name: "gfx1201",
    kfd_name: "ip discovery",
    gfx_target_version: 120_001,
    device_id: 0x7550,
    pci_revision: 0xc0,
    compute_units: 64,
    simd_per_cu: 2,
    max_waves_per_simd: 16,
    wave_front_size: 32,
    array_count: 8,
    simd_arrays_per_engine: 2,
    cu_per_simd_array: 8,
    num_xcc: 1,
    num_sdma_engines: 2,
    num_sdma_xgmi_engines: 0,
    num_sdma_queues_per_engine: 8,
    num_cp_queues: 8,
    vram_bytes: 17_095_983_104,
    vram_width: 256,
    vram_clock_mhz: 1258,
    engine_clock_mhz: 2970,
    lds_kib: 64,
    caches: &[(1, 32), (2, 8192), (3, 65_536)],
    fw_version: 2840,
    sdma_fw_version: 832,
    xnack: false,
    drm_family: 152,
    debug_prop: 1495,
    ip_blocks: &[
        gc((12, 0, 1), 1, GC_NAVI),
        sdma((7, 0, 1), 2, GC_NAVI),
        nbif((6, 3, 1), NBIF_NAVI),
    ],
};

/// gfx1250, of which little is published: only the version is certain, and every other number is a placeholder. No packaged runtime
/// knows it, so it serves to read the topology only.
pub static GFX1250: Asic = Asic {
    name: "gfx1250",
    kfd_name: "ip discovery",
    gfx_target_version: 120_500,
    device_id: 0x75b0,
    pci_revision: 0x00,
    compute_units: 256,
    simd_per_cu: 4,
    max_waves_per_simd: 16,
    wave_front_size: 32,
    array_count: 32,
    simd_arrays_per_engine: 2,
    cu_per_simd_array: 8,
    num_xcc: 8,
    num_sdma_engines: 2,
    num_sdma_xgmi_engines: 14,
    num_sdma_queues_per_engine: 8,
    num_cp_queues: 24,
    vram_bytes: 412_316_860_416,
    vram_width: 8192,
    vram_clock_mhz: 2000,
    engine_clock_mhz: 2400,
    lds_kib: 320,
    caches: &[(1, 32), (2, 4096)],
    fw_version: 1,
    sdma_fw_version: 1,
    xnack: true,
    drm_family: 152,
    debug_prop: 1511,
    ip_blocks: &[],
};
