//! The files of a graphics card in /sys/class/drm, as AMD's management libraries and tinygrad read them.
//!
//! Each GPU is the only device of a PCI root bus of its own, so that nothing of the host is hidden. Sensors have constant values:
//! those of a card at rest.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::asic::{Asic, IpBlock};
use crate::topology::{self, FIRST_RENDER_MINOR};

/// PCI's vendor id of AMD.
const VENDOR: u32 = 0x1002;

/// Returns the PCI bus of a GPU.
fn bus(gpu: usize) -> u32 {
    topology::location_id(gpu) >> 8
}

/// Returns the name of a GPU's PCI root bus, a folder of /sys/devices.
pub fn root_bus(gpu: usize) -> String {
    format!("pci0000:{:02x}", bus(gpu))
}

/// Returns the name of a GPU's PCI bus in /sys/class/pci_bus.
pub fn bus_name(gpu: usize) -> String {
    format!("0000:{:02x}", bus(gpu))
}

/// Returns the PCI address of a GPU.
pub fn address(gpu: usize) -> String {
    format!("0000:{:02x}:00.0", bus(gpu))
}

/// Returns the files of a GPU, as (path below its device folder, content).
pub fn files(asic: &Asic, gpu: usize) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |path: &str, content: String| files.push((path.to_owned(), content + "\n"));
    let (device, revision) = (asic.device_id, asic.pci_revision);
    add("vendor", format!("{VENDOR:#06x}"));
    add("device", format!("{device:#06x}"));
    add("revision", format!("{revision:#04x}"));
    add("subsystem_vendor", format!("{VENDOR:#06x}"));
    add("subsystem_device", format!("{device:#06x}"));
    add("class", "0x038000".into());
    add("numa_node", "-1".into());
    add("unique_id", format!("{:016x}", topology::unique_id(gpu)));
    add(
        "uevent",
        format!(
            "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID={VENDOR:04X}:{device:04X}\nPCI_SLOT_NAME={}",
            address(gpu)
        ),
    );
    for kind in ["vram", "vis_vram"] {
        add(&format!("mem_info_{kind}_total"), asic.vram_bytes.to_string());
        add(&format!("mem_info_{kind}_used"), "0".into());
    }
    add("mem_info_gtt_total", (16u64 << 30).to_string());
    add("mem_info_gtt_used", "0".into());
    add("gpu_busy_percent", "0".into());
    add("mem_busy_percent", "0".into());
    add("power_dpm_force_performance_level", "auto".into());
    add("pp_dpm_sclk", format!("0: 500Mhz *\n1: {}Mhz", asic.engine_clock_mhz));
    add("pp_dpm_mclk", format!("0: 96Mhz *\n1: {}Mhz", asic.vram_clock_mhz));
    add("current_link_speed", "16.0 GT/s PCIe".into());
    add("current_link_width", "16".into());
    add("max_link_speed", "32.0 GT/s PCIe".into());
    add("max_link_width", "16".into());
    add("fw_version/mec_fw_version", format!("{:#010x}", asic.fw_version));
    add("fw_version/sdma_fw_version", format!("{:#010x}", asic.sdma_fw_version));
    for (name, value) in sensors(asic) {
        add(&format!("hwmon/hwmon{gpu}/{name}"), value);
    }
    for block in asic.ip_blocks {
        ip_block(block, &mut add);
    }
    for (name, minor) in [(format!("card{gpu}"), gpu), (render(gpu), render_minor(gpu))] {
        add(&format!("drm/{name}/dev"), format!("226:{minor}"));
        add(
            &format!("drm/{name}/uevent"),
            format!("MAJOR=226\nMINOR={minor}\nDEVNAME=dri/{name}\nDEVTYPE=drm_minor"),
        );
    }
    files
}

/// The sensors, in the units of hwmon: millidegrees, microwatts, Hz.
fn sensors(asic: &Asic) -> Vec<(String, String)> {
    let mut sensors = vec![("name".into(), "amdgpu".into())];
    for (number, label) in [(1, "edge"), (2, "junction"), (3, "mem")] {
        sensors.push((format!("temp{number}_label"), label.into()));
        sensors.push((format!("temp{number}_input"), "40000".into()));
        sensors.push((format!("temp{number}_crit"), "100000".into()));
    }
    sensors.push(("power1_average".into(), "50000000".into()));
    sensors.push(("power1_cap".into(), "300000000".into()));
    sensors.push(("power1_cap_max".into(), "300000000".into()));
    sensors.push(("power1_cap_min".into(), "0".into()));
    sensors.push(("freq1_label".into(), "sclk".into()));
    sensors.push(("freq1_input".into(), "500000000".into()));
    sensors.push(("freq2_label".into(), "mclk".into()));
    sensors.push((
        "freq2_input".into(),
        (u64::from(asic.vram_clock_mhz) * 1_000_000).to_string(),
    ));
    sensors
}

