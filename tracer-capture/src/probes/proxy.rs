//! Doorbells of proxies: the functions that a proxy's signal calls, found in a process that was just given one.

use tracer_common::record::PROXY_SITE;

use super::{Prober, Site, Target, api_table};
use crate::{
    inventory::Probe,
    library::Libraries,
    proc_maps::Mapping,
    resolver::{Argument, Confidence, ResolverStep, SIGNAL_STORE_RELAXED, SIGNAL_STORE_RELEASE},
    sys,
};

/// The family's name.
pub const FAMILY: &str = "proxy";

/// The virtual functions of a signal that store, with their slots.
const STORES: [(usize, &str); 2] = [
    (SIGNAL_STORE_RELAXED, "StoreRelaxed"),
    (SIGNAL_STORE_RELEASE, "StoreRelease"),
];

/// Attaches to what stores to the signal whose object is at `object` in process `pid`. What is there already is left out.
pub fn attach(
    prober: &mut Prober,
    libraries: &mut Libraries,
    (pid, object): (u32, u64),
    mappings: &[Mapping],
) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (slot, name) in STORES {
        let role = format!("{name} of a proxy's signal");
        let failed = |target: &str, error: &str| Probe {
            family: FAMILY,
            target: target.to_owned(),
            role: role.clone(),
            error: Some(error.to_owned()),
            ..Probe::default()
        };
        let Some(function) = function(pid, object, slot) else {
            probes.push(failed("a proxy", "its functions can't be read from the process"));
            continue;
        };
        let mapping = mappings.iter().find(|m| (m.start..m.end).contains(&function));
        let runtime = mapping.and_then(|mapping| Some((mapping, libraries.runtime(&mapping.file)?)));
        let Some((mapping, runtime)) = runtime else {
            probes.push(failed("a proxy", "its functions are in no HSA runtime that is known"));
            continue;
        };
        // Whatever the process's memory says: a probe goes only into what the library's own classes name.
        let vaddr = mapping
            .bias(&runtime.resolution)
            .map(|bias| function.wrapping_sub(bias));
        let Some(vaddr) = vaddr.filter(|vaddr| runtime.resolution.proxy_stores.contains(vaddr)) else {
            probes.push(failed(&runtime.path, "its functions are none of the library's queues"));
            continue;
        };
        let file_offset = function - mapping.start + mapping.offset;
        if runtime.proxies.contains(&file_offset) {
            continue;
        }
        let target = Target {
            file: &runtime.file,
            path: &runtime.path,
        };
        let keep = [Argument::Rdi, Argument::Rsi];
        let Some(point) = api_table::point_in(&target, vaddr, file_offset, &keep) else {
            probes.push(failed(target.path, "its code can't be decoded"));
            continue;
        };
        let site = Site {
            point,
            upper: PROXY_SITE,
            role,
            found: Some((ResolverStep::Process, Confidence::High)),
        };
        let probe = prober.uprobe("doorbell_by_signal", FAMILY, &target, site);
        if probe.attached() {
            runtime.proxies.insert(file_offset);
        }
        probes.push(probe);
    }
    probes
}

/// The virtual function in a slot of an object's class.
fn function(pid: u32, object: u64, slot: usize) -> Option<u64> {
    let class = sys::read_u64(pid, object).ok().filter(|_| object != 0)?;
    sys::read_u64(pid, class.wrapping_add(8 * slot as u64)).ok()
}
