//! Rows by kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Extent, Range};
use crate::summary::GpuNs;
use crate::tables::{self, Dispatch, DispatchRun, GpuTime, Path};
use crate::tally::{Histogram, Map, Stats, more};

/// Number of kernels that are distinguished. Names and addresses come from the traced process, which could invent them.
const MAX_KERNELS: usize = 65_536;

/// The dispatches of one kernel: those with its name, in all processes; without a name, those with its address in a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Kernel {
    /// Name, demangled; `None` if unknown.
    pub name: Option<String>,
    /// Address of the descriptor, if the name is unknown.
    pub kernel_object: Option<u64>,
    /// Dispatches.
    pub count: u64,
    /// Dispatches by path, without paths that none took.
    pub by_path: BTreeMap<Path, u64>,
    /// Queues, as in `queues.queue`.
    pub queues: BTreeSet<u32>,
    /// Work items; `None` if only runs were recorded.
    pub grid: Option<Extent>,
    /// Work items of a workgroup; `None` in the same case.
    pub workgroup: Option<Extent>,
    /// Group memory (LDS) of a workgroup as dispatched, bytes.
    pub lds_bytes: Option<Range>,
    /// Private memory (scratch) of a work item as dispatched, bytes.
    pub scratch_bytes: Option<Range>,
    /// What its code objects say.
    pub registers: Registers,
    /// Dispatches whose times by the GPU's clock are known.
    pub timed: u64,
    /// How long they ran; `None` if no time is known in nanoseconds.
    pub gpu_ns: Option<GpuNs>,
    /// Time from the entry of the outermost recorded API call to the doorbell, with the cost of the probes in it; `None` if calls
    /// were not recorded.
    pub launch_ns: Option<Stats>,
}

/// Registers and arguments of a kernel, in the code objects that were loaded; `None` if they do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Registers {
    /// Vector registers of a work item.
    pub vgprs: Option<Range>,
    /// Accumulation vector registers of a work item.
    pub agprs: Option<Range>,
    /// Scalar registers of a wave.
    pub sgprs: Option<Range>,
    /// Work items of a wave.
    pub wavefront: Option<Range>,
    /// Bytes of the arguments.
    pub kernarg_bytes: Option<Range>,
}

/// What is known of an address in a process.
#[derive(Debug, Default)]
struct Address {
    /// The newest kernel that was loaded there.
    loaded: Registers,
    /// Rows of the kernels that were dispatched there, by name: an address can be used again.
    rows: Vec<(Option<Arc<str>>, usize)>,
    /// The row that already has `loaded`.
    merged: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    rows: Vec<(Kernel, Histogram)>,
    by_name: Map<Arc<str>, usize>,
    addresses: Map<(u32, u64), Address>,
    others: u64,
}

impl Counter {
    /// Notes a kernel of a code object.
    pub(super) fn loaded(&mut self, kernel: &tables::Kernel) {
        let key = (kernel.pid, kernel.kernel_object);
        if self.addresses.len() >= MAX_KERNELS && !self.addresses.contains_key(&key) {
            return;
        }
        let address = self.addresses.entry(key).or_default();
        let mut loaded = Registers::default();
        Range::add_known(&mut loaded.vgprs, kernel.vgprs);
        Range::add_known(&mut loaded.agprs, kernel.agprs);
        Range::add_known(&mut loaded.sgprs, kernel.sgprs);
        Range::add_known(&mut loaded.wavefront, kernel.wavefront);
        Range::add_known(&mut loaded.kernarg_bytes, kernel.kernarg_bytes);
        address.loaded = loaded;
        address.merged = None;
    }

    /// Adds a dispatch. Returns whether it is the first one of its kernel.
    pub(super) fn add(&mut self, dispatch: &Dispatch, launch_ns: Option<u64>) -> bool {
        let Some((kernel, launches)) = self.row(dispatch.pid, dispatch.kernel_object, dispatch.kernel.as_ref()) else {
            self.others += 1;
            return false;
        };
        let is_first = kernel.count == 0;
        count(kernel, dispatch.path, dispatch.queue, 1);
        Extent::add(&mut kernel.grid, dispatch.grid);
        Extent::add(&mut kernel.workgroup, dispatch.workgroup.map(u32::from));
        Range::add(&mut kernel.lds_bytes, dispatch.group_segment.into());
        Range::add(&mut kernel.scratch_bytes, dispatch.private_segment.into());
        launches.add_known(launch_ns);
        is_first
    }

