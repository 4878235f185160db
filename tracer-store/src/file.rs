//! Files that are written whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use tracer_files::Folder;

use crate::error::{IoContext, StoreError};

/// Returns the name of a file during writing, which no reader opens.
fn temporary(name: &str) -> OsString {
    format!(".{name}.tmp").into()
}

/// Returns whether a name is one that [`temporary`] returns.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Passes bytes on, and computes their checksum.
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

/// Writes a file like [`write_atomically`], to the name that `named` returns for the content's CRC-32. `unnamed` is its name until
/// then.
pub(crate) fn write_summed(
    folder: &Folder,
    unnamed: &str,
    named: impl FnOnce(u32) -> String,
    write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let mut sum = 0;
    let bytes = write_temporary(folder, unnamed, |file| {
        let mut summed = Summed {
            inner: file,
            sum: crc32fast::Hasher::new(),
        };
        write(&mut summed)?;
        sum = summed.sum.finalize();
        Ok(())
    })?;
    publish(folder, unnamed, &named(sum))?;
    Ok(bytes)
}

/// Writes a file under a temporary name, syncs it and renames it, which replaces the existing file. Returns its size.
pub(crate) fn write_atomically(
    folder: &Folder,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let bytes = write_temporary(folder, name, write)?;
    publish(folder, name, name)?;
    Ok(bytes)
}

/// Renames the file written as `unnamed` to its final name.
fn publish(folder: &Folder, unnamed: &str, name: &str) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    folder
        .rename(&temporary(unnamed), OsStr::new(name))
        .context("create", &path)?;
    folder.sync().context("sync", folder.path())
}

/// Writes the content for `name` under its temporary name, and syncs it. Returns its size.
fn write_temporary(
    folder: &Folder,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let temporary = temporary(name);
    let written = write_synced(folder, &temporary, write);
    if written.is_err() {
        // The error of the write is the one to report. Readers ignore a file left behind, and the next writer replaces it.
        let _ = folder.remove_file(&temporary);
    }
    written
}

fn write_synced(
    folder: &Folder,
    name: &OsStr,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let path = folder.path().join(name);
    let mut file = BufWriter::new(folder.recreate_file(name).context("create", &path)?);
    let written = write(&mut file).and_then(|()| {
        let synced = file.flush().and_then(|()| file.get_ref().sync_data());
        synced
            .and_then(|()| file.get_ref().metadata())
            .map(|metadata| metadata.len())
            .context("write", &path)
    });
    // After an error the rest of the buffer must not be written again.
    let _ = file.into_parts();
    written
}
