//! Single files that a command writes to the paths in its options.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FileType, Mode as Bits, OFlags};
use rustix::io::Errno;

use crate::{Folder, Mode, Owner};

/// Writes a file whole or not at all: under a temporary name, which then replaces the existing file.
///
/// # Errors
/// If the owner may not do that. `InvalidInput` with a reason if the path exists and is not a regular file: a link is never
/// followed, and a device never replaced.
pub fn write(owner: &Owner, path: &Path, mode: Mode, content: &[u8]) -> io::Result<()> {
    fill(owner, path, mode, |file| file.write_all(content))
}

/// Writes a file as [`write()`] does, piece by piece: `write` gets the file under its temporary name, and runs with the owner's rights.
///
/// # Errors
/// Those of [`write()`], and those of `write`: then the existing file stays.
pub fn fill<T: Send, E: From<io::Error> + Send>(
    owner: &Owner,
    path: &Path,
    mode: Mode,
    write: impl FnOnce(&mut File) -> Result<T, E> + Send,
) -> Result<T, E> {
    owner.run(|| {
        let (folder, name) = Folder::above(path)?;
        let folder = folder.with_mode(mode);
        if let Some(stat) = folder.stat_of(&name)? {
            require_regular(FileType::from_raw_mode(stat.st_mode))?;
        }
        let mut temporary = OsString::from(".");
        temporary.push(&name);
        temporary.push(".tmp");
        let written = folder.recreate_file(&temporary).map_err(E::from).and_then(|mut file| {
            let value = write(&mut file)?;
            file.sync_data()?;
            folder.rename(&temporary, &name)?;
            Ok(value)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = folder.remove_file(&temporary);
        }
        let value = written?;
        folder.sync()?;
        Ok(value)
    })?
}

/// Appends to a file, and creates it if it does not exist.
///
/// # Errors
/// If the owner may not do that, or the path exists and is not a regular file.
pub fn append(owner: &Owner, path: &Path, mode: Mode, content: &[u8]) -> io::Result<()> {
    owner.run(|| {
        let (folder, name) = Folder::above(path)?;
        let folder = folder.with_mode(mode);
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = match rustix::fs::openat(&folder, &name, flags, Bits::empty()) {
            Err(Errno::NOENT) => folder.create_file(&name)?,
            Err(Errno::LOOP) => return require_regular(FileType::Symlink),
            fd => fd?.into(),
        };
        require_regular(FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode))?;
        file.write_all(content)
    })?
}

fn require_regular(kind: FileType) -> io::Result<()> {
    let reason = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "it is a symbolic link, which is not followed; give the path of the file itself",
        FileType::Directory => "it is a folder",
        _ => "it is not a regular file; name a file that exists or can be created",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}
