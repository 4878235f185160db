//! Tracks which mapped files are HSA runtimes or HIP, and what the resolver found in them. Each file is examined once.

mod builds;

use std::{
    collections::{BTreeSet, HashMap},
    os::fd::AsFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use tracer_common::pause::FileKey;

use crate::{
    api_choice::Api,
    confined::{Examine, File, NotRead, ParseFailed, ReadError},
    inventory::Library,
    probes::Target,
    runtime::resolver::{Entries, Resolution},
    target::proc_maps::{FileId, Mapping},
};
use builds::{Builds, Found};

pub use builds::PATIENCE;

/// Number of bits in a device's minor number in the kernel (MINORBITS of include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// The files seen so far. Several threads use this type.
pub struct Libraries {
    seen: Mutex<HashMap<FileId, Seen>>,
    /// Signals that a thread has finished with a file.
    done: Condvar,
    builds: Builds,
    /// Number of runtimes found so far.
    runtimes: AtomicUsize,
}

/// The state of a known file.
enum Seen {
    /// A thread examines the file, puts probes into it, or removes them. `is_awaited`: whether another thread waits for that.
    UnderWay { is_awaited: bool },
    /// No thread works on the file.
    Examined {
        /// The file's key at the time of the examination; `None` if it is not a regular file.
        key: Option<FileKey>,
        /// What the file has probes for, if it has some. They keep its inode from being used for another file.
        probed: Option<Probed>,
    },
}

impl Seen {
    /// Returns whether a thread examined the file, and found nothing to attach probes to.
    const fn is_plain(&self) -> bool {
        matches!(self, Self::Examined { probed: None, .. })
    }
}

/// A file with probes.
pub struct Probed {
    /// A hash of its contents.
    pub contents: u64,
    /// The runtime, if the file is one.
    pub runtime: Option<Arc<Runtime>>,
}

/// The result of comparing a file with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The file is the same, or it is not known: in that case it is examined anyway.
    Same,
    /// The file was written to, or another file has its inode. It is not known any more.
    Forgotten,
    /// The file has probes, and was changed: its contents, if their hash is another one, or only its names or access rights.
    Probed {
        /// The hash of its contents when it was examined.
        contents: u64,
    },
}

/// The largest number of files that are remembered although they have no probes. Beyond it, all of them are examined again when a
/// process maps them: on a machine on which containers come and go, most of them are gone.
const MAX_PLAIN: usize = 1 << 14;

/// An HSA runtime.
pub struct Runtime {
    /// Identifies the file.
    pub id: FileId,
    /// The open file. tracer keeps it open so that its inode can't be reused for another file.
    pub file: File,
    /// The path in the first process that mapped the file.
    pub path: String,
    /// A hash of its contents.
    pub contents: u64,
    /// The resolver's result.
    pub resolution: Arc<Resolution>,
    /// The functions whose calls are captured.
    pub entries: Entries,
    /// Whether tracer has searched an initialised process for the functions behind API tables.
    initialised: AtomicBool,
    /// File offsets of the functions that ring proxies.
    proxies: Mutex<BTreeSet<u64>>,
}

/// A library of HIP or OpenCL.
pub struct Client {
    /// Identifies the file.
    pub id: FileId,
    /// The description of the library.
    pub library: Library,
    /// The open file.
    pub file: File,
    /// A hash of its contents.
    pub contents: u64,
    /// The functions whose calls are captured.
    pub entries: Entries,
}

/// The result of examining a mapped file.
pub enum Examined {
    /// The file gets no probes.
    Nothing(Option<FileKey>),
    /// The file is an HSA runtime.
    Runtime(FileKey, Box<(Library, Runtime)>),
    /// The file is a library of HIP or OpenCL.
    Client(FileKey, Box<Client>),
    /// The file is one of them, but can't be traced, for this reason.
    Broken(FileKey, String),
    /// The process or its mapping is gone. Another process may map the file again.
    Gone,
    /// The file could not be examined now, for this reason.
    Unopened(NotRead),
}

/// Which thread may work on a file.
pub enum Turn<'a> {
    /// The caller may. Other threads wait until the claim is settled or dropped.
    Own(Claim<'a>),
    /// The file is examined, and has its probes.
    Done,
    /// Another thread did not finish with the file before the deadline.
    Late,
}

