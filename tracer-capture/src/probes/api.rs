//! Calls of HIP, HSA and OpenCL functions: entry and return of each function of the catalogue that the library exports.
//!
//! HSA's exported functions are stubs, neither of whose instructions the kernel can emulate. Behind the API table there is a
//! cheaper place for a probe, which the library's own calls reach, too. These calls are distinguished by where they come from.

use std::collections::BTreeSet;

use tracer_common::api::{Cookie, FUNCTIONS, Layer};

use super::{Prober, Site, Target, api_table::Process};
use crate::{
    api_choice::Api,
    confined::NotRead,
    inventory::Probe,
    runtime::resolver::{Argument, Entries, Entry, ProbePoint, ResolverStep},
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

/// A function of a library.
pub struct Function {
    /// The place of its probe.
    pub site: Site,
    /// Everything that the programs must know about the function.
    pub cookie: Cookie,
}

/// Attaches to the functions that have code of their own: all of HIP's and OpenCL's, and `hsa_init`.
pub fn attach(prober: &mut Prober, target: &Target<'_>, entries: &Entries, api: Api) -> Vec<Probe> {
    let direct = entries.functions.iter().filter(|entry| entry.export.table.is_none());
    let functions = direct.filter_map(|entry| function(entries, entry, entry.export.probe, ResolverStep::Export, api));
    attach_all(prober, target, functions.collect())
}

/// Returns the functions behind the API table of a process, which has filled it.
///
/// # Errors
/// Fails with [`NotRead`] if the process can't be read now.
pub fn behind_table(entries: &Entries, process: &Process<'_>, api: Api) -> Result<Vec<Function>, NotRead> {
    let stubs = entries.functions.iter().filter(|entry| entry.export.table.is_some());
    let points = process.behind(stubs.clone().map(|entry| &entry.export), &KEEP)?;
    let functions = stubs.zip(points).filter_map(|(entry, behind)| match behind {
        Some(point) => function(entries, entry, point, ResolverStep::ApiTable, api),
        None => function(entries, entry, entry.export.probe, ResolverStep::Export, api),
    });
    Ok(functions.collect())
}

fn function(entries: &Entries, entry: &Entry, point: ProbePoint, step: ResolverStep, api: Api) -> Option<Function> {
    let listed = FUNCTIONS.get(entry.number)?;
    let own_calls = match listed.layer {
        Layer::Hsa => entries.code.clone(),
        // Calls of HIP by HIP count as calls: nothing else shows what a compound function does.
        Layer::Hip | Layer::OpenCl => 0..0,
    };
    Some(Function {
        cookie: Cookie::new(entry.number, api.counts(listed.class), own_calls, point.vaddr)?,
        site: Site::of(&entry.export, point, step),
    })
}

/// Attaches to these functions.
pub fn attach_all(prober: &mut Prober, target: &Target<'_>, mut functions: Vec<Function>) -> Vec<Probe> {
    // Several names may share one function.
    let mut placed = BTreeSet::new();
    functions.retain(|function| placed.insert(function.site.point.file_offset));
    if functions.is_empty() {
        return Vec::new();
    }
    let together = prober.function_probes(PROGRAMS, target, &functions);
    if let Err(error) = &together {
        log::debug!("tracer attaches the probes of functions one by one: {error}");
    }
    let probe = |function: Function| {
        let attached = match &together {
            Ok(()) => Ok(()),
            Err(_) => prober.function_probe(PROGRAMS, target, &function),
        };
        let error = attached.err().map(|error| error.to_string());
        function.site.probe(Family::Api, target, error)
    };
    functions.into_iter().map(probe).collect()
}
