//! Processes that run already, or enter by themselves: what they have mapped is looked at.

use std::sync::mpsc;

use tracer_core::event::Origin;

use super::{Holder, Released};
use crate::{library::Libraries, probes::api_table, proc_maps::Mapping, session, sys};

/// What a session asks of the holder, which has the probes. It answers with process ids.
pub enum Ask {
    /// These are going to be attached to. Nothing to answer.
    Attaching(Vec<u32>, mpsc::Sender<Vec<u32>>),
    /// Which of these have mapped a runtime? It has its probes then.
    Scan(Vec<u32>, mpsc::Sender<Vec<u32>>),
}

impl Holder {
    pub(super) fn answer(&mut self, libraries: &mut Libraries, recent: &mut Vec<Released>, ask: Ask) {
        let (answer, reply) = match ask {
            Ask::Attaching(pids, reply) => {
                let guardian = self.guardian.as_mut().into_iter();
                guardian.for_each(|guardian| pids.iter().for_each(|&pid| guardian.attach(pid)));
                (Vec::new(), reply)
            }
            Ask::Scan(mut pids, reply) => {
                pids.retain(|&pid| {
                    // Nobody waits longer for its hold than one of these takes.
                    self.serve_all(libraries, recent, true);
                    self.scan(libraries, pid, session::GENERATION)
                });
                (pids, reply)
            }
        };
        // Nobody waits for it any more if the session was given up.
        let _ = reply.send(answer);
    }

    /// Puts probes into the runtimes of a process that has run before; whether it has any.
    pub(super) fn scan(&mut self, libraries: &mut Libraries, pid: u32, generation: u32) -> bool {
        let mappings = self.mapped(libraries, pid);
        let mut found = false;
        let origin = Origin {
            time_ns: sys::monotonic_ns(),
            pid,
            tid: pid,
        };
        for mapping in &mappings {
            let Some(runtime) = libraries.runtime(&mapping.file) else {
                continue;
            };
            found = true;
            let code_objects = runtime.resolution.code_objects;
            let debug = code_objects.and_then(|site| {
                let probe = mapping.address_of(site.probe.file_offset)?;
                Some(probe.wrapping_add_signed(site.debug_displacement.into()))
            });
            if let Some(debug) = debug {
                self.code_objects.attached(origin, generation, debug);
            }
            // Else the entry of `hsa_init` is still to come.
            let exports = &runtime.resolution.exports;
            let wanted = self.needs_tables(&runtime.resolution);
            let own: Vec<&Mapping> = mappings.iter().filter(|other| other.file == mapping.file).collect();
            let mut reserves = exports.reserves.iter().map(|site| &site.export);
            if wanted
                && !runtime.initialised
                && exports.init.is_some()
                && api_table::is_filled(&mut reserves, pid, &own)
            {
                self.initialising(libraries, pid, &mappings);
            }
        }
        if found {
            self.thunk(libraries, origin, generation);
        }
        found
    }
}
