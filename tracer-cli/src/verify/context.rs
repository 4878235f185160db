//! The context that a judge needs about a trace, from its manifest.

use tracer_capture::inventory::RAW;
use tracer_core::family::Family;
use tracer_core::verify::{Context, Device, Ended, Scheduler};
use tracer_store::{
    Trace,
    manifest::{self, Exit, SchedulerKind, Target},
};

use crate::record::manifest::parse;

/// Gathers the context. Damage to the tables is found while they are read.
pub fn of(trace: &Trace) -> Context {
    let manifest = trace.manifest();
    let command = matches!(manifest.target, Target::Command { .. });
    Context {
        capabilities: parse(&manifest.capabilities),
        complete: manifest.complete,
        imported: matches!(manifest.target, Target::Imported { .. }),
        damage: Vec::new(),
        unread: Default::default(),
        losses: manifest.losses.clone(),
        devices: manifest.devices.iter().map(device).collect(),
        libraries: manifest.libraries.iter().map(|library| library.path.clone()).collect(),
        doorbell_probes_missing: doorbell_probes_missing(manifest),
        simulated: manifest.simulated.clone(),
        submits_counted: submits_counted(manifest),
        command_began_ns: command.then_some(manifest.started.monotonic_ns),
        command: command.then_some(match manifest.exit {
            Some(Exit::Code(code)) => Ended::Code(code),
            Some(Exit::Signal(signal)) => Ended::Signal(signal),
            None => Ended::Unknown,
        }),
    }
}

fn doorbell_probes_missing(manifest: &manifest::Manifest) -> u64 {
    let doorbells = manifest.probes.iter().filter(|probe| probe.family == Family::Doorbell);
    doorbells.filter(|probe| !probe.attached).count() as u64
}

/// Returns whether missed submissions are counted. For raw programs, every kernel that tracer runs on counts what it passes over;
/// for programs on trace events, only kernels since 6.7 do.
fn submits_counted(manifest: &manifest::Manifest) -> bool {
    let mut rings = manifest
        .probes
        .iter()
        .filter(|probe| probe.family == Family::Ring)
        .peekable();
    rings.peek().is_some() && rings.all(|probe| probe.attached && probe.resolver.as_deref() == Some(RAW))
}

fn device(device: &manifest::Device) -> Device {
    Device {
        gpu_id: device.gpu_id,
        name: device.name.clone(),
        gfx_target_version: device.gfx_target_version,
        scheduler: match device.scheduler.kind {
            SchedulerKind::Mes => Some(Scheduler::Mes),
            SchedulerKind::Hws => Some(Scheduler::Hws),
            SchedulerKind::Nohws => Some(Scheduler::Nohws),
            SchedulerKind::Unknown => None,
        },
        evidence: device.scheduler.evidence.clone(),
    }
}
