//! Examines the mappings of processes that run already, or enter the trace by themselves.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tracer_core::event::Origin;

use super::{Job, Subject, Work};
use crate::{
    confined::NotRead, examination::threads::Threads, probes::api_table::Process, runtime::library::Runtime, sys,
    target::proc_maps::Mapping,
};

/// A request from a session to the holder, which has the probes. The holder answers with process ids.
pub enum Ask {
    /// Asks which of these processes have mapped a runtime. The probes of that runtime are attached by then.
    Scan(Vec<u32>, mpsc::Sender<Vec<u32>>),
}

/// Collects the results; it sends them when no thread searches any more.
pub struct Reply {
    found: Mutex<Vec<u32>>,
    to: mpsc::Sender<Vec<u32>>,
}

impl Reply {
    /// Records that this process has mapped a runtime.
    pub(super) fn found(&self, pid: u32) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
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
pub(in crate::examination) fn spread(threads: &Threads<Job>, pids: Vec<u32>, to: mpsc::Sender<Vec<u32>>) {
    let found = Mutex::default();
    let reply = Arc::new(Reply { found, to });
    for pid in pids {
        threads.push(pid, Job::Scan(pid, Arc::clone(&reply)));
    }
}

/// The result of examining a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::examination) enum Answer {
    /// The process has mapped a runtime.
    Runtime,
    /// The process has not mapped a runtime, or it could not be examined, which is a loss.
    None,
}

impl Work {
    /// Attaches probes to the runtimes of a process that ran before.
    pub(in crate::examination) fn scan(&self, pid: u32, generation: u32) -> Answer {
        let subject = self.subject(pid);
        match subject
            .map_err(NotRead::from)
            .and_then(|subject| self.search(&subject, generation))
        {
            Ok(answer) => answer,
            Err(error) => {
                self.unread(pid, &error);
                Answer::None
            }
        }
    }

    fn search(&self, subject: &Subject<'_>, generation: u32) -> Result<Answer, NotRead> {
        let mappings = subject.examine.mappings()?;
        self.look(subject, &mappings);
        let mut answer = Answer::None;
        let origin = Origin {
            time_ns: sys::monotonic_ns(),
            pid: subject.pid,
            tid: subject.pid,
        };
        for mapping in &mappings {
            let Some(runtime) = self.libraries.runtime(&mapping.file) else {
                continue;
            };
            answer = Answer::Runtime;
            let code_objects = runtime.resolution.code_objects;
            let debug = code_objects.and_then(|site| {
                let probe = mapping.address_of(site.probe.file_offset)?;
                Some(probe.wrapping_add_signed(site.debug_displacement.into()))
            });
            if let Some(debug) = debug {
                self.code_objects.attached(&subject.examine, origin, generation, debug);
            }
            // Otherwise the entry of `hsa_init` is still to come.
            if self.needs_tables(&runtime.resolution)
                && !runtime.is_initialised()
                && runtime.resolution.exports.init.is_some()
                && is_initialised(subject, &runtime, mapping, &mappings)?
            {
                self.initialising(subject, &mappings)?;
            }
        }
        if answer == Answer::Runtime {
            self.thunk(subject, origin, generation)?;
        }
        Ok(answer)
    }
}

/// Returns whether the process has filled the API table of this runtime.
fn is_initialised(
    subject: &Subject<'_>,
    runtime: &Runtime,
    mapping: &Mapping,
    mappings: &[Mapping],
) -> Result<bool, NotRead> {
    let process = Process::new(subject.examine, &runtime.file, &mapping.file, mappings);
    let reserves = runtime.resolution.exports.reserves.iter();
    process.is_filled(reserves.map(|site| &site.export))
}
