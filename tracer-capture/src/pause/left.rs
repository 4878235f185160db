//! Entries of paused processes that a dead recorder left, in a pinned map.
//!
//! While a recorder runs, its map of entries is pinned below /sys/fs/bpf. If the recorder and its guardians die at once, the next
//! tracer that captures, and `tracer doctor --resume`, find the map there, and resume the processes that it names.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use aya::maps::{Map, MapData};
use tracer_common::pause::STALE_NS;

use super::{
    entries::Entries,
    resume::{Outcome, Step, resume},
};
use crate::{
    CaptureError, sys,
    target::{pid_namespace, process_stat::Stat},
};

/// The usual mount point of BPF's file system.
const FILE_SYSTEM: &str = "/sys/fs/bpf";
/// The folder in it, which belongs to root alone.
const FOLDER: &str = "/sys/fs/bpf/tracer";
/// The time between two rounds over entries.
const ROUND: Duration = Duration::from_millis(2);

/// A pinned map. Only [`Pin::remove`] removes it.
#[derive(Debug)]
pub struct Pin {
    /// The path of the map.
    pub path: PathBuf,
}

/// A process that a dead recorder had paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The process id.
    pub pid: u32,
    /// The recorder's process id.
    pub recorder: u32,
    /// The outcome of the pause.
    pub outcome: Outcome,
}

impl Pin {
    /// Pins the map under the recorder's name.
    ///
    /// # Errors
    /// Fails in a pid namespace of its own, without BPF's file system, and if another user owns the folder.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let failed = |error| CaptureError::system("pinning the map of paused processes", error);
        require_mount()?;
        if let Err(error) = fs::DirBuilder::new().mode(0o700).create(FOLDER)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(failed(error));
        }
        require_ownership()?;
        let Map::Array(data) = map else {
            return Err(CaptureError::Missing("PAUSES"));
        };
        let own = std::process::id();
        let start = Stat::of_process(own).map_or(0, |stat| stat.start_ticks);
        let path = Path::new(FOLDER).join(format!("pauses-{own}-{start}"));
        data.pin(&path).map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self { path })
    }

    /// Removes the map.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn require_mount() -> Result<(), CaptureError> {
    let found = rustix::fs::statfs(FILE_SYSTEM);
    if found.is_ok_and(|found| i128::from(found.f_type) == i128::from(libc::BPF_FS_MAGIC)) {
        return Ok(());
    }
    let why = format!("no BPF file system is mounted at {FILE_SYSTEM}; run `mount -t bpf bpf {FILE_SYSTEM}`");
    Err(not_searched(io::Error::other(why)))
}

/// Requires that no user except root can change the folder; its parent is sticky.
fn require_ownership() -> Result<(), CaptureError> {
    let folder = fs::symlink_metadata(FOLDER).map_err(not_searched)?;
    if folder.is_dir() && folder.uid() == 0 && folder.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("{FOLDER} does not belong to root alone; remove it");
    Err(not_searched(io::Error::other(why)))
}

fn not_searched(error: io::Error) -> CaptureError {
    CaptureError::system("searching for maps of paused processes", error)
}

/// Resumes the processes that dead recorders left, and removes their maps. A map whose recorder gives signs of life is left alone.
///
/// # Errors
/// Fails without BPF's file system, without the right to read it, and if another user owns the folder in it.
pub fn recover() -> Result<Vec<Recovered>, CaptureError> {
    pid_namespace::require_initial()?;
    require_mount()?;
    match fs::symlink_metadata(FOLDER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        _ => require_ownership()?,
    }
    let entries = fs::read_dir(FOLDER);
    let entries = entries.map_err(|error| CaptureError::system("reading maps of paused processes", error))?;
    let recovered = entries.flatten().flat_map(|entry| recover_from(&entry.path()));
    Ok(recovered.collect())
}

fn recover_from(path: &Path) -> Vec<Recovered> {
    let Some(left) = MapData::from_pin(path).ok().and_then(|map| Entries::new(map.fd()).ok()) else {
        return Vec::new();
    };
    if !left.is_ours() || beats(&left) {
        return Vec::new();
    }
    let recovered = release(&left, Duration::from_secs(2));
    // A recorder that was only stopped for a while continues with its map, which no other process needs to find any more. Processes
    // that could not be resumed are left to the next tracer.
    if left.by_process().is_empty() {
        let _ = fs::remove_file(path);
    }
    recovered
}

/// Returns whether the recorder of these entries gives signs of life. One that died a moment ago does not, and then the last sign
/// becomes stale.
fn beats(left: &Entries) -> bool {
    let first = left.heartbeat();
    while left.has_beaten_within(STALE_NS, sys::monotonic_ns()) {
        if left.heartbeat() != first {
            return true;
        }
        std::thread::sleep(ROUND);
    }
    false
}

/// Resumes every process that has an entry, whatever it waits for, until no entry is left or the time is up.
pub fn release(left: &Entries, at_most: Duration) -> Vec<Recovered> {
    let last = Instant::now() + at_most;
    let mut recovered = Vec::new();
    loop {
        let processes = left.by_process();
        if processes.is_empty() || Instant::now() >= last {
            return recovered;
        }
        for (pid, threads) in processes {
            // A process that can't be examined is tried again.
            if let Ok(Step::Over(outcome)) = resume(&threads, left, sys::monotonic_ns()) {
                threads.iter().for_each(|thread| left.clear(thread));
                recovered.push(Recovered {
                    pid,
                    recorder: left.recorder(),
                    outcome,
                });
            }
        }
        std::thread::sleep(ROUND);
    }
}
