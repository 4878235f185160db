//! The dispatches that a profiler says a run had, to compare them with a trace of the same run.

use std::collections::{BTreeMap, BTreeSet};

/// What a dispatch has in a profile and in a trace: its process, kernel, and sizes. Many dispatches may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Process.
    pub pid: u32,
    /// Address of the kernel object, as in the packet.
    pub kernel_object: u64,
    /// Work items of the grid.
    pub grid: [u32; 3],
    /// Work items of a workgroup.
    pub workgroup: [u16; 3],
}

/// The dispatches of some processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The processes that were profiled, also those without dispatches.
    pub processes: BTreeSet<u32>,
    /// How many dispatches have a shape.
    pub dispatches: BTreeMap<Shape, u64>,
    /// Names of kernels, by process and kernel object.
    pub kernels: BTreeMap<(u32, u64), String>,
    /// Dispatches whose process, kernel object or sizes the profile does not name.
    pub unknown: u64,
}

impl Profile {
    /// Adds another profile of the same run.
    pub fn add(&mut self, other: Self) {
        self.processes.extend(other.processes);
        for (shape, count) in other.dispatches {
            let sum = self.dispatches.entry(shape).or_default();
            *sum = sum.saturating_add(count);
        }
        self.kernels.extend(other.kernels);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }
}
