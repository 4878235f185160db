//! Files that are written whole or not at all, and the access to a folder with errors that name the file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use tracer_files::{Entry, Folder};

use crate::error::{IoContext, StoreError};

/// Returns the name of a file during writing, which no reader opens.
pub(crate) fn temporary(name: &str) -> OsString {
    format!(".{name}.tmp").into()
}

/// Returns whether a name is one that [`temporary`] returns.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Returns a folder's entries, in no order.
pub(crate) fn entries(folder: &Folder) -> Result<Vec<Entry>, StoreError> {
    folder.entries().context("read", folder.path())
}

/// Removes a file. A name that does not exist is not an error.
pub(crate) fn remove(folder: &Folder, name: &OsStr) -> Result<(), StoreError> {
    folder.remove_file(name).context("remove", &folder.path().join(name))
}

/// A file to write, and the checksum of what was written.
struct Summed {
    file: File,
    sum: crc32fast::Hasher,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file under a temporary name, syncs it and renames it, which replaces the existing file. `named` returns its name for
/// the content's CRC-32, and `unnamed` is its name until then.
pub(crate) fn write(
    folder: &Folder,
    unnamed: &str,
    named: impl FnOnce(u32) -> String,
    write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let temporary = temporary(unnamed);
    let sum = write_synced(folder, &temporary, write).inspect_err(|_| {
        // The error of the write is the one to report. Readers ignore a file left behind, and the next writer replaces it.
        let _ = folder.remove_file(&temporary);
    })?;
    let name = named(sum);
    let renamed = folder.rename(&temporary, OsStr::new(&name));
    renamed.context("create", &folder.path().join(name))?;
    folder.sync().context("sync", folder.path())
}

/// Writes a file and syncs it. Returns the checksum of its content.
fn write_synced(
    folder: &Folder,
    name: &OsStr,
    write: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
) -> Result<u32, StoreError> {
    let path = folder.path().join(name);
    let file = folder.recreate_file(name).context("create", &path)?;
    let sum = crc32fast::Hasher::new();
    let mut buffer = BufWriter::new(Summed { file, sum });
    let written = write(&mut buffer).and_then(|()| {
        let synced = buffer.flush().and_then(|()| buffer.get_ref().file.sync_data());
        synced.context("write", &path)
    });
    // After an error the rest of the buffer must not be written again.
    let (summed, _) = buffer.into_parts();
    written.map(|()| summed.sum.finalize())
}
