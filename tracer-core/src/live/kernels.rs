//! Kernels by number of dispatches.

use std::collections::HashMap;
use std::sync::Arc;

use super::picture::KernelRow;
use super::rate::Rate;
use crate::tables::{Dispatch, DispatchRun};

/// Number of kernels that are distinguished. Their addresses come from the traced process, which could invent them.
const MAX_KERNELS: usize = 4096;

/// Counts by kernel.
#[derive(Debug, Default)]
pub struct Kernels {
    all: HashMap<(u32, u64), Counted>,
    others: u64,
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
    pub fn add(&mut self, dispatch: &Dispatch) {
        let key = (dispatch.pid, dispatch.kernel_object);
        self.count(key, dispatch.kernel.as_ref(), 1, dispatch.time_ns);
    }

    pub fn add_run(&mut self, run: &DispatchRun) {
        match run.kernel_object {
            Some(object) => self.count((run.pid, object), run.kernel.as_ref(), run.count, run.end_ns),
            None => self.others = self.others.saturating_add(run.count),
        }
    }

    fn count(&mut self, key: (u32, u64), name: Option<&Arc<str>>, count: u64, time_ns: u64) {
        if self.all.len() >= MAX_KERNELS && !self.all.contains_key(&key) {
            self.others = self.others.saturating_add(count);
            return;
        }
        let kernel = self.all.entry(key).or_default();
        kernel.rate.add(time_ns, count);
        kernel.last_ns = kernel.last_ns.max(time_ns);
        if kernel.name.as_ref() != name {
            kernel.name = name.cloned();
        }
    }

    /// Returns the dispatches of kernels that are not distinguished, and of runs of several kernels.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Returns the kernels, the most dispatched first.
    pub fn rows(&self, now: u64) -> Vec<KernelRow> {
        let mut rows: Vec<KernelRow> = self
            .all
            .iter()
            .map(|(&(pid, kernel_object), kernel)| KernelRow {
                pid,
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
