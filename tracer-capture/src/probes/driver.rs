//! Functions of the kernel driver: which of them this kernel has, and their names.
//!
//! Each function is optional: compilers inline some and rename others (`.constprop.0`, `.isra.0`), and versions differ. tracer
//! probes the functions that the symbol table has, never those that a version should have.

mod arguments;

use std::{collections::BTreeMap, path::Path};

use aya::maps::{HashMap, MapData};
use tracer_common::driver_plan::DriverPlan;

use super::{Plain, Prober};
use crate::{
    inventory::Probe,
    kernel::btf::Btf,
    kernel::kallsyms::{self, Kallsyms, Presence, Symbol},
};
use tracer_core::family::Family;

/// The functions by their names in the sources (drivers/gpu/drm/amd/amdkfd, amdgpu/mes_v1*.c), as patterns for
/// [`Kallsyms::matching`]. A `*` stands for versions, and for variants of which a kernel has one or another.
pub const FUNCTIONS: [&str; 23] = [
    "kfd_ioctl",
    "kfd_ioctl_create_queue",
    "kfd_ioctl_destroy_queue",
    "kfd_ioctl_update_queue",
    "pqm_create_queue",
    "pqm_destroy_queue",
    "create_queue_cpsch",
    "create_queue_nocpsch",
    "destroy_queue_cpsch",
    "destroy_queue_nocpsch",
    "map_queues_cpsch",
    "unmap_queues_cpsch",
    "pm_send_runlist",
    "add_queue_mes",
    "remove_queue_mes*",
    "mes_v*_add_hw_queue",
    "mes_v*_remove_hw_queue",
    "evict_process_queues_*",
    "restore_process_queues_*",
    "kfd_process_evict_queues",
    "kfd_process_restore_queues",
    "amdgpu_cs_ioctl",
    "amdgpu_userq_ioctl",
];

/// The programs at the entry and the return of each function.
pub const PROGRAMS: [&str; 2] = ["driver_enter", "driver_return"];

/// Returns whether the driver is there, as a module or as a part of the kernel.
#[must_use]
pub fn is_there() -> bool {
    Path::new("/sys/module/amdgpu").exists()
}

/// The names of probed functions by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_address: BTreeMap<u64, String>,
    /// The names of queue types in the arguments of a function, where the kernel has names for them.
    queue_types: BTreeMap<String, Vec<(u32, String)>>,
}

/// The map of plans that the programs use.
pub type Plans = HashMap<MapData, u64, Plain<DriverPlan>>;

/// The length of an `endbr64` and what may stand around it: a probe at a function's entry can be reported a little behind the
/// function's symbol.
const ENTRY_BYTES: u64 = 16;

impl Functions {
    /// Returns the function that contains a probe at this address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let (start, name) = self.by_address.range(..=address).next_back()?;
        (address - start < ENTRY_BYTES).then_some(name)
    }

    /// Returns the name of a queue type in the arguments of the function that contains a probe at this address.
    #[must_use]
    pub fn queue_type(&self, address: u64, value: u64) -> String {
        let types = self.name(address).and_then(|name| self.queue_types.get(name));
        arguments::type_name(types.map_or(&[], Vec::as_slice), value)
    }
}

