//! Which mapped files are HSA runtimes or HIP, and what the resolver found in them. Each file is looked at once.

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
    confined::{Examine, File, NotRead, ParseFailed, ReadError},
    inventory::Library,
    probes::{Target, api::Api},
    proc_maps::{FileId, Mapping},
    resolver::{Entries, Resolution},
};
use builds::{Builds, Found};

pub use builds::PATIENCE;

/// Bits of a device's minor number in the kernel (MINORBITS of include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// Files seen so far. Several threads use it.
pub struct Libraries {
    seen: Mutex<HashMap<FileId, Seen>>,
    /// A thread has done with a file.
    done: Condvar,
    builds: Builds,
    /// Runtimes that were found so far.
    runtimes: AtomicUsize,
}

/// A file that was come across.
enum Seen {
    /// A thread looks at it, puts probes into it, or takes them out. Whether others wait for that.
    UnderWay { is_awaited: bool },
    /// That is done.
    Examined {
        /// What it was then; `None` where it is no regular file.
        key: Option<FileKey>,
        /// If it is one.
        runtime: Option<Arc<Runtime>>,
    },
}

/// An HSA runtime.
pub struct Runtime {
    /// Which file it is.
    pub id: FileId,
    /// The file, kept so that its inode can't be reused for another.
    pub file: File,
    /// Path as the first process saw it.
    pub path: String,
    /// What the resolver found.
    pub resolution: Arc<Resolution>,
    /// The functions whose calls are captured.
    pub entries: Entries,
    /// Whether the functions behind API tables have been looked for in an initialised process.
    initialised: AtomicBool,
    /// Where in the file functions that ring proxies were found.
    proxies: Mutex<BTreeSet<u64>>,
}

/// A HIP library.
pub struct Hip {
    /// Which file it is.
    pub id: FileId,
    /// What it is.
    pub library: Library,
    /// The file.
    pub file: File,
    /// The functions whose calls are captured.
    pub entries: Entries,
}

/// What looking at a mapped file gave.
pub enum Look {
    /// Nothing that gets probes.
    Nothing(Option<FileKey>),
    /// An HSA runtime.
    Runtime(FileKey, Box<(Library, Runtime)>),
    /// A HIP library.
    Hip(FileKey, Box<Hip>),
    /// It is one of them, but can't be traced: why.
    Broken(FileKey, String),
    /// The process, or its mapping, is gone: another process may map it again.
    Gone,
    /// It could not be looked at now: why.
    Unopened(NotRead),
}

/// Whose turn a file is.
pub enum Turn<'a> {
    /// The caller's. Others wait until this is settled or dropped.
    Own(Claim<'a>),
    /// It is examined, and has its probes.
    Done,
    /// Another thread has not come to an end with it in time.
    Late,
}

/// The right to look at a file. If it is dropped unsettled, the file stays unknown.
pub struct Claim<'a> {
    libraries: &'a Libraries,
    file: &'a FileId,
    settled: Option<Seen>,
}

