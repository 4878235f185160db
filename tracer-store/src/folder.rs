//! The folder of a trace: which user may write into it, and the treatment of an older trace in it.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tracer_files::{Folder, Mode};

use crate::error::{IoContext, StoreError};
use crate::file;
use crate::manifest::{self, Manifest};
use crate::part::PartName;

/// The folder of a trace during its recording.
#[derive(Debug)]
pub(crate) struct Place {
    pub folder: Folder,
    /// The parent folder, and the name in it; `None` for a path without a name, such as `.`.
    above: Option<(Folder, OsString)>,
    /// Excludes other recorders. The system releases the lock when the process exits, for any reason.
    _lock: File,
}

/// Returns whether a recorder is writing the trace.
pub(crate) fn is_locked(folder: &Folder) -> bool {
    let file = folder.again().and_then(|folder| folder.to_file());
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Opens the folder of a trace for reading. Links on the way are followed, because the reader's own rights decide.
pub(crate) fn open(dir: &Path) -> Result<Folder, StoreError> {
    match Folder::open(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::NotFound(dir.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(StoreError::NotATrace {
            path: dir.to_owned(),
            reason: "it is not a folder".to_owned(),
        }),
        folder => folder.context("open", dir),
    }
}

/// Prepares an empty folder for a trace. An existing trace is removed if `overwrite` is set. Anything else stays untouched, even if
/// it is only one foreign file.
///
/// The path is resolved here once, with the rights of the calling thread, and never again.
pub(crate) fn prepare(dir: &Path, overwrite: bool, mode: Mode) -> Result<Place, StoreError> {
    let above = above(dir, mode)?.map(|(above, name)| (above.with_mode(mode), name));
    let folder = match &above {
        None => existing(Folder::open(dir), dir)?,
        Some((above, name)) => match above.create_folder(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing(above.folder(name), dir)?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(StoreError::NotAllowed(dir.to_owned()));
            }
            created => {
                let created = created.context("create", dir)?;
                above.sync().context("sync", above.path())?;
                created
            }
        },
    };
    let folder = folder.with_mode(mode).with_path(dir);
    let lock = lock(&folder)?;
    if !file::entries(&folder)?.is_empty() {
        match Manifest::read(&folder) {
            Ok(_) | Err(StoreError::Version { .. }) if overwrite => clear(&folder)?,
            Ok(_) | Err(StoreError::Version { .. }) => return Err(StoreError::Exists(dir.to_owned())),
            Err(_) => return Err(StoreError::Foreign(dir.to_owned())),
        }
    }
    Ok(Place {
        folder,
        above,
        _lock: lock,
    })
}

impl Place {
    /// Removes the trace: its tables, its manifest, and the folder unless it contains other files.
    pub(crate) fn discard(&self) -> Result<(), StoreError> {
        clear(&self.folder)?;
        file::remove(&self.folder, manifest::FILE_NAME.as_ref())?;
        match &self.above {
            Some((above, name)) => remove_if_empty(above, name, self.folder.path()),
            None => Ok(()),
        }
    }
}

/// Returns the parent folder of a trace, and creates it if it does not exist.
fn above(dir: &Path, mode: Mode) -> Result<Option<(Folder, OsString)>, StoreError> {
    match Folder::above(dir) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = dir.parent().unwrap_or(dir);
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(mode.folder().as_raw_mode());
            match builder.create(parent) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(StoreError::NotAllowed(dir.to_owned()));
                }
                made => made.context("create", parent)?,
            }
            Folder::above(dir).context("open", parent).map(Some)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(StoreError::NotAllowed(dir.to_owned())),
        above => above.context("open", dir).map(Some),
    }
}

/// Opens an existing folder. Another user's folder could change during the recording.
fn existing(folder: io::Result<Folder>, dir: &Path) -> Result<Folder, StoreError> {
    let folder = match folder {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error).context("open", dir),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(StoreError::OthersFolder(dir.to_owned()));
        }
        // A link is not a folder, even if it leads to one.
        Err(_) => return Err(StoreError::Foreign(dir.to_owned())),
        Ok(folder) => folder,
    };
    match folder.require_own() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(StoreError::OthersFolder(dir.to_owned())),
        own => own.context("open", dir).map(|()| folder),
    }
}

fn lock(folder: &Folder) -> Result<File, StoreError> {
    let dir = folder.path();
    let file = folder.to_file().context("open", dir)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy(dir.to_owned())),
        // Some network file systems have no locks. There, nothing excludes other recorders.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Removes the tables of a trace, and no other files. The manifest stays until the next one replaces it, so that the folder is a
/// trace at every moment.
fn clear(folder: &Folder) -> Result<(), StoreError> {
    for entry in file::entries(folder)? {
        if entry.is_folder {
            clear_table(folder, &entry.name)?;
        }
    }
    let mut names = [manifest::FILE_NAME, manifest::RESERVE].into_iter();
    names.try_for_each(|name| file::remove(folder, &file::temporary(name)))
}

fn clear_table(trace: &Folder, name: &OsStr) -> Result<(), StoreError> {
    let path = trace.path().join(name);
    let folder = trace.folder(name).context("open", &path)?;
    for entry in file::entries(&folder)? {
        let is_part = |name: &str| PartName::parse(name).is_some() || file::is_temporary(name);
        if entry.name.to_str().is_some_and(is_part) {
            file::remove(&folder, &entry.name)?;
        }
    }
    remove_if_empty(trace, name, &path)
}

fn remove_if_empty(above: &Folder, name: &OsStr, path: &Path) -> Result<(), StoreError> {
    match above.remove_folder(name) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed.context("remove", path),
    }
}

/// Returns the bytes of all files of a trace.
pub(crate) fn size(trace: &Folder) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for entry in file::entries(trace)? {
        if !entry.is_folder {
            bytes += size_of(trace, &entry.name)?;
            continue;
        }
        match trace.folder(&entry.name) {
            // A recorder also removes folders.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            folder => {
                let folder = folder.context("read", &trace.path().join(&entry.name))?;
                for entry in file::entries(&folder)? {
                    bytes += size_of(&folder, &entry.name)?;
                }
            }
        }
    }
    Ok(bytes)
}

/// Returns the size of a file. A recorder renames and removes files at any time, so a file that no longer exists has size 0.
fn size_of(folder: &Folder, name: &OsStr) -> Result<u64, StoreError> {
    let stat = folder.stat_of(name).context("read", &folder.path().join(name))?;
    Ok(stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)))
}
