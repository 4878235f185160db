//! The GPUs that can be simulated, with the properties that the driver would report of each.

mod models;

use self::models::{GFX90A, GFX942, GFX950, GFX1100, GFX1201, GFX1250};

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
    /// Shared memory of a compute unit, KiB.
    pub lds_kib: u32,
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
    /// Blocks of the chip that the driver shows in `ip_discovery`. Empty if it shows none, as for chips without a discovery table.
    pub ip_blocks: &'static [IpBlock],
}

/// A block of a chip, as its discovery table describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct IpBlock {
    /// The driver's name of the block.
    pub name: &'static str,
    /// The hardware id: the name of its folder.
    pub hw_id: u16,
    /// Major version, minor version, revision.
    pub version: (u8, u8, u8),
    /// How many of them there are.
    pub instances: u8,
    /// Register segments of the first instance.
    pub bases: &'static [u32],
}

/// The scheduler of the device's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Hardware scheduler firmware, driven by run lists (gfx9).
    Hws,
    /// Micro engine scheduler (gfx11 and later).
    Mes,
}

impl Asic {
    /// All GPUs, the default first.
    pub const ALL: [&'static Asic; 6] = [&GFX942, &GFX90A, &GFX1100, &GFX950, &GFX1201, &GFX1250];

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

    /// Returns the major version of the instruction set: 9, 11 or 12.
    pub fn gfx_major(&self) -> u32 {
        self.gfx_target_version / 10_000
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
    fn only_gfx11_and_later_have_mes() {
        let of = |name| Asic::by_name(name).map(Asic::scheduler);
        assert_eq!(of("gfx90a"), Some(Scheduler::Hws));
        assert_eq!(of("gfx942"), Some(Scheduler::Hws));
        assert_eq!(of("gfx950"), Some(Scheduler::Hws));
        assert_eq!(of("gfx1100"), Some(Scheduler::Mes));
        assert_eq!(of("gfx1201"), Some(Scheduler::Mes));
    }

    #[test]
    fn the_version_spells_the_name() {
        for asic in Asic::ALL {
            let version = asic.gfx_target_version;
            let name = format!("gfx{}{:x}{:x}", asic.gfx_major(), version / 100 % 100, version % 100);
            assert_eq!(name, asic.name);
        }
    }

    /// As AMD counts them: compute units are spread over arrays, some of which may have fewer than the maximum.
    #[test]
    fn compute_units_fit_into_the_arrays() {
        for asic in Asic::ALL {
            let most = asic.array_count * asic.cu_per_simd_array;
            assert!(
                asic.compute_units <= most,
                "{}: {} > {most}",
                asic.name,
                asic.compute_units
            );
            assert!(
                asic.array_count
                    .is_multiple_of(asic.simd_arrays_per_engine * asic.num_xcc),
                "{}",
                asic.name
            );
        }
    }
}
