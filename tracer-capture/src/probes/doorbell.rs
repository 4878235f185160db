//! AQL doorbells: the functions of `AqlQueue` that the resolver found.

use super::{Prober, Site, Target};
use crate::{inventory::Probe, resolver::Resolution};

/// Attaches to every doorbell function.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let sites = resolution.doorbells.iter();
    sites
        .map(|site| {
            let site = Site {
                point: site.probe,
                upper: i32::from(site.signal_offset) as u32,
                role: site.role.to_string(),
                step: Some(site.step.to_string()),
            };
            prober.uprobe("doorbell", "doorbell", target, site)
        })
        .collect()
}
