//! Libraries that no process uses any more: their probes are taken out, and their files closed. Else a machine on which containers
//! come and go, each with a runtime of its own, would run out of descriptors.
//!
//! Each process that is examined is noted with the probed libraries that it has mapped. A library of which all these processes
//! have ended is made unknown first: who maps it from then on is paused, and waits. Then the mappings of all other processes
//! that were examined are read once more, since what is known is mapped without a pause. Only then its probes go.

use std::{
    collections::{HashMap, HashSet},
    sync::{MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tracer_common::pause::FileKey;

use super::work::{Work, locked};
use crate::{
    library::Claim,
    proc_maps::{FileId, Mapping},
    process_stat::Stat,
};

/// How often it is looked whether libraries are used.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long a library is unused before its probes go: programs often run one after the other.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between making a library unknown and looking who has it: mappings that were under way are there then.
const SETTLING: Duration = Duration::from_millis(200);
/// How often it is looked meanwhile whether somebody waits.
const STEP: Duration = Duration::from_millis(5);
/// How long reading the mappings of a process may take. One that does not answer uses every library.
const LIMIT: Duration = Duration::from_secs(1);

/// Who uses which probed library.
#[derive(Default)]
pub struct Uses {
    libraries: HashMap<FileId, Probed>,
    /// Processes that were examined, by process id.
    processes: HashMap<u32, User>,
    looked: Option<Instant>,
}

/// A library with probes.
#[derive(Default)]
struct Probed {
    path: String,
    /// What the programs know it by.
    keys: HashSet<FileKey>,
    unused_since: Option<Instant>,
}

/// A process that was examined.
struct User {
    start_ticks: u64,
    libraries: HashSet<FileId>,
}

impl Uses {
    /// Whether it is time to look for libraries that nobody uses, and for processes that have ended.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_idle = self.libraries.is_empty() && self.processes.is_empty();
        if is_idle || self.looked.is_some_and(|looked| now < looked + INTERVAL) {
            return false;
        }
        self.looked = Some(now);
        true
    }

    fn note(&mut self, pid: u32, start_ticks: u64, mappings: &[Mapping]) {
        let libraries = mappings
            .iter()
            .map(|mapping| &mapping.file)
            .filter(|file| self.libraries.contains_key(file));
        let libraries = libraries.cloned().collect();
        self.processes.insert(pid, User { start_ticks, libraries });
    }

    /// Forgets processes that have ended; libraries that nobody has used for long.
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

/// Whether the process that began at that time is still there. One that can't be looked at is.
fn is_alive(pid: u32, start_ticks: u64) -> bool {
    Stat::try_of_process(pid).map_or(true, |stat| {
        stat.is_some_and(|stat| stat.start_ticks == start_ticks && !stat.has_exited())
    })
}

impl Work {
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether libraries that nobody uses are to be looked for.
    pub(super) fn looks_for_unused(&self) -> bool {
        self.uses().is_due()
    }

    /// A library gets probes.
    pub(super) fn is_probed(&self, file: &FileId, path: &str) {
        let probed = Probed {
            path: path.to_owned(),
            ..Probed::default()
        };
        self.uses().libraries.insert(file.clone(), probed);
    }

    /// The programs know a file from now on.
    pub(super) fn know(&self, file: &FileId, key: FileKey) {
        let mut uses = self.uses();
        if let Some(library) = uses.libraries.get_mut(file) {
            library.keys.insert(key);
        }
        self.known.insert(key);
    }

    /// A process that was examined has these mappings.
    pub(super) fn uses_of(&self, pid: u32, mappings: &[Mapping]) {
        if let Some(stat) = Stat::of_process(pid) {
            self.uses().note(pid, stat.start_ticks, mappings);
        }
    }

    /// Takes out the probes of libraries that nobody uses.
    pub(super) fn release_unused(&self) {
        let unused = self.uses().unused(is_alive, Instant::now());
        for file in unused {
            self.release(&file);
        }
    }

    fn release(&self, file: &FileId) {
        // From here on nobody else begins to use it without waiting.
        let Some((claim, key, runtime)) = self.libraries.reclaim(file) else {
            return;
        };
        let keys = self.uses().libraries.get(file).map(|library| library.keys.clone());
        let keys = keys.unwrap_or_default();
        keys.iter().for_each(|&key| self.known.remove(key));
        if self.is_wanted(file, &claim) {
            claim.restore(key, runtime);
            keys.iter().for_each(|&key| self.known.insert(key));
            return;
        }
        let links = locked(&self.prober).as_mut().map(|prober| prober.release(file));
        // Other libraries get theirs meanwhile.
        drop(links);
        let library = self.uses().libraries.remove(file);
        let path = library.map(|library| library.path).unwrap_or_default();
        log::info!("{path}: no process uses this library any more; its probes are detached");
        drop(claim);
    }

    /// Whether a process waits for the file, or one that was examined has mapped it. That is noted then.
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
                // It may have ended.
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
        // Process 10 ends; its number is another's soon.
        let other = |pid, start| (pid, start) != (10, 100);
        assert!(uses.unused(other, begin).is_empty());
        assert!(uses.unused(other, late - Duration::from_millis(1)).is_empty());
        assert_eq!(uses.unused(other, late), [file(1)]);
        // Somebody comes again.
        uses.note(10, 200, &[mapping(1)]);
        assert!(uses.unused(all, late).is_empty());
        assert!(uses.unused(other, late).is_empty());
    }
}
