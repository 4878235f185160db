//! What the manifest of a trace says, for the metadata of an export.

use tracer_core::words::Named;
use tracer_export::{About, Clocks, Gpu, Window};
use tracer_store::Trace;

use crate::record::manifest;

/// Returns what a reader of the export must know.
///
/// # Errors
/// If a folder of the trace cannot be read.
pub fn of(trace: &Trace, window: Window) -> anyhow::Result<About> {
    let manifest = trace.manifest();
    let sources = manifest::parse(&manifest.capabilities).each();
    let names = |watched: bool| {
        let those = sources.into_iter().filter(move |(_, is)| *is == watched);
        those.map(|(name, _)| name.to_owned()).collect()
    };
    let gpus = manifest.devices.iter().map(|device| Gpu {
        gpu_id: device.gpu_id,
        name: device.name.clone(),
        scheduler: device.scheduler.kind.name().to_owned(),
        product: device.product.clone(),
    });
    Ok(About {
        tool: format!("{} {}", manifest.tool.name, manifest.tool.version),
        host: manifest.host.name.clone(),
        kernel: manifest.host.kernel_release.clone(),
        machine: manifest.host.machine.clone(),
        boot_id: manifest.host.boot_id.clone(),
        subject: manifest::subject(&manifest.target),
        started: Clocks {
            monotonic_ns: manifest.started.monotonic_ns,
            boottime_ns: manifest.started.boottime_ns,
            realtime_ns: manifest.started.realtime_ns,
        },
        ended_ns: manifest.ended.as_ref().map(|clocks| clocks.monotonic_ns),
        complete: manifest.complete,
        simulated: manifest.simulated.clone(),
        losses: manifest.losses.clone(),
        watched: names(true),
        not_watched: names(false),
        warnings: manifest.warnings.clone(),
        damage: trace.damage()?.iter().map(ToString::to_string).collect(),
        gpus: gpus.collect(),
        window,
    })
}
