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
        /// The runtime, if the file is one.
        runtime: Option<Arc<Runtime>>,
    },
}

/// An HSA runtime.
pub struct Runtime {
    /// Identifies the file.
    pub id: FileId,
    /// The open file. tracer keeps it open so that its inode can't be reused for another file.
    pub file: File,
    /// The path in the first process that mapped the file.
    pub path: String,
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
    pub fn settle(mut self, key: Option<FileKey>, runtime: Option<Arc<Runtime>>) {
        if runtime.is_some() {
            self.libraries.runtimes.fetch_add(1, Ordering::AcqRel);
        }
        self.settled = Some(Seen::Examined { key, runtime });
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
            Ok(Ok(Some(Found::Client(file, entries)))) => {
                library.build_id.clone_from(&entries.build_id);
                library.soname.clone_from(&entries.soname);
                library.client = true;
                let client = Client {
                    id: mapping.file.clone(),
                    library,
                    file,
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

    /// Forgets a file that has changed since its examination, so that it is examined again. Keeps a runtime, whose probes are in
    /// place: its key also changes with its names or access rights.
    pub fn forget_if_changed(&self, file: &FileId, now: FileKey) {
        let mut seen = self.seen();
        if let Some(Seen::Examined {
            key: Some(then),
            runtime: None,
        }) = seen.get(file)
            && now.inode != 0
            && *then != now
        {
            seen.remove(file);
        }
    }

    /// Returns the number of runtimes found so far.
    pub fn runtimes(&self) -> usize {
        self.runtimes.load(Ordering::Acquire)
    }

    /// Returns the runtime in this file, if it is one.
    pub fn runtime(&self, file: &FileId) -> Option<Arc<Runtime>> {
        match self.seen().get(file)? {
            Seen::Examined { runtime, .. } => runtime.clone(),
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

/// Returns the kernel's key for a file. Its device is that in /proc/PID/maps, which `stat` does not always return.
fn key(mapping: &Mapping, file: &File) -> Option<FileKey> {
    let (major, minor) = mapping.file.device.split_once(':')?;
    let hex = |text| u32::from_str_radix(text, 16).ok();
    let device = hex(major)?.checked_mul(1 << MINOR_BITS)? | hex(minor)?;
    let (seconds, nsec) = file.info().changed;
    Some(FileKey::new(
        device,
        mapping.file.inode,
        seconds.cast_unsigned(),
        u32::try_from(nsec).ok()?,
    ))
}

#[cfg(test)]
mod tests;
