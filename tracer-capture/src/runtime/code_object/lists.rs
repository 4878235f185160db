//! Tracks the lists of all processes, and reports which code objects were loaded and unloaded.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracer_common::r_debug::L_NAME;
use tracer_core::words::Named;
use tracer_core::{
    code_object::{CodeObject, CodeObjectOrigin},
    event::Origin,
};

use super::list::{self, Entry};
use crate::{
    confined::{Examine, Remote},
    examination::discoveries::{Discovery, DiscoverySender},
};

/// Largest number of lists to track. At the limit, the lists of processes that have exited are removed.
const MAX_LISTS: usize = 4096;

/// The lists, on the side that reads them. Several threads use this type, but only one at a time for the same process.
pub struct Lists {
    /// By process and address of the list.
    known: Mutex<HashMap<(u32, u64), Known>>,
    /// Number of the next code object.
    next: AtomicU64,
    finder: DiscoverySender,
}

/// The result of the last read of a list.
#[derive(Default)]
struct Known {
    /// Generation of the process: another program with the same id has another generation.
    generation: u32,
    /// The entries, with the numbers of their code objects.
    entries: Vec<(Entry, u64)>,
    /// Whether the last read failed.
    lost: bool,
}

impl Lists {
    /// Creates an empty tracker that reports changes to `finder`.
    pub fn new(finder: DiscoverySender) -> Self {
        Self {
            known: Mutex::default(),
            next: AtomicU64::new(0),
            finder,
        }
    }

    /// Handles a change to a list that tracer watches. The process is paused, or has at least just reported the change. `debug` is
    /// the address of the process's `_amdgpu_r_debug`.
    pub fn changed(&self, examine: &Examine<'_>, origin: Origin, generation: u32, debug: u64) {
        self.read(examine, origin, generation, debug, true);
    }

    /// Like [`Self::changed`], for a process that can't be examined.
    pub fn unread(&self, origin: Origin, generation: u32, debug: u64) {
        self.finder.report(origin, Discovery::ListUnread);
        let lost = Known {
            generation,
            lost: true,
            ..Known::default()
        };
        self.known().insert((origin.pid, debug), lost);
    }

    /// Handles a process that was already running when tracer attached to it: the entries of its list are older.
    ///
    /// Does not report kernels from files that have changed since the process started: such a file may differ from the one that was
    /// loaded.
    pub fn attached(&self, examine: &Examine<'_>, origin: Origin, generation: u32, debug: u64) {
        self.read(examine, origin, generation, debug, false);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(u32, u64), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, examine: &Examine<'_>, origin: Origin, generation: u32, debug: u64, watched: bool) {
        let pid = origin.pid;
        let known = self.known().remove(&(pid, debug));
        let known = known.filter(|known| known.generation == generation);
        let Known { entries, lost, .. } = known.unwrap_or_default();
        let new = match list::read(&memory(examine, debug, &entries), debug) {
            Ok(new) if self.has_room() => new,
            unread => {
                if let Err(error) = unread {
                    log::debug!("process {pid}: cannot read its list of code objects: {error}");
                }
                self.unread(origin, generation, debug);
                return;
            }
        };
        // After a failed read, additions can't be distinguished from older entries.
        let how = if watched && !lost {
            CodeObjectOrigin::Loaded
        } else {
            CodeObjectOrigin::Found
        };
        let (old, ids): (Vec<Entry>, Vec<u64>) = entries.into_iter().unzip();
        let (stays, added) = list::differences(&old, &new);
        for (&id, _) in ids.iter().zip(&stays).filter(|(_, stays)| !**stays) {
            self.finder.report(origin, Discovery::Unloaded(id));
        }
        let unchanged_since = (!watched).then(|| examine.began().ok().flatten().unwrap_or(i64::MIN));
        let mut kept = ids.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(&id, _)| id);
        let number = |(entry, added): (Entry, bool)| {
            let kept = kept.next().filter(|_| !added);
            let id = kept.unwrap_or_else(|| {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                let found = code_object(examine, pid, id, how, &entry, unchanged_since);
                self.finder.report(origin, Discovery::Loaded(found));
                id
            });
            (entry, id)
        };
        let entries = new.into_iter().zip(added).map(number).collect();
        let known = Known {
            generation,
            entries,
            lost: false,
        };
        self.known().insert((pid, debug), known);
    }

    fn has_room(&self) -> bool {
        let mut known = self.known();
        if known.len() >= MAX_LISTS {
            let lives = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
            known.retain(|(pid, _), _| lives(pid));
        }
        known.len() < MAX_LISTS
    }
}

/// Returns the memory of a process whose list was last read as `entries`. Prefetches the list with two requests, instead of one per
/// page.
fn memory<'a>(examine: &Examine<'a>, debug: u64, entries: &[(Entry, u64)]) -> Remote<'a> {
    let memory = examine.memory();
    let nodes = entries.iter().map(|(entry, _)| entry.node);
    memory.fetch_all(nodes.clone().chain([debug]));
    memory.fetch_all(nodes.filter_map(|node| memory.word(node.wrapping_add(L_NAME as u64)).ok()));
    memory
}

/// Reads the code object of an entry.
fn code_object(
    examine: &Examine<'_>,
    pid: u32,
    id: u64,
    origin: CodeObjectOrigin,
    entry: &Entry,
    unchanged_since: Option<i64>,
) -> CodeObject {
    let contents = examine.code_object(&entry.uri, unchanged_since);
    let uri = String::from_utf8_lossy(&entry.uri).into_owned();
    if let Err(reason) = &contents {
        log::debug!("process {pid}: cannot read the kernels of {uri}: {}", reason.name());
    }
    let (target, version, kernels) = match contents {
        Ok(contents) => (contents.target, contents.version, Ok(contents.kernels)),
        Err(reason) => (None, None, Err(reason)),
    };
    CodeObject {
        id,
        origin,
        base: entry.base,
        uri,
        target,
        version,
        kernels,
    }
}
