//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, StoreError};

/// Where a file is while it is being written: beside its final place, with a name that no reader looks at.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Whether a name is one of [`temporary`]'s.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Writes a file under a temporary name, syncs it and moves it to its place, where it replaces what was there.
/// Returns its size.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let temporary = temporary(path);
    let written = write_synced(&temporary, write);
    if written.is_err() {
        // Its error is the one to report; a file left behind is ignored by readers and replaced by the next writer.
        let _ = fs::remove_file(&temporary);
    }
    let bytes = written?;
    fs::rename(&temporary, path).context("create", path)?;
    sync_folder_of(path)?;
    Ok(bytes)
}

fn write_synced(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let mut file = BufWriter::new(File::create(path).context("create", path)?);
    write(&mut file)?;
    let synced = file.flush().and_then(|()| file.get_ref().sync_data());
    synced
        .and_then(|()| file.get_ref().metadata())
        .map(|metadata| metadata.len())
        .context("write", path)
}

/// Makes changes to the names in the folder of `path` last.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .context("sync", folder)
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}
