//! Counts by kernel: the number of dispatches, and how long they ran by the GPU's clock.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::tables::{Dispatch, DispatchRun, GpuTime};

/// Number of kernels that are distinguished. Their addresses come from the traced process, which could invent them.
pub(super) const MAX_KERNELS: usize = 65536;

/// A kernel of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Process.
    pub pid: u32,
    /// Address of its descriptor.
    pub kernel_object: u64,
    /// Its name; `None` if unknown.
    pub name: Option<String>,
    /// Dispatches.
    pub count: u64,
    /// Dispatches whose times by the GPU's clock are known.
    pub timed: u64,
    /// How long the timed dispatches ran; `None` if no time is known in nanoseconds.
    pub gpu_ns: Option<GpuNs>,
}

/// How long dispatches of a kernel ran, by the GPU's clock. The rate comes from the process's readings of that clock, and
/// converts the times to ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuNs {
    /// Dispatches whose duration is known.
    pub count: u64,
    /// Sum of the durations, ns.
    pub total: u64,
    /// The shortest duration, ns.
    pub min: u64,
    /// The longest duration, ns.
    pub max: u64,
}

impl GpuNs {
    const NONE: Self = Self {
        count: 0,
        total: 0,
        min: u64::MAX,
        max: 0,
    };

    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }
}

/// Counts kernels.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    /// By process and address: an address that was used again has several kernels.
    by_address: HashMap<(u32, u64), Vec<Named>>,
    count: usize,
    /// Dispatches of kernels beyond the limit, and of runs that do not name a kernel.
    pub(super) others: u64,
}

/// A kernel at an address, with its name if it is known.
#[derive(Clone, Debug)]
struct Named {
    name: Option<Arc<str>>,
    dispatches: u64,
    timed: u64,
    gpu: GpuNs,
}

impl Counter {
    pub(super) fn add(&mut self, dispatch: &Dispatch) {
        match self.named(dispatch.pid, dispatch.kernel_object, dispatch.kernel.as_ref()) {
            Some(named) => named.dispatches += 1,
            None => self.others += 1,
        }
    }

    pub(super) fn add_run(&mut self, run: &DispatchRun) {
        let object = run.kernel_object;
        let named = object.and_then(|object| self.named(run.pid, object, run.kernel.as_ref()));
        match named.map(|named| &mut named.dispatches) {
            Some(sum) => *sum = sum.saturating_add(run.count),
            None => self.others = self.others.saturating_add(run.count),
        }
    }

    pub(super) fn add_time(&mut self, time: &GpuTime) {
        // The dispatch was counted before, here or in `others`.
        if let Some(named) = self.named(time.pid, time.kernel_object, time.kernel.as_ref()) {
            named.timed += 1;
            if let (Some(start), Some(end)) = (time.start_ns, time.end_ns) {
                named.gpu.add(end.saturating_sub(start));
            }
        }
    }

    /// Returns the kernels, the most dispatched first.
    pub(super) fn report(&self) -> Vec<Kernel> {
        let all = self.by_address.iter();
        let mut kernels: Vec<Kernel> = all
            .flat_map(|(key, names)| names.iter().map(move |named| (key, named)))
            .map(|(&(pid, kernel_object), named)| Kernel {
                pid,
                kernel_object,
                name: named.name.as_deref().map(str::to_owned),
                count: named.dispatches,
                timed: named.timed,
                gpu_ns: (named.gpu.count > 0).then_some(named.gpu),
            })
            .collect();
        kernels.sort_by(|a, b| {
            let order = |kernel: &Kernel| (std::cmp::Reverse(kernel.count), kernel.pid, kernel.kernel_object);
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
        });
        kernels
    }

    /// Returns the kernel with this name at this address; `None` if it is beyond the limit.
    fn named(&mut self, pid: u32, kernel_object: u64, name: Option<&Arc<str>>) -> Option<&mut Named> {
        let full = self.count >= MAX_KERNELS;
        let key = (pid, kernel_object);
        if full && !self.by_address.contains_key(&key) {
            return None;
        }
        let names = self.by_address.entry(key).or_default();
        let at = names.iter().position(|named| named.name.as_ref() == name);
        if at.is_none() {
            if full {
                return None;
            }
            self.count += 1;
            names.push(Named {
                name: name.cloned(),
                dispatches: 0,
                timed: 0,
                gpu: GpuNs::NONE,
            });
        }
        match at {
            Some(at) => names.get_mut(at),
            None => names.last_mut(),
        }
    }
}
