//! The folder of a trace: who may write into it, and what becomes of an older trace there.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::Path;

use crate::error::{IoContext, StoreError};
use crate::file;
use crate::manifest::{self, Manifest};
use crate::part::PartName;

/// Keeps other recorders away from a trace; the system lets go of it when its process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
}

/// Whether a recorder is writing the trace.
pub(crate) fn is_locked(dir: &Path) -> bool {
    File::open(dir).is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// What is at a path, links followed; `None` for nothing.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => metadata.context("open", path).map(Some),
    }
}

/// Makes an empty folder for a trace. A trace that is there is removed if `overwrite` says so; anything else is left
/// alone, be it as little as one foreign file.
pub(crate) fn prepare(dir: &Path, overwrite: bool) -> Result<Lock, StoreError> {
    if let Some(metadata) = metadata(dir)? {
        if !metadata.is_dir() {
            return Err(StoreError::Foreign(dir.to_owned()));
        }
    } else {
        fs::create_dir_all(dir).context("create", dir)?;
        file::sync_folder_of(dir)?;
    }
    let lock = lock(dir)?;
    if fs::read_dir(dir).context("read", dir)?.next().is_none() {
        return Ok(lock);
    }
    match Manifest::read(dir) {
        Ok(_) | Err(StoreError::Version { .. }) if overwrite => clear(dir).map(|()| lock),
        Ok(_) | Err(StoreError::Version { .. }) => Err(StoreError::Exists(dir.to_owned())),
        Err(_) => Err(StoreError::Foreign(dir.to_owned())),
    }
}

fn lock(dir: &Path) -> Result<Lock, StoreError> {
    let folder = File::open(dir).context("open", dir)?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(dir.to_owned())),
        // Some network file systems have no locks: there, nothing keeps others away.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Lock { _folder: folder }),
    }
}

/// Removes the tables of a trace, and of other files none. The manifest stays until the next one replaces it, so that
/// the folder is a trace at every moment.
fn clear(dir: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(dir).context("read", dir)? {
        let entry = entry.context("read", dir)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clear_table(&entry.path())?;
        }
    }
    file::remove(&dir.join(format!(".{}.tmp", manifest::FILE_NAME)))
}

fn clear_table(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).context("read", folder)? {
        let entry = entry.context("read", folder)?;
        let is_part = |name: &str| PartName::parse(name).is_some() || file::is_temporary(name);
        if entry.file_name().to_str().is_some_and(is_part) {
            file::remove(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed.context("remove", folder),
    }
}

/// Bytes of all files of a trace.
pub(crate) fn size(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).context("read", dir)? {
        let path = entry.context("read", dir)?.path();
        bytes += match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => size(&path)?,
            Ok(metadata) => metadata.len(),
            // A recorder renames and removes files all the time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error).context("read", &path),
        };
    }
    Ok(bytes)
}