/// The exclusive right to work on a file. If it is dropped unsettled, the file stays unknown.
pub struct Claim<'a> {
    libraries: &'a Libraries,
    file: &'a FileId,
    /// The state of the file before [`Libraries::reclaim`].
    before: Option<Seen>,
    settled: Option<Seen>,
}

impl Claim<'_> {
    /// Records the result for the file, whose probes are in place.
    pub fn settle(mut self, key: Option<FileKey>, probed: Option<Probed>) {
        if probed.as_ref().is_some_and(|probed| probed.runtime.is_some()) {
            self.libraries.runtimes.fetch_add(1, Ordering::AcqRel);
        }
        self.settled = Some(Seen::Examined { key, probed });
    }

    /// Restores the state of a file that was claimed by [`Libraries::reclaim`].
    pub fn restore(mut self) {
        self.settled = self.before.take();
    }

    /// Returns whether another thread waits for the file.
    pub fn is_awaited(&self) -> bool {
        matches!(
            self.libraries.seen().get(self.file),
            Some(Seen::UnderWay { is_awaited: true })
        )
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut seen = self.libraries.seen();
        if seen.len() > MAX_PLAIN && seen.values().filter(|seen| seen.is_plain()).count() >= MAX_PLAIN {
            seen.retain(|_, seen| !seen.is_plain());
        }
        match self.settled.take() {
            Some(examined) => seen.insert(self.file.clone(), examined),
            None => seen.remove(self.file),
        };
        self.libraries.done.notify_all();
    }
}

