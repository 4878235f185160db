//! Counts by kernel: the number of dispatches, and how long they ran by the GPU's clock.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::GpuTime;
use crate::tally::{Map, more};

/// Number of kernels that are distinguished. Their addresses come from the traced process, which could invent them.
pub(super) const MAX_KERNELS: usize = 65536;

/// A kernel of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// Adds a duration to those that are known.
    pub(crate) fn add_to(known: &mut Option<Self>, ns: u64) {
        known.get_or_insert(Self::NONE).add(ns);
    }

    fn add(&mut self, ns: u64) {
        self.count += 1;
        more(&mut self.total, ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }
}

/// A kernel's name and its counts. The name is set there in the report.
type Named = (Option<Arc<str>>, Kernel);

/// Counts kernels.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    /// By process and address: an address that was used again has several kernels. Most names are compared by their pointers.
    by_address: Map<(u32, u64), Vec<Named>>,
    count: usize,
    /// Dispatches of kernels beyond the limit, and of runs that do not name a kernel.
    pub(super) others: u64,
}

impl Counter {
    /// Adds dispatches of a kernel; `kernel_object` is `None` for dispatches of several kernels.
    pub(super) fn add(&mut self, pid: u32, kernel_object: Option<u64>, name: Option<&Arc<str>>, count: u64) {
        match kernel_object.and_then(|object| self.kernel(pid, object, name)) {
            Some(kernel) => more(&mut kernel.count, count),
            None => more(&mut self.others, count),
        }
    }

    pub(super) fn add_time(&mut self, time: &GpuTime) {
        // The dispatch was counted before, here or in `others`.
        if let Some(kernel) = self.kernel(time.pid, time.kernel_object, time.kernel.as_ref()) {
            kernel.timed += 1;
            if let (Some(start), Some(end)) = (time.start_ns, time.end_ns) {
                GpuNs::add_to(&mut kernel.gpu_ns, end.saturating_sub(start));
            }
        }
    }

    /// Returns the kernels, the most dispatched first.
    pub(super) fn report(self) -> Vec<Kernel> {
        let named = |(name, kernel): Named| Kernel {
            name: name.map(|name| name.as_ref().to_owned()),
            ..kernel
        };
        let mut kernels: Vec<Kernel> = self.by_address.into_values().flatten().map(named).collect();
        kernels.sort_by(|a, b| {
            let order = |kernel: &Kernel| (std::cmp::Reverse(kernel.count), kernel.pid, kernel.kernel_object);
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
        });
        kernels
    }

    /// Returns the kernel with this name at this address; `None` if it is beyond the limit.
    fn kernel(&mut self, pid: u32, kernel_object: u64, name: Option<&Arc<str>>) -> Option<&mut Kernel> {
        let full = self.count >= MAX_KERNELS;
        let key = (pid, kernel_object);
        if full && !self.by_address.contains_key(&key) {
            return None;
        }
        let kernels = self.by_address.entry(key).or_default();
        let known = kernels.iter().position(|(known, _)| known.as_ref() == name);
        if known.is_none() {
            if full {
                return None;
            }
            self.count += 1;
            let kernel = Kernel {
                pid,
                kernel_object,
                name: None,
                count: 0,
                timed: 0,
                gpu_ns: None,
            };
            kernels.push((name.cloned(), kernel));
        }
        let kernel = match known {
            Some(at) => kernels.get_mut(at),
            None => kernels.last_mut(),
        };
        kernel.map(|(_, kernel)| kernel)
    }
}