/// The files of a block in `ip_discovery`: a folder for each instance.
fn ip_block(block: &IpBlock, add: &mut impl FnMut(&str, String)) {
    let (major, minor, revision) = block.version;
    for instance in 0..block.instances {
        let folder = format!("ip_discovery/die/0/{}/{instance}", block.hw_id);
        let mut value = |name: &str, value: String| add(&format!("{folder}/{name}"), value);
        value("hw_id", block.hw_id.to_string());
        value("num_instance", instance.to_string());
        value("major", major.to_string());
        value("minor", minor.to_string());
        value("revision", revision.to_string());
        value("harvest", "0x0".into());
        value("num_base_addresses", block.bases.len().to_string());
        let bases: Vec<String> = block.bases.iter().map(|base| format!("{base:#010X}")).collect();
        value("base_addr", bases.join("\n").replace("0X", "0x"));
    }
}

fn render_minor(gpu: usize) -> usize {
    FIRST_RENDER_MINOR as usize + gpu
}

fn render(gpu: usize) -> String {
    format!("renderD{}", render_minor(gpu))
}

/// Writes the files of all GPUs. `devices` stands for /sys/devices and `class` for /sys/class, which are two levels below the same
/// folder.
pub fn write(devices: &Path, class: &Path, asic: &Asic, gpus: usize) -> Result<()> {
    let (drm, buses) = (class.join("drm"), class.join("pci_bus"));
    fs::create_dir_all(&drm)?;
    fs::create_dir_all(&buses)?;
    for gpu in 0..gpus {
        let place = format!("{}/{}", root_bus(gpu), address(gpu));
        let root = devices.join(&place);
        for (path, content) in files(asic, gpu) {
            let path = root.join(path);
            let folder = path.parent().context("a file without a folder")?;
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
            fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        }
        // From a bus, libraries go up to its device.
        let name = bus_name(gpu);
        fs::create_dir_all(devices.join(root_bus(gpu)).join("pci_bus").join(&name))?;
        symlink(
            format!("../../devices/{}/pci_bus/{name}", root_bus(gpu)),
            buses.join(name),
        )?;
        for block in asic.ip_blocks {
            symlink(
                block.hw_id.to_string(),
                root.join("ip_discovery/die/0").join(block.name),
            )?;
        }
        fs::write(root.join("hwmon").join(format!("hwmon{gpu}/uevent")), "")?;
        symlink("../../", root.join(format!("hwmon/hwmon{gpu}/device")))?;
        for name in [format!("card{gpu}"), render(gpu)] {
            symlink("../../", root.join(format!("drm/{name}/device")))?;
            symlink(format!("../../devices/{place}/drm/{name}"), drm.join(&name))?;
        }
    }
    fs::write(drm.join("version"), "drm 1.1.0 20060810\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn a_render_node_leads_to_its_device() {
        let sys = tempfile::tempdir().unwrap();
        let (devices, class) = (sys.path().join("devices"), sys.path().join("class"));
        write(&devices, &class, Asic::by_name("gfx1100").unwrap(), 2).unwrap();
        for (node, address) in [
            ("renderD129", "0000:04:00.0"),
            ("card1", "0000:04:00.0"),
            ("card0", "0000:03:00.0"),
        ] {
            let device = class.join("drm").join(node).join("device").canonicalize().unwrap();
            assert_eq!(device.file_name().unwrap().to_str(), Some(address));
            assert_eq!(read(&device.join("device")), "0x744c\n");
        }
        let device = class.join("pci_bus/0000:04/../../0000:04:00.0").canonicalize().unwrap();
        assert_eq!(device, class.join("drm/card1/device").canonicalize().unwrap());
        let device = class.join("drm/renderD128/device");
        assert_eq!(read(&device.join("hwmon/hwmon0/name")), "amdgpu\n");
        assert_eq!(read(&device.join("hwmon/hwmon0/device/vendor")), "0x1002\n");
        assert_eq!(read(&class.join("drm/card1/dev")), "226:1\n");
        assert_eq!(read(&class.join("drm/renderD129/dev")), "226:129\n");
    }

    #[test]
    fn blocks_of_the_chip_are_read_by_number_and_by_name() {
        let sys = tempfile::tempdir().unwrap();
        let (devices, class) = (sys.path().join("devices"), sys.path().join("class"));
        write(&devices, &class, Asic::by_name("gfx942").unwrap(), 1).unwrap();
        let die = class.join("drm/card0/device/ip_discovery/die/0");
        for folder in ["11/7", "GC/7"] {
            let version = ["major", "minor", "revision"].map(|part| read(&die.join(folder).join(part)));
            assert_eq!(version, ["9\n", "4\n", "3\n"]);
        }
        assert!(!die.join("11/8").exists(), "eight compute dies");
        assert_eq!(read(&die.join("11/0/base_addr")), "0x00002000\n0x0000A000\n");
        assert_eq!(read(&die.join("108/0/num_base_addresses")), "4\n");
    }

    #[test]
    fn a_chip_without_a_discovery_table_has_no_blocks() {
        let files = files(Asic::by_name("gfx90a").unwrap(), 0);
        assert!(!files.iter().any(|(path, _)| path.starts_with("ip_discovery")));
        let unique = |gpu| {
            let files = super::files(Asic::by_name("gfx90a").unwrap(), gpu);
            files.into_iter().find(|(path, _)| path == "unique_id").unwrap().1
        };
        assert_ne!(unique(0), unique(1));
    }
}
