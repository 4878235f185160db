//! Examines the mappings of processes that run already, or enter the trace by themselves.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tracer_core::{event::Origin, losses::TOPOLOGY_UNREAD};

use super::{Job, Work, lock};
use crate::{
    confined::{Examine, NotRead},
    examination::threads::Threads,
    kernel::devices,
    probes::api_table::Process,
    runtime::library::Runtime,
    sys,
    target::proc_maps::Mapping,
};

/// A request from a session to the holder, which has the probes: which of these processes have mapped a runtime? The probes of that
/// runtime are attached by the time of the answer.
pub struct Ask {
    /// The processes.
    pub pids: Vec<u32>,
    /// Takes the answer.
    pub reply: mpsc::Sender<Vec<u32>>,
}

/// Collects the results; it sends them when no thread searches any more.
pub struct Reply {
    found: Mutex<Vec<u32>>,
    to: mpsc::Sender<Vec<u32>>,
}

impl Reply {
    /// Records that this process has mapped a runtime.
    pub(super) fn found(&self, pid: u32) {
        lock(&self.found).push(pid);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let found = std::mem::take(self.found.get_mut().unwrap_or_else(PoisonError::into_inner));
        // No receiver waits for the results any more if the session was abandoned.
        let _ = self.to.send(found);
    }
}

/// Has these processes examined, in parallel.
pub(in crate::examination) fn spread(threads: &Threads<Job>, ask: Ask) {
    let (found, to) = (Mutex::default(), ask.reply);
    let reply = Arc::new(Reply { found, to });
    for pid in ask.pids {
        threads.push(pid, Job::Scan(pid, Arc::clone(&reply)));
    }
}

impl Work {
    /// Attaches probes to the runtimes of a process that ran before. Returns whether it has mapped a runtime; a process that could
    /// not be examined counts as a loss, and as one that has not. `entered` is whether it has just used the KFD for the first time.
    pub(in crate::examination) fn scan(&self, pid: u32, generation: u32, entered: bool) -> bool {
        let found = self
            .begin(pid)
            .and_then(|examine| self.search(&examine, generation, entered));
        found.unwrap_or_else(|error| {
            self.unread(pid, &error);
            false
        })
    }

    fn search(&self, examine: &Examine<'_>, generation: u32, entered: bool) -> Result<bool, NotRead> {
        let mappings = examine.mappings()?;
        self.probe_files(examine, &mappings);
        // Each process may see other devices, in a container, even under the same ids.
        let devices = devices::below(examine);
        let is_unread = devices.is_unread;
        lock(&self.inventory).add_devices(devices);
        let mut has_runtime = false;
        let origin = Origin {
            time_ns: sys::monotonic_ns(),
            pid: examine.pid,
            tid: examine.pid,
        };
        for mapping in &mappings {
            let Some(runtime) = self.libraries.runtime(&mapping.file) else {
                continue;
            };
            has_runtime = true;
            if let Some(site) = runtime.resolution.code_objects
                && let Some(probe) = mapping.address_of(site.probe.file_offset)
            {
                let debug = probe.wrapping_add_signed(site.debug_displacement.into());
                self.code_objects.attached(examine, origin, generation, debug);
            }
            // Otherwise the entry of `hsa_init` is still to come.
            if self.needs_tables(&runtime.resolution)
                && !runtime.is_initialised()
                && runtime.resolution.exports.init.is_some()
                && is_initialised(examine, &runtime, mapping, &mappings)?
            {
                self.initialising(examine, &mappings)?;
            }
        }
        if has_runtime {
            self.thunk(examine, origin, generation)?;
        }
        // The probes come first. A user can keep the kernel from showing cgroups for a while.
        self.place(examine, origin, generation);
        if is_unread && (has_runtime || entered) {
            lock(&self.inventory).lose(TOPOLOGY_UNREAD);
        }
        Ok(has_runtime)
    }
}

/// Returns whether the process has filled the API table of this runtime.
fn is_initialised(
    examine: &Examine<'_>,
    runtime: &Runtime,
    mapping: &Mapping,
    mappings: &[Mapping],
) -> Result<bool, NotRead> {
    let process = Process::new(*examine, &runtime.file, &mapping.file, mappings);
    let reserves = runtime.resolution.exports.reserves.iter();
    process.is_filled(reserves.map(|site| &site.export))
}
