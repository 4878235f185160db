//! The cost of a uprobe here and now, by the instruction that it is attached to.
//!
//! A program that only counts is attached to functions of this very binary, each a few instructions long; they are called with and
//! without it. The difference is the least that each doorbell pays.

mod doorbell;
mod sample;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    hint::black_box,
    io,
    os::fd::AsFd,
};

use aya::maps::{MapData, PerCpuArray};

use serde::Serialize;
use tracer_core::family::Family;

pub use doorbell::{DoorbellCost, measure as measure_doorbell};
use sample::Sample;

use crate::{
    probes::{Prober, Site, Target},
    runtime::resolver::{InstructionKind, ProbePoint},
    sys,
    target::proc_maps,
};

/// The hits that the program counted, on each CPU.
pub type Hits = PerCpuArray<MapData, u64>;

/// Batches of calls. The fastest batch counts, because every disturbance makes a batch slower.
const BATCHES: u64 = 200;
/// Batches at the end of a recording, which should not take long.
const FEW_BATCHES: u64 = 20;
/// Calls in a batch. That is short enough that on a busy machine some batches are not preempted: 19 us per single-stepped hit here, as
/// when each call is timed separately, where batches of 1000 showed 19 to 87 us, depending on the load.
const BATCH: u64 = 100;

/// The cost of a uprobe here. It is a measurement of this machine at this moment, not a property of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Why nothing was measured; `None` if the measurement succeeded.
    pub error: Option<String>,
    /// Calls of each function.
    pub calls: u64,
    /// The cost by kind of instruction.
    pub kinds: Vec<Kind>,
}

/// The cost at one kind of instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// The instruction.
    pub instruction: &'static str,
    /// Whether the kernel emulates it; otherwise the kernel single-steps a copy.
    pub emulated: bool,
    /// ns of a call with the probe minus ns of a call without it; `None` if it was not measured.
    pub ns: Option<u64>,
    /// Why it was not measured.
    pub error: Option<String>,
}

impl Cost {
    /// Returns the ns of a hit at an instruction of this kind, if they were measured.
    #[must_use]
    pub fn of(&self, kind: InstructionKind) -> Option<u64> {
        let word = match kind {
            InstructionKind::Other => "endbr64".to_owned(),
            // The kernel emulates a direct jump with the same function as a conditional one.
            InstructionKind::Jmp => "jcc".to_owned(),
            other => other.to_string(),
        };
        self.kinds.iter().find(|k| k.instruction == word)?.ns
    }

    /// Returns whether uprobes work here: one was attached, and saw every call.
    #[must_use]
    pub fn works(&self) -> bool {
        self.kinds.iter().any(|kind| kind.ns.is_some())
    }

