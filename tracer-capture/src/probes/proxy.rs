//! Doorbells of proxies: the functions that a proxy's signal calls, found in a process that was just given a proxy.

use std::sync::Arc;

use tracer_common::record::PROXY_SITE;

use super::{Prober, Site, api_table};
use crate::{
    confined::{Examine, NotRead, Remote},
    inventory::Probe,
    runtime::{
        library::{Libraries, Runtime},
        resolver::{Argument, Confidence, ResolverStep, SIGNAL_STORE_RELAXED, SIGNAL_STORE_RELEASE},
    },
    target::proc_maps::Mapping,
};
use tracer_core::family::Family;

const FAMILY: Family = Family::Proxy;

/// The virtual functions of a signal that store, with their slots.
const STORES: [(usize, &str); 2] = [
    (SIGNAL_STORE_RELAXED, "StoreRelaxed"),
    (SIGNAL_STORE_RELEASE, "StoreRelease"),
];

/// A function of a runtime that proxies use.
pub struct Place {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// The offset of the function in its file.
    function: u64,
    site: Site,
}

/// Finds the functions that store to the signal whose object is at `object` in a process. Returns their places, and for the other
/// functions the reason why they have none. Functions that have their probes already are omitted.
///
/// # Errors
/// Fails with [`NotRead`] if the process can't be read now.
pub fn places(
    examine: Examine<'_>,
    libraries: &Libraries,
    object: u64,
    mappings: &[Mapping],
) -> Result<(Vec<Place>, Vec<Probe>), NotRead> {
    let (mut places, mut failures) = (Vec::new(), Vec::new());
    let memory = examine.memory();
    for (slot, name) in STORES {
        let role = format!("{name} of a proxy's signal");
        let mut failed = |target: &str, error: &str| {
            failures.push(Probe {
                family: FAMILY,
                target: target.to_owned(),
                role: role.clone(),
                error: Some(error.to_owned()),
                ..Probe::default()
            });
        };
        let Some(function) = function(&memory, object, slot)? else {
            failed("a proxy", "cannot read its functions from the process");
            continue;
        };
        let mapping = mappings.iter().find(|m| (m.start..m.end).contains(&function));
        let runtime = mapping.and_then(|mapping| Some((mapping, libraries.runtime(&mapping.file)?)));
        let Some((mapping, runtime)) = runtime else {
            failed("a proxy", "its functions are not in a known HSA runtime");
            continue;
        };
        // Whatever the process's memory says, a probe is attached only to a function that the library's own classes name.
        let vaddr = mapping
            .bias(&runtime.resolution)
            .map(|bias| function.wrapping_sub(bias));
        let Some(vaddr) = vaddr.filter(|vaddr| runtime.resolution.proxy_stores.contains(vaddr)) else {
            failed(
                &runtime.path,
                "its functions are not functions of the library's queue classes",
            );
            continue;
        };
        let function = function - mapping.start + mapping.offset;
        if runtime.proxies().contains(&function) {
            continue;
        }
        let keep = [Argument::Rdi, Argument::Rsi];
        let points = api_table::points_in(examine, &runtime.file, &[(function, vaddr)], &keep)?;
        let Some(point) = points.into_iter().next().flatten() else {
            failed(&runtime.path, "cannot decode its code");
            continue;
        };
        places.push(Place {
            runtime,
            function,
            site: Site {
                point,
                upper: PROXY_SITE,
                role,
                found: Some((ResolverStep::Process, Confidence::High)),
            },
        });
    }
    Ok((places, failures))
}

/// Attaches to a place, unless it has its probe by now.
pub fn attach(prober: &mut Prober, place: Place) -> Option<Probe> {
    let runtime = &place.runtime;
    if runtime.proxies().contains(&place.function) {
        return None;
    }
    let probe = prober.uprobe("doorbell_by_signal", FAMILY, &runtime.target(), place.site);
    if probe.attached() {
        runtime.proxies().insert(place.function);
    }
    Some(probe)
}

/// Returns the virtual function in a slot of an object's class.
fn function(memory: &Remote<'_>, object: u64, slot: usize) -> Result<Option<u64>, NotRead> {
    if object == 0 {
        return Ok(None);
    }
    match api_table::word(memory, object)? {
        Some(class) => api_table::word(memory, class.wrapping_add(8 * slot as u64)),
        None => Ok(None),
    }
}
