//! Queues that programs make for themselves: the exported `hsa_queue_create`.
//!
//! Behind the API table there is the runtime's own function. A tool that puts queues of its own in front of the runtime's
//! calls it, too: only the exported one is the program's.

use super::{Prober, Site, Target};
use crate::{
    inventory::Probe,
    resolver::{Resolution, ResolverStep},
};

/// Attaches to its entry and its return.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let Some(create) = &resolution.exports.queue_create else {
        return Vec::new();
    };
    // The return first: an entry without it would wait for one for good.
    let programs = [("hsa_queue_return", "return from"), ("hsa_queue_enter", "entry of")];
    let probe = |(program, what)| {
        let site = Site {
            point: create.probe,
            upper: 0,
            role: format!("{what} hsa_queue_create"),
            found: Some((ResolverStep::Export, create.confidence)),
        };
        prober.uprobe(program, "hsa_queue", target, site)
    };
    programs.map(probe).into()
}
