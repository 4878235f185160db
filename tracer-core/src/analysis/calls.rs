//! Rows by API function, and time by layer.

use std::collections::BTreeMap;

use serde::Serialize;
use tracer_common::api::{self, Class};

use super::threads::Done;
use crate::tables::{ApiCall, ApiStats, Ioctl};
use crate::tally::{Histogram, Stats, more};

/// Number of functions that are distinguished; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;

/// Calls of a function of HIP, HSA or OpenCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Function {
    /// `hip`, `hsa` or `opencl`.
    pub layer: String,
    /// Exported name.
    pub function: String,
    /// Class of the function: `submit`, `copy`, `memory`, `queue`, `sync`, `setup`, `query` or `step`; `None` for a function that
    /// this version does not know.
    pub class: Option<&'static str>,
    /// Calls.
    pub calls: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Calls whose return was not seen.
    pub unreturned: u64,
    /// Time in the calls that returned, ns.
    pub ns: Option<Stats>,
    /// The part of the total outside of recorded calls and ioctls inside them, ns; `None` if the calls were only counted.
    pub own_ns: Option<u64>,
}

/// Time in one layer, by what the functions do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// `hip`, `hsa`, `opencl`, `ioctl`.
    pub layer: String,
    /// Class of the functions; of ioctls `wait`, `queue`, `memory`, `other` (of the KFD), or `drm`; `None` for functions that this
    /// version does not know.
    pub class: Option<&'static str>,
    /// Calls.
    pub calls: u64,
    /// Time in the calls, without recorded calls and ioctls inside them, summed over threads, ns. It includes the cost of probes.
    pub own_ns: u64,
    /// The same time of single calls, ns; `None` if no call returned.
    pub ns: Option<Stats>,
}

/// What a layer is identified by.
type Key = (String, Option<&'static str>);

#[derive(Debug, Default)]
pub(super) struct Counter {
    numbers: BTreeMap<(String, String), usize>,
    functions: Vec<(Function, Histogram)>,
    /// Calls and own times.
    layers: BTreeMap<Key, (u64, Histogram)>,
}

/// Returns what an ioctl is for, by its name in kfd_ioctl.h.
fn class(ioctl: &Ioctl) -> &'static str {
    const MEMORY: [&str; 5] = ["MEMORY", "SVM", "IPC_", "DMABUF", "SCRATCH"];
    match &*ioctl.name {
        _ if ioctl.device != "kfd" => "drm",
        "WAIT_EVENTS" => "wait",
        name if name.contains("QUEUE") => "queue",
        name if MEMORY.iter().any(|word| name.contains(word)) => "memory",
        _ => "other",
    }
}

impl Counter {
    /// Counts a call. Returns the number of its function.
    pub(super) fn begin(&mut self, call: &ApiCall) -> Option<usize> {
        let number = self.number(&call.layer, &call.function)?;
        let (function, _) = &mut self.functions[number];
        function.calls += 1;
        function.errors += u64::from(call.failed == Some(true));
        Some(number)
    }

    /// Counts the time of a call.
    pub(super) fn end(&mut self, done: Done) {
        let Some((function, times)) = done.function.and_then(|number| self.functions.get_mut(number)) else {
            return;
        };
        let key = (function.layer.clone(), function.class);
        let (calls, own) = self.layers.entry(key).or_default();
        *calls += 1;
        match done.ns {
            None => function.unreturned += 1,
            Some(ns) => {
                let own_ns = ns.saturating_sub(done.inside_ns);
                times.add(ns);
                own.add(own_ns);
                more(function.own_ns.get_or_insert(0), own_ns);
            }
        }
    }

    /// Counts calls that have no rows of their own.
    pub(super) fn add_stats(&mut self, stats: &ApiStats) {
        let Some(number) = self.number(&stats.layer, &stats.function).filter(|_| stats.calls > 0) else {
            return;
        };
        let (function, times) = &mut self.functions[number];
        more(&mut function.calls, stats.calls);
        more(&mut function.errors, stats.failed);
        more(&mut function.unreturned, stats.calls.saturating_sub(stats.returned));
        times.add_buckets(&stats.durations.0, stats.min_ns, stats.max_ns, stats.total_ns);
    }

    /// Counts an ioctl.
    pub(super) fn ioctl(&mut self, ioctl: &Ioctl) {
        let key = ("ioctl".to_owned(), Some(class(ioctl)));
        let (calls, own) = self.layers.entry(key).or_default();
        *calls += 1;
        own.add_known(ioctl.duration_ns());
    }

    /// Returns whether a function submits work.
    pub(super) fn submits(&self, number: usize) -> bool {
        let function = self.functions.get(number);
        function.is_some_and(|(function, _)| function.class == Some(Class::Submit.name()))
    }

    /// Returns the functions and the layers, the most time first.
    pub(super) fn finish(self) -> (Vec<Function>, Vec<Layer>) {
        let with_times = |(function, times): (Function, Histogram)| Function {
            ns: times.stats(),
            ..function
        };
        let mut functions: Vec<Function> = self.functions.into_iter().map(with_times).collect();
        functions.retain(|function| function.calls > 0);
        let total = |function: &Function| function.ns.map_or(0, |ns| ns.total);
        functions.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| a.function.cmp(&b.function)));
        let layer = |((layer, class), (calls, own)): (Key, (u64, Histogram))| {
            let ns = own.stats();
            let own_ns = ns.map_or(0, |ns| ns.total);
            Layer {
                layer,
                class,
                calls,
                own_ns,
                ns,
            }
        };
        let mut layers: Vec<Layer> = self.layers.into_iter().map(layer).collect();
        layers.sort_by_key(|layer| std::cmp::Reverse(layer.own_ns));
        (functions, layers)
    }

    /// Returns the number of a function; `None` if it is beyond the limit.
    fn number(&mut self, layer: &str, name: &str) -> Option<usize> {
        let key = (layer.to_owned(), name.to_owned());
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let number = self.functions.len();
        if number >= MAX_FUNCTIONS {
            return None;
        }
        let of_layer = api::Layer::ALL.into_iter().find(|known| known.name() == layer);
        let known = of_layer.and_then(|layer| api::find(layer, name));
        let function = Function {
            layer: layer.to_owned(),
            function: name.to_owned(),
            class: known.map(|known| api::FUNCTIONS[known].class.name()),
            ..Function::default()
        };
        self.functions.push((function, Histogram::default()));
        self.numbers.insert(key, number);
        Some(number)
    }
}
