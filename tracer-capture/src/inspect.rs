//! What a recording would capture on this machine, and what it would miss: everything that `tracer doctor` reports.
//!
//! Each file here examines one aspect, and keeps reading separate from interpretation. Abilities of the kernel are tried, not
//! concluded from its version: every program is loaded, every trace event is attached to, and a uprobe of each kind is hit. All of
//! it is removed again before [`inspect`] returns, and no mount remains.

mod driver;
mod features;
mod gpus;
mod kernel;
mod libraries;
mod places;
mod programs;
mod rights;
mod verdict;

use std::{
    path::{Path, PathBuf},
    thread,
};

use serde::Serialize;

pub use crate::cost::{Cost, DoorbellCost, Kind};
use crate::{backend, cost};
pub use driver::{Driver, Events, Function, State};
pub use features::Features;
pub use gpus::{Gpus, Node};
pub use kernel::Kernel;
pub(crate) use libraries::{DEBUGINFOD_PATIENCE, read_library};
pub use libraries::{Library, Site};
pub use programs::{Event, Program, Programs};
pub use rights::{Capability, Rights};
pub use verdict::{Answer, Capture, Verdict};

/// What to examine.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Examine these libraries, instead of those that a search finds.
    pub libraries: Vec<PathBuf>,
    /// Allow debug files from the network.
    pub debuginfod: bool,
}

/// The result. The names and meaning of its fields are stable: they are the JSON of `tracer doctor` (docs/doctor.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The kernel.
    pub kernel: Kernel,
    /// The rights of this process.
    pub rights: Rights,
    /// The ways to capture.
    pub backends: Backends,
    /// What the kernel accepts from this process.
    pub programs: Programs,
    /// The kernel driver.
    pub driver: Driver,
    /// GPUs.
    pub gpus: Gpus,
    /// HSA runtimes.
    pub libraries: Vec<Library>,
    /// The cost of a uprobe.
    pub uprobe_cost: Cost,
    /// The cost of a recorded doorbell.
    pub doorbell_cost: DoorbellCost,
}

/// Why this process cannot capture in a way; `None` if it can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Backends {
    /// By eBPF programs.
    pub ebpf: Option<String>,
    /// By perf events.
    pub perf: Option<String>,
    /// By ftrace.
    pub ftrace: Option<String>,
}

/// Examines this machine. Takes a second or two: for the verifier, the measurement of uprobes, and their removal.
#[must_use]
pub fn inspect(options: &Options) -> Inspection {
    let kernel = kernel::read();
    let mut driver = driver::read(&kernel.release);
    // This has a thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
    let tried = thread::scope(|scope| scope.spawn(try_out).join());
    let (programs, events, uprobe_cost, doorbell_cost) = tried.unwrap_or_else(|_| {
        let error = "loading the eBPF programs panicked; run again with RUST_BACKTRACE=1";
        let programs = Programs {
            error: Some(error.to_owned()),
            ..Programs::default()
        };
        let events = Events::of(Err("the search for them failed".to_owned()));
        (programs, events, Cost::failed(error), DoorbellCost::failed(error))
    });
    driver.events = events;
    let libraries = if options.libraries.is_empty() {
        libraries::search()
    } else {
        options.libraries.iter().map(|path| (path.clone(), "option")).collect()
    };
    Inspection {
        kernel,
        rights: rights::read(),
        backends: Backends {
            ebpf: backend::why_not_ebpf(),
            perf: backend::why_not_perf(),
            ftrace: backend::why_not_ftrace(),
        },
        programs,
        driver,
        gpus: gpus::read(),
        libraries: libraries
            .iter()
            .map(|(path, by)| libraries::inspect(path, by, options.debuginfod, &uprobe_cost))
            .collect(),
        uprobe_cost,
        doorbell_cost,
    }
}

/// Returns which modules of the driver and of the scheduler have an entry in a folder; amd_sched is the scheduler of DKMS drivers.
fn modules_in(folder: &Path) -> Vec<String> {
    let modules = ["amdgpu", "gpu_sched", "amd_sched"].into_iter();
    let there = modules.filter(|module| folder.join(module).exists());
    there.map(str::to_owned).collect()
}

fn try_out() -> (Programs, Events, Cost, DoorbellCost) {
    let (programs, events, mut loaded) = programs::load();
    let cost = match &mut loaded {
        Some(loaded) => cost::measure(&mut loaded.prober, loaded.hits.as_ref()),
        None => Cost::failed("the programs can't be loaded"),
    };
    // Without the programs that only `doctor` attaches.
    let has_programs = loaded.take().is_some();
    let doorbell = if has_programs {
        cost::measure_doorbell()
    } else {
        DoorbellCost::failed("the programs can't be loaded")
    };
    (programs, events, cost, doorbell)
}