impl Claim<'_> {
    /// What the file is known for from now on. Its probes are in.
    pub fn settle(mut self, key: Option<FileKey>, runtime: Option<Arc<Runtime>>) {
        if runtime.is_some() {
            self.libraries.runtimes.fetch_add(1, Ordering::AcqRel);
        }
        self.settled = Some(Seen::Examined { key, runtime });
    }

    /// As [`Self::settle`], for a file that [`Libraries::reclaim`] gave.
    pub fn restore(mut self, key: Option<FileKey>, runtime: Option<Arc<Runtime>>) {
        self.settled = Some(Seen::Examined { key, runtime });
    }

    /// Whether another thread waits for it.
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
    /// None yet. `debuginfod`: whether debug files may come from the network; `user`: the invoking user's id.
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

    /// Asks for a file, and waits until `deadline` for another thread that is at it.
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

    /// Makes a file unknown, for a moment at first: whoever asks for it waits until the claim is dropped. `None` if it is not known,
    /// or somebody looks at it.
    pub fn reclaim<'a>(&'a self, file: &'a FileId) -> Option<(Claim<'a>, Option<FileKey>, Option<Arc<Runtime>>)> {
        let mut seen = self.seen();
        let of_file = seen.get_mut(file)?;
        if matches!(of_file, Seen::UnderWay { .. }) {
            return None;
        }
        match std::mem::replace(of_file, Seen::UnderWay { is_awaited: false }) {
            Seen::UnderWay { .. } => None,
            Seen::Examined { key, runtime } => {
                let claim = Claim {
                    libraries: self,
                    file,
                    settled: None,
                };
                Some((claim, key, runtime))
            }
        }
    }

    /// Looks at the file of a mapping of process `pid`.
    pub fn look(&self, examine: &Examine<'_>, pid: u32, mapping: &Mapping) -> Look {
        let file = match examine.mapped(mapping) {
            Ok(file) => file,
            // A device, for example. It is passed over whenever it is mapped.
            Err(ReadError::NotRegular) => return Look::Nothing(None),
            Err(error) => return failed(error.into()),
        };
        let library = Library {
            path: mapping.path.clone(),
            device: mapping.file.device.clone(),
            inode: mapping.file.inode,
            first_pid: pid,
            ..Library::default()
        };
        let Some(key) = key(mapping, &file) else {
            return Look::Nothing(None);
        };
        match self.builds.load(examine, mapping, file) {
            Ok(Ok(Some(Found::Runtime(runtime)))) => {
                let library = Library {
                    build_id: runtime.resolution.build_id.clone(),
                    soname: runtime.resolution.soname.clone(),
                    thunk: runtime.resolution.may_hand_over(),
                    ..library
                };
                Look::Runtime(key, Box::new((library, *runtime)))
            }
            Ok(Ok(Some(Found::Hip(file, entries)))) => {
                let library = Library {
                    build_id: entries.build_id.clone(),
                    soname: entries.soname.clone(),
                    hip: true,
                    ..library
                };
                Look::Hip(
                    key,
                    Box::new(Hip {
                        id: mapping.file.clone(),
                        library,
                        file,
                        entries,
                    }),
                )
            }
            Ok(Ok(None)) => Look::Nothing(Some(key)),
            Ok(Err(reason)) => Look::Broken(key, format!("cannot trace {}: {reason}", mapping.path)),
            Err(NotRead::Parse(ParseFailed::Crashed)) => {
                Look::Broken(key, format!("cannot trace {}: {}", mapping.path, ParseFailed::Crashed))
            }
            Err(NotRead::Read(ReadError::TooLarge)) => {
                Look::Broken(key, format!("cannot trace {}: {}", mapping.path, ReadError::TooLarge))
            }
            Err(error) => failed(error),
        }
    }

    /// Whether a file was opened and examined.
    pub fn is_examined(&self, file: &FileId) -> bool {
        matches!(self.seen().get(file), Some(Seen::Examined { key: Some(_), .. }))
    }

    /// A file that has changed since it was examined is to be examined again. That its names or rights changed is no reason for a
    /// runtime, whose probes are in.
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

    /// How many runtimes were found so far.
    pub fn runtimes(&self) -> usize {
        self.runtimes.load(Ordering::Acquire)
    }

    /// The runtime in this file, if it is one.
    pub fn runtime(&self, file: &FileId) -> Option<Arc<Runtime>> {
        match self.seen().get(file)? {
            Seen::Examined { runtime, .. } => runtime.clone(),
            Seen::UnderWay { .. } => None,
        }
    }
}

impl Runtime {
    /// The library, as probes are put into it.
    pub fn target(&self) -> Target<'_> {
        Target {
            file: self.file.as_fd(),
            path: &self.path,
        }
    }

    /// Whether the functions behind its API tables have their probes.
    pub fn is_initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// They have.
    pub fn set_initialised(&self) {
        self.initialised.store(true, Ordering::Release);
    }

    /// Places in the file that have probes of proxies.
    pub fn proxies(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What it means that a file was not read.
fn failed(error: NotRead) -> Look {
    match error {
        NotRead::Read(ReadError::Refused(libc::ENOENT | libc::ESRCH) | ReadError::Other) => Look::Gone,
        error => Look::Unopened(error),
    }
}

/// How the kernel knows a file: its device as /proc/PID/maps has it, which is not always that of `stat`.
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
