//! The work for a paused process: reading what it waits for, and attaching probes.

mod probing;
pub(super) mod scan;
pub(super) mod unused;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tracer_common::record::{Hold, hold_reason};
use tracer_core::{event::Origin, placement::Placement};

use super::{lock, retry::Retry};
use crate::{
    confined::{Examine, NotRead, Parsers, ProcFile, ReadError, Readers},
    decode,
    examination::discoveries::{Discovery, DiscoverySender},
    inventory::Inventory,
    pause::{keeper::Pauses, known::KnownFiles},
    probes::Prober,
    runtime::{
        code_object::lists::Lists,
        library::{Libraries, PATIENCE},
    },
    session::{self, Options},
    sys,
    target::proc_maps::FileId,
};

use scan::Reply;
use unused::Uses;

/// The maximum time of the examination of a process, paused or not. What was not read by then is abandoned, and tried again.
const LIMIT: Duration = Duration::from_secs(5);

/// A piece of work, mostly about one process.
#[derive(Clone)]
pub enum Job {
    /// A process that is paused, or was.
    Hold(Hold),
    /// A process that runs already and is to be examined, and the receiver of the answer whether it has a runtime.
    Scan(u32, Arc<Reply>),
    /// A process whose examination failed, and its generation.
    Again(u32, u32),
    /// Libraries that no process uses any more are to lose their probes.
    Unused,
}

/// The data that the threads that examine processes share.
pub struct Work {
    settings: Options,
    readers: Readers,
    parsers: Parsers,
    /// Attaches probes; `None` once the session ends.
    prober: Mutex<Option<Prober>>,
    libraries: Libraries,
    /// C libraries that were examined: for backends whose records of ioctls lack the arguments.
    c_libraries: Mutex<HashSet<FileId>>,
    pauses: Arc<Pauses>,
    /// Files whose mapping pauses no process any more.
    known: KnownFiles,
    finder: DiscoverySender,
    code_objects: Lists,
    pub(super) retry: Mutex<Retry>,
    uses: Mutex<Uses>,
    /// Processes for which tracer has reported whether they hand doorbells over: with their generations, and the number of runtimes
    /// known then.
    thunks: Mutex<HashMap<u32, (u32, usize)>>,
    /// Processes for which tracer has read where they run, with their generations.
    placed: Mutex<HashMap<u32, u32>>,
    pub(super) inventory: Arc<Mutex<Inventory>>,
}

impl Work {
    /// Creates the shared data of a session that begins.
    pub fn new(
        settings: Options,
        readers: Readers,
        prober: Prober,
        pauses: Arc<Pauses>,
        known: KnownFiles,
        finder: DiscoverySender,
        inventory: Arc<Mutex<Inventory>>,
    ) -> Self {
        // A request waits for a place no longer than a pause may take.
        readers.count_as_blocked_after(settings.pause_limit);
        Self {
            settings,
            parsers: Parsers::new(&readers),
            readers,
            prober: Mutex::new(Some(prober)),
            libraries: Libraries::new(settings.debuginfod, settings.api, settings.user),
            c_libraries: Mutex::default(),
            pauses,
            known,
            code_objects: Lists::new(finder.clone()),
            finder,
            retry: Mutex::default(),
            uses: Mutex::default(),
            thunks: Mutex::default(),
            placed: Mutex::default(),
            inventory,
        }
    }

