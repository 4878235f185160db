//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
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

/// Passes bytes on, and sums them up.
struct Summed<W> {
    inner: W,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// CRC-32 of what is left to read.
pub(crate) fn checksum(mut file: impl Read) -> io::Result<u32> {
    let mut summed = Summed {
        inner: io::sink(),
        sum: crc32fast::Hasher::new(),
    };
    io::copy(&mut file, &mut summed)?;
    Ok(summed.sum.finalize())
}

/// Like [`write_atomically`], to a name in `folder` that `named` makes of the content's CRC-32. `unnamed`: what it is
/// called until then.
pub(crate) fn write_summed(
    folder: &Path,
    unnamed: &str,
    named: impl FnOnce(u32) -> String,
    write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let mut sum = 0;
    let unnamed = folder.join(unnamed);
    let bytes = write_temporary(&unnamed, |file| {
        let mut summed = Summed {
            inner: file,
            sum: crc32fast::Hasher::new(),
        };
        write(&mut summed)?;
        sum = summed.sum.finalize();
        Ok(())
    })?;
    let path = folder.join(named(sum));
    fs::rename(temporary(&unnamed), &path).context("create", &path)?;
    sync_folder_of(&path)?;
    Ok(bytes)
}

/// Writes a file under a temporary name, syncs it and moves it to its place, where it replaces what was there.
/// Returns its size.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let bytes = write_temporary(path, write)?;
    fs::rename(temporary(path), path).context("create", path)?;
    sync_folder_of(path)?;
    Ok(bytes)
}

/// Writes what is to be at `path` under its temporary name, and syncs it. Returns its size.
fn write_temporary(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let temporary = temporary(path);
    let written = write_synced(&temporary, write);
    if written.is_err() {
        // Its error is the one to report; a file left behind is ignored by readers and replaced by the next writer.
        let _ = fs::remove_file(&temporary);
    }
    written
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
