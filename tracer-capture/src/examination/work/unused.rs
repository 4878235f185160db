//! Detaches the probes of libraries that no process uses any more, and closes their files. Otherwise a machine on which containers
//! come and go, each with a runtime of its own, would run out of descriptors.
//!
//! The recorder notes each examined process with the probed libraries that it has mapped. When all these processes of a library
//! have exited, the library is made unknown first: a process that maps it from then on is paused, and waits. Then the mappings of
//! all other examined processes are read once more, since a known file is mapped without a pause. Only then are the library's
//! probes detached.

use std::{
    collections::{HashMap, HashSet},
    sync::MutexGuard,
    thread,
    time::{Duration, Instant},
};

use tracer_common::pause::FileKey;

use super::{Work, lock};
use crate::{
    runtime::library::Claim,
    sys,
    target::{
        proc_maps::{FileId, Mapping},
        process_stat::Stat,
    },
};

/// The interval at which the recorder checks whether libraries are used.
const INTERVAL: Duration = Duration::from_secs(5);
/// The time for which a library must be unused before its probes are detached: programs often run one after the other.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between making a library unknown and checking which processes have mapped it: mappings that were under way are visible
/// then.
const SETTLING: Duration = Duration::from_millis(200);
/// The interval at which the recorder checks in between whether a process waits for the library.
const STEP: Duration = Duration::from_millis(5);
/// The maximum time for reading the mappings of a process. A process that does not answer counts as a user of every library.
const LIMIT: Duration = Duration::from_secs(1);

/// The probed libraries, and the processes that use them.
#[derive(Default)]
pub struct Uses {
    libraries: HashMap<FileId, Probed>,
    /// The processes that were examined, by process id.
    processes: HashMap<u32, User>,
    searched: Option<Instant>,
}

/// A library with probes.
#[derive(Default)]
struct Probed {
    path: String,
    /// The keys by which the programs know the library.
    keys: HashSet<FileKey>,
    unused_since: Option<Instant>,
}

/// A process that was examined.
struct User {
    start_ticks: u64,
    libraries: HashSet<FileId>,
}

impl Uses {
    fn note(&mut self, pid: u32, start_ticks: u64, mappings: &[Mapping]) {
        let is_probed = |mapping: &&Mapping| self.libraries.contains_key(&mapping.file);
        let probed = mappings.iter().filter(is_probed);
        let libraries = probed.map(|mapping| mapping.file.clone()).collect();
        self.processes.insert(pid, User { start_ticks, libraries });
    }

    /// Forgets processes that have exited. Returns the libraries that no process has used for the whole of [`PATIENCE`].
    fn unused(&mut self, is_alive: impl Fn(u32, u64) -> bool, now: Instant) -> Vec<FileId> {
        self.processes.retain(|&pid, user| is_alive(pid, user.start_ticks));
        let used: HashSet<&FileId> = self.processes.values().flat_map(|user| &user.libraries).collect();
        let mut unused = Vec::new();
        for (file, library) in &mut self.libraries {
            if used.contains(file) {
                library.unused_since = None;
            } else if *library.unused_since.get_or_insert(now) + PATIENCE <= now {
                unused.push(file.clone());
            }
        }
        unused
    }
}

/// Returns whether the process that began at that time still exists. A process that can't be examined counts as existing.
fn is_alive(pid: u32, start_ticks: u64) -> bool {
    Stat::try_of_process(pid).map_or(true, |stat| {
        stat.is_some_and(|stat| stat.start_ticks == start_ticks && !stat.has_exited())
    })
}

