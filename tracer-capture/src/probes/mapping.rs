//! Executable mappings, and the entry of `hsa_init`: where processes are held.

use super::{Prober, Site, Target};
use crate::{inventory::Probe, resolver::Resolution};

/// Attaches the mmap events.
pub fn attach(prober: &mut Prober) -> Vec<Probe> {
    vec![
        prober.tracepoint("mmap_enter", "mapping", "syscalls", "sys_enter_mmap"),
        prober.tracepoint("mmap_exit", "mapping", "syscalls", "sys_exit_mmap"),
    ]
}

/// Attaches to `hsa_init`, by whose entry the library's API table is filled.
pub fn attach_init(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Option<Probe> {
    let init = resolution.exports.init.as_ref()?;
    let site = Site {
        point: init.probe,
        upper: 0,
        role: "hsa_init".to_owned(),
        step: None,
    };
    Some(prober.uprobe("runtime_init", "mapping", target, site))
}