    /// Returns that nothing was measured.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// Measures the cost. The probes stay attached until `prober` is dropped.
pub fn measure(prober: &mut Prober, hits: Option<&Hits>) -> Cost {
    let Some(hits) = hits else {
        return Cost::failed("the eBPF object has no map COST_HITS; rebuild with `cargo xtask build`");
    };
    let file = match own_file() {
        Ok(file) => file,
        Err(error) => return Cost::failed(format!("this program's file can't be opened: {error}")),
    };
    let kind = |sample: Sample| {
        let measured = difference(prober, hits, &file, &sample, BATCHES);
        Kind {
            instruction: sample.instruction,
            emulated: sample.kind.is_emulated(),
            ns: measured.as_ref().ok().copied(),
            error: measured.err(),
        }
    };
    let kinds: Vec<Kind> = sample::all().into_iter().map(kind).collect();
    let none = || "there are no samples for this architecture".to_owned();
    Cost {
        error: kinds.is_empty().then(none),
        calls: BATCHES * BATCH,
        kinds,
    }
}

/// Measures the cost at the instructions that probes replaced, by the names of [`InstructionKind`]: ns of a hit. What cannot be
/// measured is left out.
pub fn of_instructions(prober: &mut Prober, names: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let (Ok(hits), Ok(file)) = (prober.take_map::<Hits>("COST_HITS"), own_file()) else {
        return BTreeMap::new();
    };
    // The kernel emulates a direct jump with the same function as a conditional one.
    let (jcc, jmp) = (InstructionKind::Jcc.to_string(), InstructionKind::Jmp.to_string());
    let is_wanted = |name: &String| names.contains(name) || *name == jcc && names.contains(&jmp);
    let mut found = BTreeMap::new();
    for sample in sample::all() {
        let name = sample.kind.to_string();
        if is_wanted(&name) && !found.contains_key(&name) {
            let ns = difference(prober, &hits, &file, &sample, FEW_BATCHES);
            found.extend(ns.ok().map(|ns| (name, ns)));
        }
    }
    if let Some(&ns) = found.get(&jcc) {
        found.insert(jmp, ns);
    }
    found
}

fn own_file() -> io::Result<File> {
    File::open("/proc/self/exe")
}

fn difference(prober: &mut Prober, hits: &Hits, file: &File, sample: &Sample, batches: u64) -> Result<u64, String> {
    let calls = batches * BATCH;
    let vaddr = sample.function as usize as u64;
    let file_offset = file_offset(vaddr).map_err(|e| format!("its place in the file is not known: {e}"))?;
    let without = fastest(sample.function, batches);
    let site = Site {
        point: ProbePoint {
            function: vaddr,
            vaddr,
            file_offset,
            instruction: sample.kind,
        },
        upper: 0,
        role: sample.instruction.to_owned(),
        found: None,
    };
    let target = Target {
        file: file.as_fd(),
        path: "/proc/self/exe",
    };
    let probe = prober.uprobe("cost", Family::Other, &target, site);
    if let Some(error) = probe.error {
        return Err(error);
    }
    let before = count(hits)?;
    let with = fastest(sample.function, batches);
    let seen = count(hits)? - before;
    // Another `tracer doctor` at the same time has probes and counts of its own; its calls hit these probes too.
    if seen < calls {
        return Err(format!("the probe saw {seen} of {calls} calls"));
    }
    Ok(with.saturating_sub(without) / BATCH)
}

/// Returns the ns of the fastest batch.
fn fastest(function: sample::Function, batches: u64) -> u64 {
    let batch = || {
        let began = sys::monotonic_ns();
        for _ in 0..BATCH {
            black_box(function)();
        }
        sys::monotonic_ns() - began
    };
    (0..batches).map(|_| batch()).min().unwrap_or(0)
}

fn count(hits: &Hits) -> Result<u64, String> {
    let values = hits.get(&0, 0).map_err(|e| format!("hits can't be counted: {e}"))?;
    Ok(values.iter().sum())
}

/// Returns the offset of an address of this process in its program's file.
fn file_offset(address: u64) -> io::Result<u64> {
    let mappings = proc_maps::executable(std::process::id())?;
    let mapping = mappings.iter().find(|m| (m.start..m.end).contains(&address));
    let mapping = mapping.ok_or_else(|| io::Error::other("no file is mapped at this address"))?;
    Ok(address - mapping.start + mapping.offset)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::runtime::resolver::{Argument, site_in_function};

    /// The instruction that the kernel will find at each place is the one in the table, by the resolver's own judgement.
    #[test]
    fn every_sample_begins_with_its_instruction() {
        let file = File::open("/proc/self/exe").unwrap();
        for sample in sample::all() {
            let mut code = [0; 8];
            let offset = file_offset(sample.function as usize as u64).unwrap();
            file.read_exact_at(&mut code, offset).unwrap();
            let site = site_in_function(&code, 0, &[Argument::Rdi]).unwrap();
            let kind = if site.offset == 0 {
                site.instruction
            } else {
                InstructionKind::Other
            };
            assert_eq!(kind, sample.kind, "{}", sample.instruction);
            (sample.function)();
        }
    }

    #[test]
    fn a_cost_is_known_by_kind() {
        let kind = |instruction, ns| Kind {
            instruction,
            emulated: false,
            ns,
            error: None,
        };
        let cost = Cost {
            kinds: vec![kind("push", Some(800)), kind("endbr64", Some(9_000)), kind("nop", None)],
            ..Cost::default()
        };
        assert_eq!(cost.of(InstructionKind::Push), Some(800));
        assert_eq!(cost.of(InstructionKind::Other), Some(9_000));
        assert_eq!(cost.of(InstructionKind::Nop), None);
        assert!(cost.works());
        assert!(!Cost::failed("no").works());
    }
}