impl Work {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        lock(&self.uses)
    }

    /// Returns whether it is time to check for unused libraries and for processes that have exited.
    pub(in crate::examination) fn looks_for_unused(&self) -> bool {
        let (mut uses, now) = (self.uses(), Instant::now());
        let is_idle = uses.libraries.is_empty() && uses.processes.is_empty();
        if is_idle || uses.searched.is_some_and(|searched| now < searched + INTERVAL) {
            return false;
        }
        uses.searched = Some(now);
        true
    }

    /// Notes that a library gets probes.
    pub(super) fn is_probed(&self, file: &FileId, path: &str) {
        let probed = Probed {
            path: path.to_owned(),
            ..Probed::default()
        };
        self.uses().libraries.insert(file.clone(), probed);
    }

    /// Makes a file known to the programs.
    pub(super) fn know(&self, file: &FileId, key: FileKey) {
        let mut uses = self.uses();
        if let Some(library) = uses.libraries.get_mut(file) {
            library.keys.insert(key);
        }
        self.known.insert(key);
    }

    /// Notes the mappings of an examined process.
    pub(super) fn uses_of(&self, pid: u32, mappings: &[Mapping]) {
        if let Some(stat) = Stat::of_process(pid) {
            self.uses().note(pid, stat.start_ticks, mappings);
        }
    }

    /// Detaches the probes of libraries that no process uses.
    pub(super) fn release_unused(&self) {
        let mut uses = self.uses();
        let unused = uses.unused(is_alive, Instant::now());
        lock(&self.thunks).retain(|pid, _| uses.processes.contains_key(pid));
        lock(&self.placed).retain(|pid, _| uses.processes.contains_key(pid));
        drop(uses);
        for file in unused {
            self.release(&file);
        }
    }

    fn release(&self, file: &FileId) {
        // From here on, no other process begins to use the library without waiting.
        let Some(claim) = self.libraries.reclaim(file) else {
            return;
        };
        let keys = self.uses().libraries.get(file).map(|library| library.keys.clone());
        let keys = keys.unwrap_or_default();
        keys.iter().for_each(|&key| self.known.remove(key));
        if self.is_wanted(file, &claim) {
            claim.restore();
            keys.iter().for_each(|&key| self.known.insert(key));
            return;
        }
        let path = self.detach(file);
        log::info!("{path}: no process uses this library any more; its probes are detached");
        drop(claim);
    }

    /// Detaches the probes of a library in use, and forgets it, so that it is examined again.
    pub(super) fn let_go(&self, file: &FileId) {
        if let Some(claim) = self.libraries.reclaim(file) {
            let keys = self.uses().libraries.get(file).map(|library| library.keys.clone());
            keys.into_iter().flatten().for_each(|key| self.known.remove(key));
            self.detach(file);
            drop(claim);
        }
    }

    /// Detaches the probes of a library, which is claimed. Returns its path.
    fn detach(&self, file: &FileId) -> String {
        let links = lock(&self.prober).as_mut().map(|prober| prober.release(file));
        // Other libraries get their probes in between.
        drop(links);
        lock(&self.inventory).release(&file.device, file.inode, sys::monotonic_ns());
        let library = self.uses().libraries.remove(file);
        library.map(|library| library.path).unwrap_or_default()
    }

    /// Returns whether a process waits for the file, or an examined process has mapped it. Notes such a mapping.
    fn is_wanted(&self, file: &FileId, claim: &Claim<'_>) -> bool {
        let settled = Instant::now() + SETTLING;
        while Instant::now() < settled {
            thread::sleep(STEP);
            if claim.is_awaited() {
                return true;
            }
        }
        let pids: Vec<u32> = self.uses().processes.keys().copied().collect();
        let is_mapped = pids.into_iter().any(|pid| {
            if claim.is_awaited() {
                return true;
            }
            match self.examine(pid, LIMIT).and_then(|examine| examine.mappings()) {
                Ok(mappings) => {
                    self.uses_of(pid, &mappings);
                    mappings.iter().any(|mapping| mapping.file == *file)
                }
                // The process may have exited.
                Err(_) => Stat::of_process(pid).is_some_and(|stat| !stat.has_exited()),
            }
        });
        is_mapped || claim.is_awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> FileId {
        FileId {
            device: "fd:01".to_owned(),
            inode,
        }
    }

    fn mapping(inode: u64) -> Mapping {
        Mapping {
            start: 0,
            end: 1,
            offset: 0,
            file: file(inode),
            path: String::new(),
        }
    }

    #[test]
    fn a_library_is_unused_when_all_of_its_processes_have_ended_for_long() {
        let mut uses = Uses::default();
        for inode in [1, 2] {
            uses.libraries.insert(file(inode), Probed::default());
        }
        uses.note(10, 100, &[mapping(1), mapping(2), mapping(3)]);
        uses.note(11, 101, &[mapping(2)]);
        let begin = Instant::now();
        let late = begin + PATIENCE;
        let all = |_, _| true;
        assert!(uses.unused(all, late).is_empty());
        // Process 10 exits; another process soon has its number.
        let other = |pid, start| (pid, start) != (10, 100);
        assert!(uses.unused(other, begin).is_empty());
        assert!(uses.unused(other, late - Duration::from_millis(1)).is_empty());
        assert_eq!(uses.unused(other, late), [file(1)]);
        // A process maps the library again.
        uses.note(10, 200, &[mapping(1)]);
        assert!(uses.unused(all, late).is_empty());
        assert!(uses.unused(other, late).is_empty());
    }
}
