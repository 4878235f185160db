//! The GPUs as a process sees them: the KFD's topology below the process's own root, so that a container shows its own GPUs.

use serde::Serialize;

use super::products::{self, Products};
use crate::target::file_tree::Tree;

/// Folder of the driver in sysfs; /sys/class/kfd/kfd links to it.
const KFD: &str = "sys/devices/virtual/kfd/kfd";

/// A GPU of the topology. The JSON of `tracer doctor` has some of its fields, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// KFD's id: `gpu_id` of the ioctls.
    pub gpu_id: u32,
    /// Node number in the topology.
    #[serde(skip)]
    pub node: u32,
    /// `gfx_target_version`, e.g. 90402 for gfx942.
    #[serde(skip)]
    pub gfx_target_version: u32,
    /// Name of the ISA, e.g. `gfx942`.
    #[serde(rename = "name")]
    pub gfx: String,
    /// The scheduler of its user queues.
    pub scheduler: &'static str,
    /// The evidence for the scheduler.
    #[serde(rename = "evidence")]
    pub scheduler_evidence: String,
    /// Number of the render node.
    #[serde(rename = "render_minor")]
    pub drm_render_minor: Option<u32>,
    /// Compute units.
    #[serde(skip)]
    pub compute_units: Option<u32>,
    /// Compute queues that it runs at once.
    #[serde(skip)]
    pub compute_queues: Option<u32>,
    /// Product name, e.g. `AMD Instinct MI300X`; `None` if the lists of libdrm do not tell it.
    pub product: Option<String>,
}

impl Gpu {
    /// Returns whether both are the same GPU, whatever each one's process calls its product.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let nameless = |gpu: &Self| Self {
            product: None,
            ..gpu.clone()
        };
        nameless(self) == nameless(other)
    }
}

/// All GPUs, and whether they are real.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// GPUs in the order of nodes.
    pub gpus: Vec<Gpu>,
    /// The sign that the device is simulated; `None` if no sign was found.
    pub simulated: Option<String>,
    /// Whether there may be GPUs although none was found: the topology has no node, or one whose files cannot be read. The driver
    /// refuses reads of GPUs that a container may not use, so a node beside others that were read says nothing.
    pub is_unread: bool,
}

/// Reads the topology below a root. A GPU whose files are missing or malformed is left out.
#[must_use]
pub fn below<T: Tree + ?Sized>(root: &T) -> Devices {
    let nodes = root.numbered(&format!("{KFD}/topology/nodes"), "");
    let simulated = simulated(root);
    let gpus: Vec<(Gpu, Option<u32>)> = nodes.iter().filter_map(|(n, path)| gpu(root, *n, path)).collect();
    let wanted: Vec<u32> = gpus.iter().filter_map(|(_, device)| *device).collect();
    let names = Products::read(root, &wanted);
    let gpus: Vec<Gpu> = gpus
        .into_iter()
        .map(|(gpu, device)| {
            // A render node of a simulated topology may be another GPU's.
            let minor = gpu.drm_render_minor.filter(|_| simulated.is_none());
            let revision = minor.and_then(|minor| products::revision(root, minor));
            let product = device.and_then(|device| names.of(device, revision));
            Gpu { product, ..gpu }
        })
        .collect();
    // A node of processors alone has id 0.
    let is_processors = |path: &str| root.text(&format!("{path}/gpu_id")).is_some_and(|id| id.trim() == "0");
    let processors = nodes.iter().filter(|(_, path)| is_processors(path)).count();
    Devices {
        is_unread: gpus.is_empty() && (nodes.is_empty() || processors < nodes.len()),
        gpus,
        simulated,
    }
}

/// Returns the sign of a simulation: a simulator has a file for it in sysfs, and a real /dev/kfd is never a plain file.
fn simulated<T: Tree + ?Sized>(root: &T) -> Option<String> {
    if let Some(text) = root.text(&format!("{KFD}/simulated")) {
        return Some(text.trim().to_owned());
    }
    root.is_plain("dev/kfd").then(|| "/dev/kfd is not a device".to_owned())
}

/// Returns a GPU, without its product, and its PCI device id.
fn gpu<T: Tree + ?Sized>(root: &T, node: u32, path: &str) -> Option<(Gpu, Option<u32>)> {
    let gpu_id: u32 = root.text(&format!("{path}/gpu_id"))?.trim().parse().ok()?;
    let properties = root.text(&format!("{path}/properties"))?;
    let property = |name: &str| {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
        u32::try_from(properties.lines().find_map(value)?).ok()
    };
    let version = property("gfx_target_version")?;
    if gpu_id == 0 || version == 0 {
        return None; // A CPU.
    }
    let (scheduler, scheduler_evidence) = scheduler(version);
    let gpu = Gpu {
        gpu_id,
        node,
        gfx_target_version: version,
        gfx: gfx_name(version),
        scheduler,
        scheduler_evidence,
        drm_render_minor: property("drm_render_minor"),
        compute_units: property("simd_count")
            .zip(property("simd_per_cu"))
            .and_then(|(all, of_one)| all.checked_div(of_one)),
        compute_queues: property("num_cp_queues"),
        product: None,
    };
    Some((gpu, property("device_id")))
}

/// Returns the name of the ISA. The version is `major * 10000 + minor * 100 + stepping`; minor and stepping are one hexadecimal
/// digit each in the name.
fn gfx_name(version: u32) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

/// Returns the scheduler and the evidence, by `amdgpu_discovery_set_mes_ip_blocks` of the driver: MES schedules user queues from
/// gfx11 on, the HWS of the compute microcode before. The topology does not show a driver option that selects otherwise
/// (`sched_policy`).
fn scheduler(version: u32) -> (&'static str, String) {
    let name = if version >= 110_000 { "mes" } else { "hws" };
    (name, format!("gfx_target_version {version} in the KFD topology"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isa_names_equal_the_names_of_the_compiler() {
        for (version, name) in [
            (90_010, "gfx90a"),
            (90_402, "gfx942"),
            (110_000, "gfx1100"),
            (100_302, "gfx1032"),
        ] {
            assert_eq!(gfx_name(version), name);
        }
    }

    #[test]
    fn a_machine_without_kfd_has_no_gpus_and_no_sign_of_simulation() {
        let empty = std::env::temp_dir().join("tracer-no-such-root");
        let nothing = Devices {
            is_unread: true,
            ..Devices::default()
        };
        assert_eq!(below(empty.as_path()), nothing);
    }

    #[test]
    fn a_topology_of_processors_alone_is_read() {
        let root = tempfile::tempdir().expect("a folder");
        let node = root.path().join(KFD).join("topology/nodes/0");
        std::fs::create_dir_all(&node).expect("folders");
        std::fs::write(node.join("gpu_id"), "0\n").expect("a file");
        std::fs::write(node.join("properties"), "cpu_cores_count 2\n").expect("a file");
        assert_eq!(below(root.path()), Devices::default());
        // A GPU that cannot be read.
        std::fs::write(node.join("gpu_id"), "7\n").expect("a file");
        assert!(below(root.path()).is_unread);
    }
}
