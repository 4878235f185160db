//! Kernels by number of dispatches.

use std::collections::HashMap;
use std::sync::Arc;

use super::picture::KernelRow;
use super::rate::Rate;
use crate::tables::Fact;
use crate::tally::{Entry, more};

/// Number of kernels that are distinguished. Their addresses come from the traced process, which could invent them.
const MAX_KERNELS: usize = 4096;

/// Counts by kernel.
#[derive(Debug, Default)]
pub struct Kernels {
    all: HashMap<(u32, u64), Counted>,
    /// Dispatches of kernels that are not distinguished, and of runs of several kernels.
    pub others: u64,
}

/// A kernel.
#[derive(Debug, Default)]
struct Counted {
    rate: Rate,
    last_ns: u64,
    /// Name of the kernel at its last dispatch, because an address can be used again.
    name: Option<Arc<str>>,
}

impl Kernels {
    /// Counts a row, if it has dispatches.
    pub fn add(&mut self, fact: &Fact, entry: &Entry) {
        let (object, name) = match fact {
            Fact::Dispatch(row) => (Some(row.kernel_object), &row.kernel),
            Fact::DispatchRun(run) => (run.kernel_object, &run.kernel),
            _ => return,
        };
        let has_room = |key: &(u32, u64)| self.all.len() < MAX_KERNELS || self.all.contains_key(key);
        let key = object.map(|object| (entry.pid, object)).filter(has_room);
        let Some(key) = key else {
            return more(&mut self.others, entry.count);
        };
        let kernel = self.all.entry(key).or_default();
        kernel.rate.add(entry.time_ns, entry.count);
        kernel.last_ns = kernel.last_ns.max(entry.time_ns);
        if kernel.name != *name {
            kernel.name.clone_from(name);
        }
    }

    /// Returns the kernels, the most dispatched first. `comm` returns the name of a process's program.
    pub fn rows(&self, now: u64, comm: impl Fn(u32) -> Option<String>) -> Vec<KernelRow> {
        let kernels = self.all.iter();
        let mut rows: Vec<KernelRow> = kernels
            .map(|(&(pid, kernel_object), kernel)| KernelRow {
                pid,
                comm: comm(pid),
                kernel_object,
                name: kernel.name.as_deref().map(str::to_owned),
                count: kernel.rate.total(),
                per_s: kernel.rate.per_second(now),
                last_age_ns: now.saturating_sub(kernel.last_ns),
            })
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.count), row.pid, row.kernel_object));
        rows
    }
}