impl Libraries {
    /// Creates an empty set. `debuginfod`: whether debug files may come from the network; `user`: the invoking user's id.
    pub fn new(debuginfod: bool, api: Api, user: u32) -> Self {
        Self {
            seen: Mutex::default(),
            done: Condvar::new(),
            builds: Builds::new(debuginfod, api, user),
            runtimes: AtomicUsize::new(0),
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<FileId, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a file. If another thread works on the file, waits for that thread until `deadline`.
    pub fn claim<'a>(&'a self, file: &'a FileId, deadline: Instant) -> Turn<'a> {
        let mut seen = self.seen();
        loop {
            match seen.get_mut(file) {
                Some(Seen::Examined { .. }) => return Turn::Done,
                None => {
                    seen.insert(file.clone(), Seen::UnderWay { is_awaited: false });
                    return Turn::Own(Claim {
                        libraries: self,
                        file,
                        before: None,
                        settled: None,
                    });
                }
                Some(Seen::UnderWay { is_awaited }) => {
                    *is_awaited = true;
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Turn::Late;
                    }
                    let waited = self.done.wait_timeout(seen, left);
                    seen = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Claims an examined file again. Other threads that claim the file wait until this claim is dropped; the file is unknown if it
    /// is dropped unsettled. Returns `None` if the file is unknown, or another thread works on it.
    pub fn reclaim<'a>(&'a self, file: &'a FileId) -> Option<Claim<'a>> {
        let mut seen = self.seen();
        let known = seen.get_mut(file);
        let of_file = known.filter(|seen| matches!(seen, Seen::Examined { .. }))?;
        let before = std::mem::replace(of_file, Seen::UnderWay { is_awaited: false });
        Some(Claim {
            libraries: self,
            file,
            before: Some(before),
            settled: None,
        })
    }

    /// Examines the file of a mapping of process `pid`.
    pub fn examine(&self, examine: &Examine<'_>, pid: u32, mapping: &Mapping) -> Examined {
        let file = match examine.mapped(mapping) {
            Ok(file) => file,
            // For example a device. It is skipped each time a process maps it.
            Err(ReadError::NotRegular) => return Examined::Nothing(None),
            Err(error) => return failed(error.into()),
        };
        let mut library = Library {
            path: mapping.path.clone(),
            device: mapping.file.device.clone(),
            inode: mapping.file.inode,
            first_pid: pid,
            ..Library::default()
        };
        let Some(key) = key(mapping, &file) else {
            return Examined::Nothing(None);
        };
        let reason = match self.builds.load(examine, mapping, file) {
            Ok(Ok(Some(Found::Runtime(runtime)))) => {
                let resolution = &runtime.resolution;
                library.build_id.clone_from(&resolution.build_id);
                library.soname.clone_from(&resolution.soname);
                library.thunk = resolution.may_hand_over();
                return Examined::Runtime(key, Box::new((library, *runtime)));
            }
            Ok(Ok(Some(Found::Client(file, contents, entries)))) => {
                library.build_id.clone_from(&entries.build_id);
                library.soname.clone_from(&entries.soname);
                library.client = true;
                let client = Client {
                    id: mapping.file.clone(),
                    library,
                    file,
                    contents,
                    entries,
                };
                return Examined::Client(key, Box::new(client));
            }
            Ok(Ok(None)) => return Examined::Nothing(Some(key)),
            Ok(Err(reason)) => reason,
            Err(error @ (NotRead::Parse(ParseFailed::Crashed) | NotRead::Read(ReadError::TooLarge))) => {
                error.to_string()
            }
            Err(error) => return failed(error),
        };
        Examined::Broken(key, format!("cannot trace {}: {reason}", mapping.path))
    }

    /// Returns whether the file was opened and examined.
    pub fn is_examined(&self, file: &FileId) -> bool {
        matches!(self.seen().get(file), Some(Seen::Examined { key: Some(_), .. }))
    }

    /// Compares a file with what is known of it, by its key. A file without probes that has changed is forgotten, so that it is
    /// examined again: perhaps another file has its inode now.
    pub fn compare(&self, file: &FileId, now: FileKey) -> Compared {
        let mut seen = self.seen();
        match seen.get(file) {
            Some(Seen::Examined {
                key: Some(then),
                probed,
            }) if now.inode != 0 && *then != now => {
                if let Some(Probed { contents, .. }) = probed {
                    return Compared::Probed { contents: *contents };
                }
                seen.remove(file);
                Compared::Forgotten
            }
            _ => Compared::Same,
        }
    }

    /// Sets the key of a file whose contents are those that were examined.
    pub fn is_still(&self, file: &FileId, now: FileKey) {
        if let Some(Seen::Examined { key, .. }) = self.seen().get_mut(file) {
            *key = Some(now);
        }
    }

    /// Returns a hash of the contents of the file behind a mapping.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn contents(examine: &Examine<'_>, mapping: &Mapping) -> Result<u64, ReadError> {
        let file = examine.mapped(mapping)?;
        Ok(builds::hash(examine.library(&file)?.bytes()))
    }

    /// Returns the number of runtimes found so far.
    pub fn runtimes(&self) -> usize {
        self.runtimes.load(Ordering::Acquire)
    }

    /// Returns the runtime in this file, if it is one.
    pub fn runtime(&self, file: &FileId) -> Option<Arc<Runtime>> {
        match self.seen().get(file)? {
            Seen::Examined { probed, .. } => probed.as_ref()?.runtime.clone(),
            Seen::UnderWay { .. } => None,
        }
    }
}

impl Runtime {
    /// Returns the library as a target for probes.
    pub fn target(&self) -> Target<'_> {
        Target {
            file: self.file.as_fd(),
            path: &self.path,
        }
    }

    /// Returns whether the functions behind its API tables have their probes.
    pub fn is_initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// Records that the functions behind its API tables have their probes.
    pub fn set_initialised(&self) {
        self.initialised.store(true, Ordering::Release);
    }

    /// Returns the file offsets that have proxy probes.
    pub fn proxies(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts a failed read into a result.
fn failed(error: NotRead) -> Examined {
    match error {
        NotRead::Read(ReadError::Refused(libc::ENOENT | libc::ESRCH) | ReadError::Other) => Examined::Gone,
        error => Examined::Unopened(error),
    }
}

/// Returns the kernel's key for a file.
fn key(mapping: &Mapping, file: &File) -> Option<FileKey> {
    key_at(&mapping.file, file.info().changed)
}

/// Returns the kernel's key for a file that was changed at this time (s and ns of the real-time clock). Its device is that in
/// /proc/PID/maps, which `stat` does not always return.
pub fn key_at(file: &FileId, (seconds, nsec): (i64, i64)) -> Option<FileKey> {
    let (major, minor) = file.device.split_once(':')?;
    let hex = |text| u32::from_str_radix(text, 16).ok();
    let device = hex(major)?.checked_mul(1 << MINOR_BITS)? | hex(minor)?;
    Some(FileKey::new(
        device,
        file.inode,
        seconds.cast_unsigned(),
        u32::try_from(nsec).ok()?,
    ))
}

#[cfg(test)]
mod tests;
