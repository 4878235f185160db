//! Kernels by how often they are dispatched.

use std::collections::HashMap;
use std::sync::Arc;

use super::picture::KernelRow;
use super::rate::Rate;
use crate::fact::Dispatch;

/// Kernels that are told apart. Their addresses come from the traced process, which could invent them.
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
    /// Of its last dispatch: an address can be used again.
    name: Option<Arc<str>>,
}

impl Kernels {
    pub fn add(&mut self, dispatch: &Dispatch) {
        let key = (dispatch.pid, dispatch.kernel_object);
        if self.all.len() >= MAX_KERNELS && !self.all.contains_key(&key) {
            self.others += 1;
            return;
        }
        let kernel = self.all.entry(key).or_default();
        kernel.rate.add(dispatch.time_ns, 1);
        kernel.last_ns = kernel.last_ns.max(dispatch.time_ns);
        if kernel.name != dispatch.kernel {
            kernel.name.clone_from(&dispatch.kernel);
        }
    }

    /// Dispatches of kernels that are not told apart.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// The most dispatched first.
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