/// Attaches to every function that the kernel has. Functions that it lacks are not listed as probes, because none of them is
/// required. `described` has the types of amdgpu, and takes the plans
/// for arguments; without it, arguments are unknown.
pub fn attach(
    prober: &mut Prober,
    symbols: &Kallsyms,
    mut described: Option<(&Btf, &mut Plans)>,
) -> (Functions, Vec<Probe>) {
    let mut functions = Functions::default();
    let matching = FUNCTIONS.iter().flat_map(|pattern| symbols.matching(pattern));
    let found: Vec<(&str, Presence<'_>)> = matching
        .map(|(name, clones)| (name, kallsyms::presence(clones)))
        .collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let known = described
        .as_ref()
        .map(|(btf, _)| arguments::plans(btf, &names))
        .unwrap_or_default();
    // Whatever is attached finds its plan.
    for (function, symbol) in found.iter().filter_map(single) {
        // A clone has other arguments than the function in the sources.
        let plan = known.get(function).filter(|_| symbol.name == function);
        if let (Some(plan), Some(address), Some((_, plans))) = (plan, symbol.address, &mut described) {
            // Without its plan, the arguments of the function are unknown.
            let added = plans.insert(address, Plain(plan.plan), 0);
            if let Err(error) = added {
                log::info!("the arguments of {function} are not read: {error}");
            }
            functions.queue_types.insert(function.to_owned(), plan.types.clone());
        }
    }
    let addresses = found.iter().filter_map(|found| single(found)?.1.address);
    let together = attach_together(prober, &addresses.collect::<Vec<u64>>());
    let mut probes = Vec::new();
    for (function, presence) in found {
        match presence {
            Presence::Absent => {}
            Presence::One(symbol) => {
                let probe = match symbol.address.filter(|_| together) {
                    Some(_) => probe(function, symbol),
                    None => attach_one(prober, function, symbol),
                };
                if let (true, Some(address)) = (probe.attached(), symbol.address) {
                    functions.by_address.insert(address, function.to_owned());
                }
                probes.push(probe);
            }
            // A name can't distinguish several symbols that share it, and a probe would be in any of them.
            Presence::Ambiguous(symbols) => probes.push(Probe {
                error: Some(format!(
                    "{} functions have this name, or it is a part of one",
                    symbols.len()
                )),
                ..probe(function, &symbols[0])
            }),
        }
    }
    (functions, probes)
}

/// Returns the function if it can be probed.
fn single<'a>((name, presence): &(&'a str, Presence<'a>)) -> Option<(&'a str, &'a Symbol)> {
    match presence {
        Presence::One(symbol) => Some((*name, *symbol)),
        Presence::Absent | Presence::Ambiguous(_) => None,
    }
}

/// Attaches to the functions at these addresses, by one link for their entries and one for their returns; returns whether it did. The
/// kernel removes two links in the time in which it removes two of some sixty perf events.
fn attach_together(prober: &mut Prober, addresses: &[u64]) -> bool {
    if addresses.is_empty() {
        return false;
    }
    let attached = prober.kernel_functions(PROGRAMS, addresses);
    if let Err(error) = &attached {
        log::info!("functions of the kernel driver are probed one by one: {error}");
    }
    attached.is_ok()
}

fn attach_one(prober: &mut Prober, function: &str, symbol: &Symbol) -> Probe {
    if symbol.address.is_none() {
        return Probe {
            error: Some("the kernel hides addresses from this process (kernel.kptr_restrict)".to_owned()),
            ..probe(function, symbol)
        };
    }
    // The return is attached first: an entry without its return would wait for one forever.
    let [enter, leave] = PROGRAMS;
    let error = prober
        .kprobe(leave, &symbol.name)
        .and_then(|()| prober.kprobe(enter, &symbol.name))
        .err();
    Probe {
        error: error.map(|e| e.to_string()),
        ..probe(function, symbol)
    }
}

/// Returns the probe without an error.
fn probe(function: &str, symbol: &Symbol) -> Probe {
    Probe {
        family: Family::Driver,
        target: symbol.name.clone(),
        role: function.to_owned(),
        step: symbol.module.clone(),
        ..Probe::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_a_little_behind_its_symbol_stands_in_it() {
        let functions = Functions {
            by_address: BTreeMap::from([(0x1000, "a".to_owned()), (0x2000, "b".to_owned())]),
            queue_types: BTreeMap::new(),
        };
        assert_eq!(functions.name(0x1000), Some("a"));
        assert_eq!(functions.name(0x1004), Some("a"));
        assert_eq!(functions.name(0x1010), None);
        assert_eq!(functions.name(0x2004), Some("b"));
        assert_eq!(functions.name(0xfff), None);
        assert_eq!(functions.name(0), None);
    }
}