    /// Adds dispatches that have no rows of their own.
    pub(super) fn add_run(&mut self, run: &DispatchRun) {
        let row = run
            .kernel_object
            .and_then(|object| self.row(run.pid, object, run.kernel.as_ref()));
        match row {
            Some((kernel, _)) => count(kernel, run.path, run.queue, run.count),
            None => more(&mut self.others, run.count),
        }
    }

    /// Adds the time of a dispatch.
    pub(super) fn time(&mut self, time: &GpuTime) {
        if let Some((kernel, _)) = self.row(time.pid, time.kernel_object, time.kernel.as_ref()) {
            kernel.timed += 1;
            if let (Some(start), Some(end)) = (time.start_ns, time.end_ns) {
                GpuNs::add_to(&mut kernel.gpu_ns, end.saturating_sub(start));
            }
        }
    }

    /// Returns the kernels, the most dispatched first, and the number of dispatches in no row.
    pub(super) fn finish(self) -> (Vec<Kernel>, u64) {
        let with_times = |(kernel, launches): (Kernel, Histogram)| Kernel {
            launch_ns: launches.stats(),
            ..kernel
        };
        let mut kernels: Vec<Kernel> = self.rows.into_iter().map(with_times).collect();
        kernels.retain(|kernel| kernel.count > 0);
        kernels.sort_by(|a, b| {
            let order = |kernel: &Kernel| std::cmp::Reverse(kernel.count);
            let name = |kernel: &Kernel| (kernel.name.clone(), kernel.kernel_object);
            order(a).cmp(&order(b)).then_with(|| name(a).cmp(&name(b)))
        });
        (kernels, self.others)
    }

    /// Returns the row of a kernel; `None` if it is beyond the limit.
    fn row(&mut self, pid: u32, object: u64, name: Option<&Arc<str>>) -> Option<&mut (Kernel, Histogram)> {
        let key = (pid, object);
        if self.addresses.len() >= MAX_KERNELS && !self.addresses.contains_key(&key) {
            return None;
        }
        let address = self.addresses.entry(key).or_default();
        let known = address.rows.iter().find(|(known, _)| known.as_ref() == name);
        let at = match known {
            Some(&(_, at)) => at,
            None => {
                let of_name = name.and_then(|name| self.by_name.get(name).copied());
                let at = of_name.unwrap_or(self.rows.len());
                if at >= MAX_KERNELS {
                    return None;
                }
                if of_name.is_none() {
                    let kernel = Kernel {
                        name: name.map(ToString::to_string),
                        kernel_object: name.is_none().then_some(object),
                        ..Kernel::default()
                    };
                    self.rows.push((kernel, Histogram::default()));
                    self.by_name.extend(name.map(|name| (Arc::clone(name), at)));
                }
                address.rows.push((name.cloned(), at));
                at
            }
        };
        let row = self.rows.get_mut(at)?;
        if address.merged != Some(at) {
            address.merged = Some(at);
            row.0.registers.widen(&address.loaded);
        }
        Some(row)
    }
}

impl Registers {
    fn widen(&mut self, by: &Self) {
        let pairs = [
            (&mut self.vgprs, by.vgprs),
            (&mut self.agprs, by.agprs),
            (&mut self.sgprs, by.sgprs),
            (&mut self.wavefront, by.wavefront),
            (&mut self.kernarg_bytes, by.kernarg_bytes),
        ];
        for (range, by) in pairs {
            if let Some(Range { min, max }) = by {
                Range::add(range, min);
                Range::add(range, max);
            }
        }
    }
}

fn count(kernel: &mut Kernel, path: Path, queue: u32, dispatches: u64) {
    more(&mut kernel.count, dispatches);
    more(kernel.by_path.entry(path).or_default(), dispatches);
    kernel.queues.insert(queue);
}
