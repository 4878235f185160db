//! Queues that programs create for themselves: the exported `hsa_queue_create`.
//!
//! The runtime's own function is behind the API table. A tool that puts queues of its own in front of the runtime's calls that
//! function, too. Only a call of the exported function is the program's.

use super::{Prober, Site, Target};
use crate::{
    inventory::Probe,
    runtime::resolver::{Resolution, ResolverStep},
};
use tracer_core::family::Family;

/// Attaches to the entry and the return of the function.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let Some(create) = &resolution.exports.queue_create else {
        return Vec::new();
    };
    // The return is attached first: an entry without its return would wait for one forever.
    let programs = [("hsa_queue_return", "return from"), ("hsa_queue_enter", "entry of")];
    let probe = |(program, what)| {
        let site = Site {
            role: format!("{what} hsa_queue_create"),
            ..Site::of(create, create.probe, ResolverStep::Export)
        };
        prober.uprobe(program, Family::HsaQueue, target, site)
    };
    programs.map(probe).into()
}
