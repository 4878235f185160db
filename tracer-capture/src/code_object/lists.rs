//! The lists of all processes, followed: what came, and what went.

use std::collections::HashMap;

use tracer_core::{
    code_object::{CodeObject, CodeObjectOrigin},
    event::Origin,
};

use crate::findings::{Finder, Finding};

use super::{
    list::{self, Entry, Process},
    source,
    uri::Place,
};

/// Lists that are followed at the most; those of ended processes make room.
const MAX_LISTS: usize = 4096;

/// The lists, on the side that reads them.
pub struct Lists {
    /// By process and address.
    known: HashMap<(u32, u64), Known>,
    /// Number of the next code object.
    next: u64,
    finder: Finder,
}

/// What was last read of a list.
struct Known {
    /// Of the process: another program at the same id has another.
    generation: u32,
    /// The entries, with the numbers of their code objects.
    entries: Vec<(Entry, u64)>,
    /// The last reading failed.
    lost: bool,
}

impl Lists {
    /// Of no process yet; changes go to `finder`.
    pub fn new(finder: Finder) -> Self {
        Self {
            known: HashMap::new(),
            next: 0,
            finder,
        }
    }

    /// A list changed, while it was watched: its process is held, or at least has just told. `debug` is the address of
    /// the process's `_amdgpu_r_debug`.
    pub fn changed(&mut self, origin: Origin, generation: u32, debug: u64) {
        self.read(origin, generation, debug, true);
    }

    /// A process that runs already is attached to: what is in its list was there before.
    ///
    /// Of files that have changed since the process began nothing is told: perhaps they are not what was loaded.
    pub fn attached(&mut self, origin: Origin, generation: u32, debug: u64) {
        self.read(origin, generation, debug, false);
    }

    fn read(&mut self, origin: Origin, generation: u32, debug: u64, watched: bool) {
        let pid = origin.pid;
        let key = (pid, debug);
        let known = self.known.remove(&key).filter(|known| known.generation == generation);
        let Known { entries, lost, .. } = known.unwrap_or_else(|| Known::nothing(generation, false));
        let new = match list::read(&Process(pid), debug) {
            Ok(new) if self.has_room() => new,
            unread => {
                if let Err(error) = unread {
                    log::debug!("process {pid}: its list of code objects can't be read: {error}");
                }
                self.finder.tell(origin, Finding::ListUnread);
                self.known.insert(key, Known::nothing(generation, true));
                return;
            }
        };
        // After a list that could not be read, what is new and what was there can't be told apart.
        let how = if watched && !lost {
            CodeObjectOrigin::Loaded
        } else {
            CodeObjectOrigin::Found
        };
        let (old, ids): (Vec<Entry>, Vec<u64>) = entries.into_iter().unzip();
        let (stays, added) = list::differences(&old, &new);
        for (&id, _) in ids.iter().zip(&stays).filter(|(_, stays)| !**stays) {
            self.finder.tell(origin, Finding::Unloaded(id));
        }
        let unchanged_since = (!watched).then(|| source::began(pid).unwrap_or(i64::MIN));
        let mut kept = ids.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(&id, _)| id);
        let mut entries = Vec::with_capacity(new.len());
        for (entry, added) in new.into_iter().zip(added) {
            let id = match kept.next().filter(|_| !added) {
                Some(id) => id,
                None => {
                    let id = self.next;
                    self.next += 1;
                    self.finder.tell(
                        origin,
                        Finding::Loaded(code_object(pid, id, how, &entry, unchanged_since)),
                    );
                    id
                }
            };
            entries.push((entry, id));
        }
        let lost = false;
        self.known.insert(
            key,
            Known {
                generation,
                entries,
                lost,
            },
        );
    }

    fn has_room(&mut self) -> bool {
        if self.known.len() >= MAX_LISTS {
            let lives = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
            self.known.retain(|(pid, _), _| lives(pid));
        }
        self.known.len() < MAX_LISTS
    }
}

impl Known {
    fn nothing(generation: u32, lost: bool) -> Self {
        Self {
            generation,
            entries: Vec::new(),
            lost,
        }
    }
}

/// Reads what an entry stands for.
fn code_object(pid: u32, id: u64, origin: CodeObjectOrigin, entry: &Entry, unchanged_since: Option<i64>) -> CodeObject {
    let contents = source::contents(pid, Place::parse(&entry.uri), unchanged_since);
    let uri = String::from_utf8_lossy(&entry.uri).into_owned();
    if let Err(reason) = &contents {
        log::debug!("process {pid}: the kernels of {uri} are not known: {}", reason.name());
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
