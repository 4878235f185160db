//! AQL doorbells: the functions of `AqlQueue` that the resolver found, or, as a last resort, exported functions.

use std::collections::BTreeSet;

use super::{Prober, Site, Target, api_table};
use crate::{
    inventory::Probe,
    proc_maps::{FileId, Mapping},
    resolver::{Argument, Confidence, ExportSite, ProbePoint, Resolution, ResolverStep},
};

/// Attaches to every doorbell function.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let sites = resolution.doorbells.iter();
    sites
        .map(|site| {
            let site = Site {
                point: site.probe,
                upper: i32::from(site.signal_offset) as u32,
                role: site.role.to_string(),
                found: Some((site.step, site.confidence)),
            };
            prober.uprobe("doorbell", "doorbell", target, site)
        })
        .collect()
}

/// What stays unseen with [`attach_last_resort`], for the library of that path.
#[must_use]
pub fn unseen_by_last_resort(path: &str) -> String {
    format!(
        "{path}: its doorbell functions were not found (see `tracer doctor --library`); doorbells are seen where a program \
         calls hsa_signal_store_*, and those that the runtime rings itself (copies and fills by kernels) are not"
    )
}

/// Attaches to the exported functions that store to signals, where no doorbell function was found.
///
/// Behind the API table of process `pid`, as it has the library mapped, lies what the runtime calls itself, too, and the
/// kernel can emulate its first instructions. Either all of them are taken there or none: where a tool stands in between,
/// it may call one from within the other, and a doorbell would count twice.
pub fn attach_last_resort(
    prober: &mut Prober,
    target: &Target<'_>,
    resolution: &Resolution,
    process: Option<(u32, &FileId, &[Mapping])>,
) -> Vec<Probe> {
    let exports = resolution.last_resort();
    let behind = process.and_then(|(pid, file, mappings)| {
        let own: Vec<&Mapping> = mappings.iter().filter(|m| m.file == *file).collect();
        let site = |export| api_table::behind(target, export, pid, &own, &[Argument::Rdi, Argument::Rsi]);
        exports.iter().map(site).collect::<Option<Vec<_>>>()
    });
    let (points, step) = behind.map_or_else(
        || {
            let stub = |export: &ExportSite| export.probe;
            (exports.iter().map(stub).collect(), ResolverStep::Export)
        },
        |points: Vec<ProbePoint>| (points, ResolverStep::ApiTable),
    );
    let mut placed = BTreeSet::new();
    let mut probes = Vec::new();
    for (export, point) in exports.iter().zip(points) {
        // Several names may share one function.
        if placed.insert(point.file_offset) {
            let site = Site {
                point,
                upper: 0,
                role: export.names.join(", "),
                found: Some((step, Confidence::Low)),
            };
            probes.push(prober.uprobe("doorbell_by_signal", "doorbell", target, site));
        }
    }
    probes
}
