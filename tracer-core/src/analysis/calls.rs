//! Rows by API function, and time by layer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tracer_common::api::{self, Class};

use super::threads::Done;
use crate::tables::{ApiCall, ApiStats, Ioctl};
use crate::tally::{Histogram, Stats, more};

/// Number of functions that are distinguished; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;

/// Calls of a function of HIP, HSA or OpenCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
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

impl Layer {
    /// Returns what people call it: `HIP submit`, `ioctl memory`. The name of the library is that of the trace, and not escaped.
    #[must_use]
    pub fn title(&self) -> String {
        let library = match &*self.layer {
            "hip" => "HIP",
            "hsa" => "HSA",
            "opencl" => "OpenCL",
            other => other,
        };
        format!("{library} {}", self.class.unwrap_or("other"))
    }
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    /// Numbers of functions, by layer and name.
    numbers: BTreeMap<String, BTreeMap<String, usize>>,
    /// Functions, their times, and the numbers of their layers.
    functions: Vec<(Function, Histogram, usize)>,
    /// Layers with the own times of their calls. There are few: a class of each library, and the kinds of ioctls.
    layers: Vec<(Layer, Histogram)>,
}

/// The class of ioctls whose purpose is to wait.
pub(super) const WAIT: &str = "wait";

/// Returns what an ioctl is for, by its name in kfd_ioctl.h.
pub(super) fn class(ioctl: &Ioctl) -> &'static str {
    const MEMORY: [&str; 5] = ["MEMORY", "SVM", "IPC_", "DMABUF", "SCRATCH"];
    match &*ioctl.name {
        _ if ioctl.device != "kfd" => "drm",
        "WAIT_EVENTS" => WAIT,
        name if name.contains("QUEUE") => "queue",
        name if MEMORY.iter().any(|word| name.contains(word)) => "memory",
        _ => "other",
    }
}

impl Counter {
    /// Counts a call. Returns the number of its function.
    pub(super) fn begin(&mut self, call: &ApiCall) -> Option<usize> {
        let number = self.number(&call.layer, &call.function)?;
        let (function, ..) = &mut self.functions[number];
        function.calls += 1;
        function.errors += u64::from(call.failed == Some(true));
        Some(number)
    }

    /// Counts the time of a call.
    pub(super) fn end(&mut self, done: Done) {
        let Some((function, times, layer)) = done.function.and_then(|number| self.functions.get_mut(number)) else {
            return;
        };
        let (layer, own) = &mut self.layers[*layer];
        layer.calls += 1;
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
        let (function, times, _) = &mut self.functions[number];
        more(&mut function.calls, stats.calls);
        more(&mut function.errors, stats.failed);
        more(&mut function.unreturned, stats.calls.saturating_sub(stats.returned));
        times.add_buckets(&stats.durations.0, stats.min_ns, stats.max_ns, stats.total_ns);
    }

    /// Counts an ioctl.
    pub(super) fn ioctl(&mut self, ioctl: &Ioctl) {
        let number = self.layer("ioctl", Some(class(ioctl)));
        let (layer, own) = &mut self.layers[number];
        layer.calls += 1;
        own.add_known(ioctl.duration_ns());
    }

    /// Returns whether a function submits work.
    pub(super) fn submits(&self, number: usize) -> bool {
        let function = self.functions.get(number);
        function.is_some_and(|(function, ..)| function.class == Some(Class::Submit.name()))
    }

    /// Returns the layer and the name of a function.
    pub(super) fn name(&self, number: usize) -> (&str, &str) {
        let function = self.functions.get(number);
        function.map_or(("", ""), |(function, ..)| (&function.layer, &function.function))
    }

    /// Returns the functions and the layers, the most time first.
    pub(super) fn finish(self) -> (Vec<Function>, Vec<Layer>) {
        let with_times = |(function, times, _): (Function, Histogram, usize)| Function {
            ns: times.stats(),
            ..function
        };
        let mut functions: Vec<Function> = self.functions.into_iter().map(with_times).collect();
        functions.retain(|function| function.calls > 0);
        let total = |function: &Function| function.ns.map_or(0, |ns| ns.total);
        functions.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| a.function.cmp(&b.function)));
        let with_own = |(layer, own): (Layer, Histogram)| {
            let ns = own.stats();
            let own_ns = ns.map_or(0, |ns| ns.total);
            Layer { own_ns, ns, ..layer }
        };
        let mut layers: Vec<Layer> = self.layers.into_iter().map(with_own).collect();
        // The layer of functions that were only counted has no call of its own.
        layers.retain(|layer| layer.calls > 0);
        layers.sort_by(|a, b| {
            let name = |layer: &Layer| (layer.layer.clone(), layer.class);
            b.own_ns.cmp(&a.own_ns).then_with(|| name(a).cmp(&name(b)))
        });
        (functions, layers)
    }

    /// Returns the number of a function; `None` if it is beyond the limit.
    fn number(&mut self, layer: &str, name: &str) -> Option<usize> {
        let known = self.numbers.get(layer).and_then(|names| names.get(name));
        if let Some(&number) = known {
            return Some(number);
        }
        let number = self.functions.len();
        if number >= MAX_FUNCTIONS {
            return None;
        }
        let class = api::class_of(layer, name).map(Class::name);
        let function = Function {
            layer: layer.to_owned(),
            function: name.to_owned(),
            class,
            ..Function::default()
        };
        let of_layer = self.layer(layer, class);
        self.functions.push((function, Histogram::default(), of_layer));
        let names = self.numbers.entry(layer.to_owned()).or_default();
        names.insert(name.to_owned(), number);
        Some(number)
    }

    /// Returns the number of a layer.
    fn layer(&mut self, layer: &str, class: Option<&'static str>) -> usize {
        let is_it = |(known, _): &(Layer, Histogram)| known.layer == layer && known.class == class;
        self.layers.iter().position(is_it).unwrap_or_else(|| {
            let layer = Layer {
                layer: layer.to_owned(),
                class,
                ..Layer::default()
            };
            self.layers.push((layer, Histogram::default()));
            self.layers.len() - 1
        })
    }
}
