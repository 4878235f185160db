//! Calls of HIP and HSA functions: entry and return of each function of the catalogue that the library exports.
//!
//! HSA's exported functions are stubs, neither of whose instructions the kernel can emulate. Behind the API table there is a
//! cheaper place for a probe, which the library's own calls reach, too. These calls are distinguished by where they come from.

use std::{collections::BTreeSet, ffi::CString, os::fd::AsRawFd};

use tracer_common::api::{Cookie, FUNCTIONS, Layer};

use super::{Prober, Target, api_table::Process};
use crate::{
    confined::NotRead,
    inventory::Probe,
    runtime::resolver::{Argument, Confidence, Entries, Entry, ExportSite, ProbePoint, ResolverStep},
};
use tracer_core::family::Family;

/// The programs.
pub const PROGRAMS: [&str; 2] = ["api_enter", "api_return"];

/// The registers that an entry probe reads: every register that passes arguments, and the stack as the caller left it.
pub const KEEP: [Argument; 7] = [
    Argument::Rdi,
    Argument::Rsi,
    Argument::Rdx,
    Argument::Rcx,
    Argument::R8,
    Argument::R9,
    Argument::Rsp,
];

/// A function of a library, and the place of its probe.
pub struct Function {
    point: ProbePoint,
    cookie: Cookie,
    names: String,
    step: ResolverStep,
    confidence: Confidence,
}

impl Function {
    /// Returns the place of the probe.
    pub fn point(&self) -> &ProbePoint {
        &self.point
    }

    /// Returns what the programs must know about the function.
    pub fn cookie(&self) -> u64 {
        self.cookie.0
    }

    /// Returns the probe as the inventory lists it.
    pub fn probe(&self, target: &Target<'_>, error: Option<String>) -> Probe {
        Probe {
            family: Family::Api,
            target: target.path.to_owned(),
            role: self.names.clone(),
            file_offset: Some(self.point.file_offset),
            instruction: Some(self.point.instruction.to_string()),
            step: Some(self.step.to_string()),
            confidence: Some(self.confidence),
            error,
        }
    }
}

/// Attaches to the functions that have code of their own: all of HIP's, and `hsa_init`.
pub fn attach(prober: &mut Prober, target: &Target<'_>, entries: &Entries) -> Vec<Probe> {
    let direct = entries.functions.iter().filter(|entry| entry.export.table.is_none());
    let functions = direct.filter_map(|entry| function(entries, entry, entry.export.probe, ResolverStep::Export));
    attach_all(prober, target, functions.collect())
}

/// Returns the functions behind the API table of a process, which has filled it.
///
/// # Errors
/// Fails with [`NotRead`] if the process can't be read now.
pub fn behind_table(entries: &Entries, process: &Process<'_>) -> Result<Vec<Function>, NotRead> {
    let stubs: Vec<&Entry> = entries
        .functions
        .iter()
        .filter(|entry| entry.export.table.is_some())
        .collect();
    let exports: Vec<&ExportSite> = stubs.iter().map(|entry| &entry.export).collect();
    let points = process.behind(&exports, &KEEP)?;
    let functions = stubs
        .into_iter()
        .zip(points)
        .filter_map(|(entry, behind)| match behind {
            Some(point) => function(entries, entry, point, ResolverStep::ApiTable),
            None => function(entries, entry, entry.export.probe, ResolverStep::Export),
        });
    Ok(functions.collect())
}

fn function(entries: &Entries, entry: &Entry, point: ProbePoint, step: ResolverStep) -> Option<Function> {
    let own_calls = match FUNCTIONS.get(entry.number)?.layer {
        Layer::Hsa => entries.code.clone(),
        // Calls of HIP by HIP count as calls: nothing else shows what a compound function does.
        Layer::Hip => 0..0,
    };
    Some(Function {
        point,
        cookie: Cookie::new(entry.number, own_calls, point.vaddr)?,
        names: entry.export.names.join(", "),
        step,
        confidence: entry.export.confidence,
    })
}

/// Attaches to these functions.
pub fn attach_all(prober: &mut Prober, target: &Target<'_>, mut functions: Vec<Function>) -> Vec<Probe> {
    // Several names may share one function.
    let mut placed = BTreeSet::new();
    functions.retain(|function| placed.insert(function.point.file_offset));
    if functions.is_empty() {
        return Vec::new();
    }
    let Ok(path) = CString::new(format!("/proc/self/fd/{}", target.file.as_raw_fd())) else {
        return Vec::new();
    };
    match prober.function_probes(PROGRAMS, &path, &functions) {
        Ok(()) => functions.iter().map(|function| function.probe(target, None)).collect(),
        Err(error) => {
            log::debug!("tracer attaches the probes of functions one by one: {error}");
            let one = |function: &Function| {
                let error = prober.function_probe(PROGRAMS, target, function).err();
                function.probe(target, error.map(|error| error.to_string()))
            };
            functions.iter().map(one).collect()
        }
    }
}
