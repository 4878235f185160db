//! AQL doorbells: the functions of `AqlQueue` that the resolver found, or, as a last resort, exported functions.

use std::collections::BTreeSet;

use super::{Prober, Site, Target, api_table::Process};
use crate::{
    confined::NotRead,
    inventory::Probe,
    runtime::resolver::{Argument, Confidence, Resolution, ResolverStep},
};
use tracer_core::family::Family;

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
            prober.uprobe("doorbell", Family::Doorbell, target, site)
        })
        .collect()
}

/// Returns the warning about what stays unseen with [`attach_last_resort`], for the library of that path.
#[must_use]
pub fn unseen_by_last_resort(path: &str) -> String {
    format!(
        "{path}: its doorbell functions were not found (see `tracer doctor --library`); doorbells are seen where a program \
         calls hsa_signal_store_*, and those that the runtime rings itself (copies and fills by kernels) are not"
    )
}

/// Returns the sites in the exported functions that store to signals, if no doorbell function was found.
///
/// The functions behind the API table of a process are those that the runtime calls itself, too, and the kernel can emulate their
/// first instructions. Either all of them are probed there or none: a tool that stands in between may call one from within another,
/// and a doorbell would count twice.
///
/// # Errors
/// Fails with [`NotRead`] if the process can't be read now.
pub fn last_resort(resolution: &Resolution, process: Option<&Process<'_>>) -> Result<Vec<Site>, NotRead> {
    let exports = resolution.last_resort();
    let behind = process.map(|process| process.behind(exports, &[Argument::Rdi, Argument::Rsi]));
    let behind = behind.transpose()?;
    let (points, step) = match behind.and_then(|points| points.into_iter().collect::<Option<Vec<_>>>()) {
        Some(points) => (points, ResolverStep::ApiTable),
        None => (
            exports.iter().map(|export| export.probe).collect(),
            ResolverStep::Export,
        ),
    };
    let mut placed = BTreeSet::new();
    // Several names may share one function.
    let once = exports
        .iter()
        .zip(points)
        .filter(|(_, point)| placed.insert(point.file_offset));
    let sites = once.map(|(export, point)| Site {
        found: Some((step, Confidence::Low)),
        ..Site::of(export, point, step)
    });
    Ok(sites.collect())
}

/// Attaches to the sites that [`last_resort`] found.
pub fn attach_last_resort(prober: &mut Prober, target: &Target<'_>, sites: Vec<Site>) -> Vec<Probe> {
    let probe = |site| prober.uprobe("doorbell_by_signal", Family::Doorbell, target, site);
    sites.into_iter().map(probe).collect()
}
