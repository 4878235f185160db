//! Executable mappings, and the entry of `hsa_init`: where processes are held.

use super::{Prober, Site, Target, twins};
use crate::{
    inventory::Probe,
    resolver::{Resolution, ResolverStep},
};

/// Attaches the mmap events.
pub fn attach(prober: &mut Prober, twins: bool) -> Vec<Probe> {
    twins::attach(
        prober,
        twins,
        "mapping",
        [
            ["mmap_enter", "mmap_enter_twin", "sys_enter_mmap"],
            ["mmap_exit", "mmap_exit_twin", "sys_exit_mmap"],
        ],
    )
}

/// Attaches to `hsa_init`, by whose entry the library's API table is filled.
pub fn attach_init(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Option<Probe> {
    let init = resolution.exports.init.as_ref()?;
    let site = Site {
        point: init.probe,
        upper: 0,
        role: "hsa_init".to_owned(),
        found: Some((ResolverStep::Export, init.confidence)),
    };
    Some(prober.uprobe("runtime_init", "mapping", target, site))
}
