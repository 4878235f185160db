//! Queues that programs create for themselves: the exported `hsa_queue_create`, and `hsa_amd_queue_create` of newer runtimes.
//!
//! The runtime's own function is behind the API table. A tool that puts queues of its own in front of the runtime's calls that
//! function, too. Only a call of the exported function is the program's.

use super::{Prober, Site, Target};
use crate::{
    inventory::Probe,
    runtime::resolver::{ExportSite, Resolution, ResolverStep},
};
use tracer_core::family::Family;

/// The programs.
const PROGRAMS: [&str; 3] = ["hsa_queue_enter", "hsa_queue_enter_described", "hsa_queue_return"];

/// Attaches to the entry and the return of each function.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let [enter, enter_described, back] = PROGRAMS;
    let functions = [
        ("hsa_queue_create", enter, &resolution.exports.queue_create),
        (
            "hsa_amd_queue_create",
            enter_described,
            &resolution.exports.queue_create_described,
        ),
    ];
    let mut probes = Vec::new();
    for (name, enter, export) in functions {
        let Some(export) = export else { continue };
        // The return is attached first: an entry without its return would wait for one forever.
        for (program, what) in [(back, "return from"), (enter, "entry of")] {
            let site = site(export, format!("{what} {name}"));
            probes.push(prober.uprobe(program, Family::HsaQueue, target, site));
        }
    }
    probes
}

fn site(export: &ExportSite, role: String) -> Site {
    Site {
        role,
        ..Site::of(export, export.probe, ResolverStep::Export)
    }
}