    /// Prepares the examination of a process for the time `limit`.
    ///
    /// # Errors
    /// Fails with a [`ReadError`] if the process has exited.
    pub fn examine(&self, pid: u32, limit: Duration) -> Result<Examine<'_>, ReadError> {
        Examine::new(&self.readers, &self.parsers, pid, Instant::now() + limit)
    }

    /// Takes the prober away, after which no probe can be attached any more.
    pub fn take_prober(&self) -> Option<Prober> {
        lock(&self.prober).take()
    }

    /// Logs how long processes were paused.
    pub(super) fn say_goodbye(&self) {
        let inventory = lock(&self.inventory);
        let longest = Duration::from_nanos(inventory.longest_hold_ns);
        log::info!("processes were paused {} times, {longest:?} at most", inventory.holds);
    }

    /// Does a piece of work.
    pub(super) fn run(&self, job: Job) {
        match job {
            Job::Hold(hold) => self.serve(&hold),
            Job::Scan(pid, reply) => {
                if self.scan(pid, session::GENERATION, false) {
                    reply.found(pid);
                }
            }
            Job::Again(pid, generation) => self.again(pid, generation),
            Job::Unused => self.release_unused(),
        }
    }

    /// Abandons a piece of work, because the session ends before it is done: the process does not wait for it, and what it would
    /// have shown is lost.
    pub(super) fn give_up(&self, job: &Job) {
        match job {
            Job::Hold(hold) => {
                self.resume(hold);
                self.unread(hold.header.tgid, &ReadError::Blocked.into());
            }
            Job::Scan(pid, _) => self.unread(*pid, &ReadError::Blocked.into()),
            // The process has counted already; all probes are detached.
            Job::Again(..) | Job::Unused => {}
        }
    }

    fn resume(&self, hold: &Hold) {
        if hold.stopped == 0 {
            self.pauses.serve(hold.slot, hold.token);
        }
    }

    /// Begins a piece of work for a process.
    pub(super) fn begin(&self, pid: u32) -> Result<Examine<'_>, NotRead> {
        let mut limit = LIMIT.max(self.settings.pause_limit);
        if self.settings.debuginfod {
            limit += PATIENCE;
        }
        Ok(self.examine(pid, limit)?)
    }

    fn serve(&self, hold: &Hold) {
        let pid = hold.header.tgid;
        let served = self.begin(pid).and_then(|examine| {
            let answered = self.answer(&examine, hold);
            // The probes come first. A user can keep the kernel from showing cgroups for a while.
            self.place(&examine, decode::origin(&hold.header), hold.generation);
            answered
        });
        if let Err(error) = served {
            if [hold_reason::CODE_OBJECTS, hold_reason::CODE_OBJECTS_BEHIND].contains(&hold.header.flags) {
                let origin = decode::origin(&hold.header);
                self.code_objects.unread(origin, hold.generation, hold.address);
            }
            self.unread(pid, &error);
        }
        lock(&self.retry).is_of(pid, hold.generation);
        self.resume(hold);
        if hold.stopped != 0 {
            return;
        }
        let mut inventory = lock(&self.inventory);
        inventory.holds += 1;
        inventory.longest_hold_ns = inventory
            .longest_hold_ns
            .max(sys::monotonic_ns().saturating_sub(hold.header.time_ns));
    }

    /// Reports the names in the path of a process's cgroup, once. Its submissions count without them, so a failure is no loss.
    pub(super) fn place(&self, examine: &Examine<'_>, origin: Origin, generation: u32) {
        if lock(&self.placed).insert(origin.pid, generation) != Some(generation)
            && let Ok(cgroups) = examine.proc_file(ProcFile::Cgroup)
        {
            let placement = Placement::in_cgroups(&String::from_utf8_lossy(&cgroups));
            self.finder.report(origin, Discovery::Placed(placement));
        }
    }

    fn answer(&self, examine: &Examine<'_>, hold: &Hold) -> Result<(), NotRead> {
        match hold.header.flags {
            hold_reason::MAPPED => self.mapped_one(examine, hold),
            hold_reason::ENTERED => {
                self.scan(examine.pid, hold.generation, true);
                Ok(())
            }
            hold_reason::CODE_OBJECTS | hold_reason::CODE_OBJECTS_BEHIND => {
                let origin = decode::origin(&hold.header);
                if hold.header.flags == hold_reason::CODE_OBJECTS_BEHIND {
                    let time_ns = origin.time_ns.saturating_sub(hold.header.site.into());
                    let first = Origin { time_ns, ..origin };
                    self.code_objects.unread(first, hold.generation, hold.address);
                }
                self.code_objects
                    .changed(examine, origin, hold.generation, hold.address);
                // The runtime of the process is initialised by now, and the process has dispatched no packet of its own.
                self.thunk(examine, origin, hold.generation)
            }
            hold_reason::PROXY => self.proxy(examine, hold.address),
            _ => self.initialising(examine, &examine.mappings()?),
        }
    }

    /// Handles a file that the process mapped. If the file was examined before, and has changed since, it is examined again.
    fn mapped_one(&self, examine: &Examine<'_>, hold: &Hold) -> Result<(), NotRead> {
        let mappings = examine.mappings()?;
        let own = mappings
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&hold.address));
        if let Some(own) = own {
            // Readers that may not look behind mappings do not see that the file has changed.
            self.libraries.compare(&own.file, hold.file);
        }
        self.probe_files(examine, &mappings);
        if let Some(own) = own.filter(|own| self.libraries.is_examined(&own.file)) {
            self.know(&own.file, hold.file);
        }
        Ok(())
    }
}
