//! The manifest of a recording, from the inventory of the capture.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt};

use tracer_capture::inventory::{self, Inventory};
use tracer_core::family::Family;
use tracer_core::words::Named;
use tracer_core::{
    live::{Capture, Gpu},
    summary::Capabilities,
};
use tracer_store::manifest::{
    ClockSnapshot, Device, Exit, Host, Library, Manifest, Pauses, Probe, Scheduler, SchedulerKind, Target, Tool,
};

use crate::target::Ending;

/// Creates the manifest at the start of a recording.
pub fn begin(target: Target) -> Manifest {
    let tool = Tool {
        name: "tracer".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Manifest::new(tool, Host::here(), target, ClockSnapshot::now())
}

/// Describes what is being captured. May be called at any time, also before the end.
pub fn describe(manifest: &mut Manifest, inventory: &Inventory, losses: &BTreeMap<String, u64>) {
    manifest.backend = Some(inventory.backend);
    manifest.simulated = inventory.simulated().map(str::to_owned);
    manifest.pauses = Some(Pauses {
        count: inventory.holds,
        longest_ns: inventory.longest_hold_ns,
    });
    manifest.devices = devices(inventory);
    manifest.libraries = inventory.libraries.iter().map(library).collect();
    manifest.probes = inventory.probes.iter().map(|it| probe(it, &inventory.hit_ns)).collect();
    manifest.capabilities = names(capabilities(inventory));
    manifest.warnings.clone_from(&inventory.warnings);
    manifest.losses.clone_from(losses);
}

/// Completes the manifest at the end of a recording.
pub fn end(manifest: &mut Manifest, ending: &Ending) {
    manifest.ended = Some(ClockSnapshot::now());
    manifest.ended_by = Some(ending.by.clone());
    manifest.exit = ending
        .status
        .and_then(|s| s.code().map(Exit::Code).or_else(|| s.signal().map(Exit::Signal)));
    manifest.complete = true;
}

/// Returns what was traced, in a few words: the command, or what is traced instead.
pub fn subject(target: &Target) -> String {
    match target {
        Target::Command { argv } => argv.join(" "),
        Target::Attached { pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            format!("running processes {}", pids.join(", "))
        }
        Target::System => "every process".to_owned(),
        Target::Imported { from } => format!("imported from {from}"),
    }
}

/// Returns what was watched. A source counts only if it is whole: one library whose doorbells could not be found makes their number
/// unknown.
pub fn capabilities(inventory: &Inventory) -> Capabilities {
    let failed = |family: Family| inventory.lacks(family);
    // A library of HIP or OpenCL submits through the library of an HSA runtime.
    let whole = |family: Family| inventory.has_runtime() && !failed(family) && inventory.covers_runtimes(family);
    let no_runtime = !inventory.has_runtime();
    let events = |family: Family| {
        let mut probes = inventory.probes.iter().filter(|p| p.family == family).peekable();
        probes.peek().is_some() && probes.all(inventory::Probe::attached)
    };
    Capabilities {
        doorbells: whole(Family::Doorbell),
        packets: whole(Family::Doorbell),
        sdma_doorbells: whole(Family::Sdma),
        reserves: whole(Family::Reserve),
        ioctls: events(Family::Ioctl),
        kernel_rings: events(Family::Ring),
        driver: inventory.has(Family::Driver),
        driver_events: inventory.has(Family::DriverEvent),
        code_objects: whole(Family::CodeObject),
        api: inventory.has(Family::Api) && inventory.api.records(),
        api_stats: inventory.has(Family::Api) && inventory.api.counts_any(),
        // No function that was found calls `hsaKmtQueueRingDoorbell`, so no call of it is missed.
        thunk: whole(Family::Doorbell) && !inventory.may_hand_over(),
        // Without a runtime, everything that the GPU takes is unseen.
        unseen: (no_runtime || whole(Family::Doorbell)) && events(Family::Progress),
        hsa_queues: whole(Family::HsaQueue),
        // Every proxy that a program received has its probes.
        requests: whole(Family::HsaQueue) && !failed(Family::Proxy),
    }
}

/// Describes a capture that continues, for live views.
pub fn capture(inventory: &Inventory) -> Capture {
    Capture {
        watched: capabilities(inventory),
        simulated: inventory.simulated().map(str::to_owned),
        ..Capture::default()
    }
}

/// Converts capabilities to words for the manifest.
fn names(capabilities: Capabilities) -> Vec<String> {
    let watched = capabilities.each().into_iter().filter(|(_, watched)| *watched);
    watched.map(|(name, _)| name.to_owned()).collect()
}

/// Converts the words of a manifest to capabilities. Words that this version does not know are left out.
pub fn parse(names: &[String]) -> Capabilities {
    let all = Capabilities::default().each().into_iter();
    let watched = all.map(|(name, _)| (name, names.iter().any(|n| n == name)));
    // Every field has a value.
    serde_json::from_value(watched.collect()).unwrap_or_default()
}

/// Returns the GPUs that the capture found.
pub fn devices(inventory: &Inventory) -> Vec<Device> {
    let gpus = inventory.devices.iter().flat_map(|devices| &devices.gpus);
    gpus.map(device).collect()
}

/// Returns the GPUs in the form for live views.
pub fn gpus(devices: &[Device]) -> BTreeMap<u32, Gpu> {
    let gpu = |device: &Device| Gpu {
        name: device.name.clone(),
        scheduler: scheduler(device),
    };
    let mut gpus: BTreeMap<u32, Gpu> = BTreeMap::new();
    for device in devices {
        // Processes that see different GPUs under one id share its row.
        let shown = gpus.entry(device.gpu_id).or_insert_with(|| gpu(device));
        if shown.name != device.name {
            shown.name = format!("{} or {}", shown.name, device.name);
        }
        if shown.scheduler != scheduler(device) {
            shown.scheduler = None;
        }
    }
    gpus
}

/// Returns the name of a GPU's scheduler, if it is known.
pub fn scheduler(device: &Device) -> Option<String> {
    let kind = device.scheduler.kind;
    (kind != SchedulerKind::Unknown).then(|| kind.name().to_owned())
}

fn device(gpu: &tracer_capture::kernel::devices::Gpu) -> Device {
    let known = [SchedulerKind::Mes, SchedulerKind::Hws, SchedulerKind::Nohws];
    let kind = known.into_iter().find(|kind| kind.name() == gpu.scheduler);
    Device {
        gpu_id: gpu.gpu_id,
        name: gpu.gfx.clone(),
        gfx_target_version: gpu.gfx_target_version,
        scheduler: Scheduler {
            kind: kind.unwrap_or_default(),
            evidence: vec![gpu.scheduler_evidence.clone()],
        },
        compute_units: gpu.compute_units,
        compute_queues: gpu.compute_queues,
        product: gpu.product.clone(),
    }
}

fn library(library: &inventory::Library) -> Library {
    Library {
        path: library.path.clone(),
        device: library.device.clone(),
        inode: library.inode,
        build_id: library.build_id.clone(),
        soname: library.soname.clone(),
    }
}

fn probe(probe: &inventory::Probe, hit_ns: &BTreeMap<String, u64>) -> Probe {
    let (library, symbol) = match probe.file_offset {
        Some(_) => (Some(&probe.target), &probe.role),
        None => (None, &probe.target),
    };
    Probe {
        family: probe.family,
        library: library.cloned(),
        symbol: symbol.clone(),
        file_offset: probe.file_offset,
        instruction: probe.instruction.clone(),
        hit_ns: probe.instruction.as_ref().and_then(|kind| hit_ns.get(kind)).copied(),
        resolver: probe.step.clone(),
        confidence: probe.confidence.map(|confidence| confidence.to_string()),
        attached: probe.attached(),
        error: probe.error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use tracer_capture::{
        runtime::resolver::Confidence,
        session::{Api, Classes, Layer},
    };

    use super::*;

    #[test]
    fn capabilities_survive_the_manifest() {
        let some = Capabilities {
            doorbells: true,
            ioctls: true,
            ..Capabilities::default()
        };
        assert_eq!(names(some), ["doorbells", "ioctls"]);
        assert_eq!(parse(&names(some)), some);
    }

    #[test]
    fn what_is_recorded_and_what_is_counted() {
        let of = |api| {
            let probe = inventory::Probe {
                family: Family::Api,
                ..Default::default()
            };
            let inventory = Inventory {
                api,
                probes: vec![probe],
                ..Default::default()
            };
            let capabilities = capabilities(&inventory);
            assert_eq!(parse(&names(capabilities)), capabilities);
            (capabilities.api, capabilities.api_stats)
        };
        let rows = Api::new(&[Layer::Hsa], Classes::ALL);
        let both = [Api::ALL, Api::STATS, rows].map(of);
        assert_eq!(both, [(true, true), (false, true), (true, false)]);
        assert!(!capabilities(&Inventory::default()).api_stats);
    }

    #[test]
    fn a_library_without_its_probes_makes_the_count_unknown() {
        let library = |path: &str| inventory::Library {
            path: path.to_owned(),
            ..Default::default()
        };
        let probe = |path: &str| inventory::Probe {
            family: Family::Doorbell,
            target: path.to_owned(),
            ..Default::default()
        };
        let mut inventory = Inventory {
            libraries: vec![library("a"), library("b")],
            probes: vec![probe("a")],
            ..Default::default()
        };
        assert!(!capabilities(&inventory).doorbells);
        inventory.probes.push(inventory::Probe {
            confidence: Some(Confidence::Low),
            ..probe("b")
        });
        assert!(!capabilities(&inventory).doorbells);
        inventory.probes.push(probe("b"));
        assert!(capabilities(&inventory).doorbells);
        assert!(!capabilities(&Inventory::default()).doorbells);
        // No library can ring in another way, until one can.
        assert!(capabilities(&inventory).thunk && !capabilities(&Inventory::default()).thunk);
        inventory.libraries[0].thunk = true;
        assert!(capabilities(&inventory).doorbells && !capabilities(&inventory).thunk);
    }
}
