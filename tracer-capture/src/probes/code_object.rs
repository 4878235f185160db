//! Changes of the runtime's list of code objects: the function that the runtime calls around each change.

use super::{Prober, Site, Target};
use crate::{inventory::Probe, runtime::resolver::Resolution};
use tracer_core::family::Family;

/// Attaches to this function, if the resolver found it.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Option<Probe> {
    let site = resolution.code_objects?;
    let site = Site {
        point: site.probe,
        upper: site.debug_displacement.cast_unsigned(),
        role: "_loader_debug_state".to_owned(),
        found: Some((site.step, site.confidence)),
    };
    Some(prober.uprobe("code_object", Family::CodeObject, target, site))
}
