//! The text files of /sys/devices/virtual/kfd/kfd that describe the machine: node 0 is the host, nodes 1 and later are GPUs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::asic::Asic;

/// The first DRM render minor.
pub const FIRST_RENDER_MINOR: u32 = 128;

/// KFD's ids of the GPUs. They are arbitrary but fixed, like the driver's, which hashes location and size.
const GPU_IDS: [u32; 8] = [0x9c0f, 0x2a8b, 0x5d3e, 0xb714, 0x61c9, 0xf042, 0x3e57, 0xc8a6];

/// The largest number of GPUs that can be simulated.
pub const MAX_GPUS: usize = GPU_IDS.len();

/// Returns the KFD `gpu_id` of GPU `index`.
pub fn gpu_id(index: usize) -> u32 {
    GPU_IDS[index]
}

/// Returns the place of GPU `index` on the PCI bus: bus and device number.
pub fn location_id(index: usize) -> u32 {
    0x300 + index as u32 * 0x100
}

/// Returns the serial number of GPU `index`.
pub fn unique_id(index: usize) -> u64 {
    0x51_4d00_0000 + index as u64 + 1
}

/// Returns all files, as (path below .../kfd/kfd, content).
pub fn files(asic: &Asic, gpus: usize) -> Vec<(String, String)> {
    let mut files = vec![
        (
            "simulated".into(),
            format!("kfd-sim {} {}\n", env!("CARGO_PKG_VERSION"), asic.name),
        ),
        ("topology/generation_id".into(), "2\n".into()),
        (
            "topology/system_properties".into(),
            "platform_oem 0\nplatform_id 0\nplatform_rev 0\n".into(),
        ),
    ];
    let cpu = "topology/nodes/0";
    files.push((format!("{cpu}/gpu_id"), "0\n".into()));
    files.push((format!("{cpu}/name"), "\n".into()));
    files.push((format!("{cpu}/properties"), cpu_properties(gpus)));
    files.push((
        format!("{cpu}/mem_banks/0/properties"),
        memory_bank(0, host_memory(), 64, 2400),
    ));
    for gpu in 0..gpus {
        files.push((format!("{cpu}/io_links/{gpu}/properties"), link(0, gpu + 1, Link::Pcie)));
        let node = format!("topology/nodes/{}", gpu + 1);
        files.push((format!("{node}/gpu_id"), format!("{}\n", gpu_id(gpu))));
        files.push((format!("{node}/name"), format!("{}\n", asic.kfd_name)));
        files.push((format!("{node}/properties"), gpu_properties(asic, gpu, gpus)));
        let bank = memory_bank(1, asic.vram_bytes, asic.vram_width, asic.vram_clock_mhz);
        files.push((format!("{node}/mem_banks/0/properties"), bank));
        for (index, &(level, kib)) in asic.caches.iter().enumerate() {
            files.push((format!("{node}/caches/{index}/properties"), cache(level, kib)));
        }
        files.push((format!("{node}/io_links/0/properties"), link(gpu + 1, 0, Link::Pcie)));
        let peers = (0..gpus).filter(|&peer| peer != gpu);
        for (index, peer) in peers.enumerate() {
            let (kind, folder) = if asic.num_sdma_xgmi_engines > 0 {
                (Link::Xgmi, format!("{node}/io_links/{}", index + 1))
            } else {
                (Link::Pcie, format!("{node}/p2p_links/{index}"))
            };
            files.push((format!("{folder}/properties"), link(gpu + 1, peer + 1, kind)));
        }
    }
    files
}

