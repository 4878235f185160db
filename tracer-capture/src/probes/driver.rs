//! Functions of the kernel driver: which of them this kernel has, under which names.
//!
//! Each is optional: compilers inline some and rename others (`.constprop.0`, `.isra.0`), and versions differ. What is
//! probed is what the symbol table has, never what a version should have.

use std::collections::BTreeMap;

use super::Prober;
use crate::{
    inventory::Probe,
    kallsyms::{Kallsyms, Symbol},
};

/// The functions, by their names in the sources (drivers/gpu/drm/amd/amdkfd, amdgpu/mes_v1*.c).
const FUNCTIONS: [&str; 30] = [
    "kfd_ioctl",
    "kfd_ioctl_create_queue",
    "kfd_ioctl_destroy_queue",
    "kfd_ioctl_update_queue",
    "create_queue_cpsch",
    "create_queue_nocpsch",
    "destroy_queue_cpsch",
    "destroy_queue_nocpsch",
    "map_queues_cpsch",
    "unmap_queues_cpsch",
    "pm_send_runlist",
    "add_queue_mes",
    "remove_queue_mes",
    "remove_queue_mes_on_reset_option",
    "mes_v10_1_add_hw_queue",
    "mes_v10_1_remove_hw_queue",
    "mes_v11_0_add_hw_queue",
    "mes_v11_0_remove_hw_queue",
    "mes_v12_0_add_hw_queue",
    "mes_v12_0_remove_hw_queue",
    "mes_v12_1_add_hw_queue",
    "mes_v12_1_remove_hw_queue",
    "evict_process_queues_cpsch",
    "evict_process_queues_nocpsch",
    "restore_process_queues_cpsch",
    "restore_process_queues_nocpsch",
    "kfd_process_evict_queues",
    "kfd_process_restore_queues",
    "amdgpu_cs_ioctl",
    "amdgpu_userq_ioctl",
];

/// Whether a function of this base name is probed.
#[must_use]
pub fn is_wanted(base: &str) -> bool {
    FUNCTIONS.contains(&base)
}

/// Names of probed functions by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_address: BTreeMap<u64, &'static str>,
}

/// An `endbr64` and what may stand around it: a probe at a function's entry can be told as lying a little behind its
/// symbol.
const ENTRY_BYTES: u64 = 16;

impl Functions {
    /// The function that a probe at this address stands in.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&'static str> {
        let (start, name) = self.by_address.range(..=address).next_back()?;
        (address - start < ENTRY_BYTES).then_some(*name)
    }
}

/// Attaches to every function that the kernel has. Those that it does not have are no probes: nobody misses them.
pub fn attach(prober: &mut Prober, symbols: &Kallsyms) -> (Functions, Vec<Probe>) {
    let mut functions = Functions::default();
    let mut probes = Vec::new();
    for function in FUNCTIONS {
        // Several symbols of one name can't be told apart by it, and a probe would stand in any of them.
        let [symbol] = symbols.find(function) else { continue };
        let probe = attach_one(prober, function, symbol);
        if probe.attached() {
            functions.by_address.insert(symbol.address, function);
        }
        probes.push(probe);
    }
    (functions, probes)
}

fn attach_one(prober: &mut Prober, function: &'static str, symbol: &Symbol) -> Probe {
    // The return first: an entry without it would wait for one for good.
    let error = prober
        .kprobe("driver_return", &symbol.name)
        .and_then(|()| prober.kprobe("driver_enter", &symbol.name))
        .err();
    Probe {
        family: "driver",
        target: symbol.name.clone(),
        role: function.to_owned(),
        file_offset: None,
        instruction: None,
        step: symbol.module.clone(),
        error: error.map(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_a_little_behind_its_symbol_stands_in_it() {
        let functions = Functions {
            by_address: BTreeMap::from([(0x1000, "a"), (0x2000, "b")]),
        };
        assert_eq!(functions.name(0x1000), Some("a"));
        assert_eq!(functions.name(0x1004), Some("a"));
        assert_eq!(functions.name(0x1010), None);
        assert_eq!(functions.name(0x2004), Some("b"));
        assert_eq!(functions.name(0xfff), None);
        assert_eq!(functions.name(0), None);
    }
}