/// Writes the tree below `root` (which stands for /sys/devices/virtual/kfd/kfd).
pub fn write(root: &Path, asic: &Asic, gpus: usize) -> Result<()> {
    for (path, content) in files(asic, gpus) {
        let path = root.join(path);
        let folder = path.parent().context("a topology file without a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    }
    // The driver creates these folders even if they are empty.
    for node in 0..=gpus {
        for folder in ["mem_banks", "caches", "io_links", "p2p_links", "perf"] {
            fs::create_dir_all(root.join(format!("topology/nodes/{node}/{folder}")))?;
        }
    }
    fs::create_dir_all(root.join("proc"))?;
    Ok(())
}

fn properties(pairs: &[(&str, u64)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

fn host_memory() -> u64 {
    // SAFETY: sysconf takes and returns integers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    pages as u64 * size as u64
}

fn cpu_properties(gpus: usize) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    properties(&[
        ("cpu_cores_count", cores as u64),
        ("simd_count", 0),
        ("mem_banks_count", 1),
        ("caches_count", 0),
        ("io_links_count", gpus as u64),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 0),
        ("max_waves_per_simd", 0),
        ("lds_size_in_kb", 0),
        ("gds_size_in_kb", 0),
        ("num_gws", 0),
        ("wave_front_size", 0),
        ("array_count", 0),
        ("simd_arrays_per_engine", 0),
        ("cu_per_simd_array", 0),
        ("simd_per_cu", 0),
        ("max_slots_scratch_cu", 0),
        ("gfx_target_version", 0),
        ("vendor_id", 0),
        ("device_id", 0),
        ("location_id", 0),
        ("domain", 0),
        ("drm_render_minor", 0),
        ("hive_id", 0),
        ("num_sdma_engines", 0),
        ("num_sdma_xgmi_engines", 0),
        ("num_sdma_queues_per_engine", 0),
        ("num_cp_queues", 0),
        ("max_engine_clk_ccompute", 2400),
    ])
}

fn gpu_properties(asic: &Asic, gpu: usize, gpus: usize) -> String {
    let peers = gpus as u64 - 1;
    let xgmi = asic.num_sdma_xgmi_engines > 0;
    properties(&[
        ("cpu_cores_count", 0),
        ("simd_count", u64::from(asic.compute_units * asic.simd_per_cu)),
        ("mem_banks_count", 1),
        ("caches_count", asic.caches.len() as u64),
        ("io_links_count", 1 + if xgmi { peers } else { 0 }),
        ("p2p_links_count", if xgmi { 0 } else { peers }),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 2_147_487_744 + gpu as u64 * 4096),
        ("max_waves_per_simd", u64::from(asic.max_waves_per_simd)),
        ("lds_size_in_kb", u64::from(asic.lds_kib)),
        ("gds_size_in_kb", 0),
        ("num_gws", 64),
        ("wave_front_size", u64::from(asic.wave_front_size)),
        ("array_count", u64::from(asic.array_count)),
        ("simd_arrays_per_engine", u64::from(asic.simd_arrays_per_engine)),
        ("cu_per_simd_array", u64::from(asic.cu_per_simd_array)),
        ("simd_per_cu", u64::from(asic.simd_per_cu)),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", u64::from(asic.gfx_target_version)),
        ("vendor_id", 0x1002),
        ("device_id", u64::from(asic.device_id)),
        ("location_id", u64::from(location_id(gpu))),
        ("domain", 0),
        ("drm_render_minor", u64::from(FIRST_RENDER_MINOR) + gpu as u64),
        ("hive_id", if xgmi && gpus > 1 { 0x51_4d00 } else { 0 }),
        ("num_sdma_engines", u64::from(asic.num_sdma_engines)),
        ("num_sdma_xgmi_engines", u64::from(asic.num_sdma_xgmi_engines)),
        ("num_sdma_queues_per_engine", u64::from(asic.num_sdma_queues_per_engine)),
        ("num_cp_queues", u64::from(asic.num_cp_queues)),
        ("max_engine_clk_fcompute", u64::from(asic.engine_clock_mhz)),
        ("local_mem_size", 0),
        ("fw_version", u64::from(asic.fw_version)),
        ("capability", u64::from(asic.capability())),
        ("debug_prop", u64::from(asic.debug_prop)),
        ("sdma_fw_version", u64::from(asic.sdma_fw_version)),
        ("unique_id", unique_id(gpu)),
        ("num_xcc", u64::from(asic.num_xcc)),
        ("max_engine_clk_ccompute", 2400),
    ])
}

fn memory_bank(heap_type: u64, bytes: u64, width: u32, mhz: u32) -> String {
    properties(&[
        ("heap_type", heap_type),
        ("size_in_bytes", bytes),
        ("flags", 0),
        ("width", u64::from(width)),
        ("mem_clk_max", u64::from(mhz)),
    ])
}

fn cache(level: u32, kib: u32) -> String {
    const DATA_AND_SIMD: u64 = 1 | 8;
    let mut text = properties(&[
        ("processor_id_low", 2_147_487_744),
        ("level", u64::from(level)),
        ("size", u64::from(kib)),
        ("cache_line_size", 128),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 1),
        ("type", DATA_AND_SIMD),
    ]);
    text.push_str("sibling_map 1\n");
    text
}

#[derive(Clone, Copy)]
enum Link {
    Pcie,
    Xgmi,
}

fn link(from: usize, to: usize, kind: Link) -> String {
    let (kind, weight) = match kind {
        Link::Pcie => (2, 20),
        Link::Xgmi => (11, 15),
    };
    properties(&[
        ("type", kind),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from as u64),
        ("node_to", to as u64),
        ("weight", weight),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 312),
        ("max_bandwidth", 64000),
        ("recommended_transfer_size", 0),
        ("recommended_sdma_engine_id_mask", 0),
        ("flags", 1),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, name: &str) -> u64 {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn content(files: &[(String, String)], path: &str) -> String {
        files
            .iter()
            .find(|(name, _)| name == path)
            .unwrap_or_else(|| panic!("no {path}"))
            .1
            .clone()
    }

    #[test]
    fn counts_match_the_files() {
        for asic in Asic::ALL {
            for gpus in [1, 2, 8] {
                let files = files(asic, gpus);
                for node in 0..=gpus {
                    let base = format!("topology/nodes/{node}");
                    let text = content(&files, &format!("{base}/properties"));
                    for folder in ["mem_banks", "caches", "io_links", "p2p_links"] {
                        let prefix = format!("{base}/{folder}/");
                        let found = files.iter().filter(|(path, _)| path.starts_with(&prefix)).count() as u64;
                        assert_eq!(
                            value(&text, &format!("{folder}_count")),
                            found,
                            "{} {gpus} {prefix}",
                            asic.name
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_rocr_cannot_do_without() {
        let asic = Asic::by_name("gfx942").unwrap();
        let files = files(asic, 2);
        let gpu = content(&files, "topology/nodes/2/properties");
        assert_eq!(value(&gpu, "gfx_target_version"), 90402);
        assert_eq!(value(&gpu, "drm_render_minor"), 129);
        assert_eq!(value(&gpu, "simd_count"), 1216);
        assert_eq!(content(&files, "topology/nodes/2/gpu_id"), format!("{}\n", gpu_id(1)));
        assert_eq!(
            value(&content(&files, "topology/nodes/1/mem_banks/0/properties"), "heap_type"),
            1
        );
        assert!(content(&files, "simulated").starts_with("kfd-sim "));
        assert!(gpu.len() < 4096, "libhsakmt reads one page");
    }
}
