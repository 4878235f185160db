//! Access to a folder by its descriptor.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode as Bits, OFlags, Stat};
use rustix::io::Errno;

use crate::Mode;

/// Flags of every open. The file at a name must not block, become the controlling terminal, or lead to another place.
const SAFE: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// An open folder. Its present location, and the present meaning of its name, do not matter.
///
/// Names are single components: those with a slash are refused.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    mode: Mode,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// Whether it is a folder; a link to a folder does not count.
    pub is_folder: bool,
}

impl Folder {
    /// Opens the folder at a path, and follows links.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(path, flags | OFlags::RDONLY, Bits::empty()) {
            // The user may be allowed to create files in the folder, and not to list it.
            Err(Errno::ACCESS) => rustix::fs::open(path, flags | OFlags::PATH, Bits::empty())?,
            fd => fd?,
        };
        Ok(Self {
            fd: Arc::new(fd),
            path: path.to_owned(),
            mode: Mode::PRIVATE,
        })
    }

    /// Returns the folder of the last component of a path, and that component. Follows links on the way to the folder.
    ///
    /// # Errors
    /// Those of open(2); `InvalidInput` if the path ends in no name.
    pub fn above(path: &Path) -> io::Result<(Self, OsString)> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path ends in no name"));
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok((Self::open(parent.unwrap_or(Path::new(".")))?, name.to_owned()))
    }

    /// Returns the folder with other permissions for the files created in it.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Returns the folder with another path for display.
    #[must_use]
    pub fn with_path(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Returns the path at which the folder was opened: for people, never to be opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the same folder again, because locks belong to one opening.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn again(&self) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE;
        let fd = rustix::fs::openat(&self.fd, c".", flags, Bits::empty())?;
        Ok(Self {
            fd: Arc::new(fd),
            ..self.clone()
        })
    }

    /// Returns a duplicate of the descriptor, as a file: for locks.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn to_file(&self) -> io::Result<File> {
        Ok(File::from(self.fd.try_clone()?))
    }

    /// Creates a subfolder and opens it.
    ///
    /// # Errors
    /// Those of mkdirat(2): `AlreadyExists` if the name exists, with any type. `PermissionDenied` if another user's folder replaced
    /// the new one.
    pub fn create_folder(&self, name: &OsStr) -> io::Result<Self> {
        let name = single(name)?;
        rustix::fs::mkdirat(&self.fd, name, Mode::PRIVATE.folder())?;
        let folder = self.folder(name)?;
        folder.require_own()?;
        if self.mode != Mode::PRIVATE {
            rustix::fs::fchmod(&folder.fd, self.mode.folder())?;
        }
        Ok(folder)
    }

    /// Opens a subfolder; a link does not count as one.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE;
        let fd = rustix::fs::openat(&self.fd, single(name)?, flags, Bits::empty())?;
        Ok(Self {
            fd: Arc::new(fd),
            path: self.path.join(name),
            mode: self.mode,
        })
    }

    /// Checks that the folder belongs to the user with whose rights this thread works.
    ///
    /// # Errors
    /// `PermissionDenied` if it does not, else those of fstat(2).
    pub fn require_own(&self) -> io::Result<()> {
        // SAFETY: setfsuid(2) with -1, which is not an id, changes nothing and returns the present id.
        let own = unsafe { libc::syscall(libc::SYS_setfsuid, -1) };
        if i64::from(self.stat()?.st_uid) == own {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::PermissionDenied))
        }
    }

    /// Returns the folder's status.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.fd)?)
    }

    /// Returns the status of a name in the folder, without following a link; `None` if the name does not exist.
    ///
    /// # Errors
    /// Those of fstatat(2).
    pub fn stat_of(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => Ok(Some(stat?)),
        }
    }

    /// Creates a file in the folder and opens it for writing.
    ///
    /// # Errors
    /// Those of openat(2): `AlreadyExists` if the name exists, with any type.
    pub fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | SAFE;
        let fd = rustix::fs::openat(&self.fd, single(name)?, flags, Mode::PRIVATE.file())?;
        if self.mode != Mode::PRIVATE {
            rustix::fs::fchmod(&fd, self.mode.file())?;
        }
        Ok(File::from(fd))
    }

    /// Creates a file like [`Self::create_file`], after removing the file at that name.
    ///
    /// # Errors
    /// Those of unlinkat(2) and openat(2). `AlreadyExists` if other processes create the name as fast as it is removed.
    pub fn recreate_file(&self, name: &OsStr) -> io::Result<File> {
        const TRIES: usize = 100;
        let mut created = self.create_file(name);
        for _ in 0..TRIES {
            match &created {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.remove_file(name)?,
                _ => break,
            }
            created = self.create_file(name);
        }
        created
    }

    /// Opens a regular file in the folder for reading. Never waits for a file of another type, and never follows a link.
    ///
    /// # Errors
    /// Those of openat(2); `InvalidInput` with a reason if it is not a regular file, or has more than `limit` bytes.
    pub fn open_file(&self, name: &OsStr, limit: u64) -> io::Result<File> {
        let unfit = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        let flags = OFlags::RDONLY | SAFE;
        let fd = match rustix::fs::openat(&self.fd, single(name)?, flags, Bits::empty()) {
            Err(Errno::LOOP) => return unfit("it is a symbolic link, not a regular file".to_owned()),
            // The error for a socket.
            Err(Errno::NXIO) => return unfit("it is not a regular file".to_owned()),
            fd => fd?,
        };
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return unfit("it is not a regular file".to_owned());
        }
        if u64::try_from(stat.st_size).ok().is_none_or(|size| size > limit) {
            return unfit(format!("it has {} bytes, more than the limit of {limit}", stat.st_size));
        }
        Ok(File::from(fd))
    }

    /// Returns the content of a regular file in the folder. Never waits for a file of another type, and never follows a link.
    ///
    /// # Errors
    /// Those of [`Self::open_file`] and read(2).
    pub fn read_file(&self, name: &OsStr, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(name, limit)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or(0));
        // The file may have grown in between.
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Renames a name in the folder, and replaces the target unless it is a folder.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, single(from)?, &self.fd, single(to)?)?)
    }

    /// Removes a file or a link. A name that does not exist is not an error.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        absent_is_fine(rustix::fs::unlinkat(&self.fd, single(name)?, AtFlags::empty()))
    }

    /// Removes an empty folder. A name that does not exist is not an error.
    ///
    /// # Errors
    /// Those of unlinkat(2): `DirectoryNotEmpty` if the folder is not empty.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        absent_is_fine(rustix::fs::unlinkat(&self.fd, single(name)?, AtFlags::REMOVEDIR))
    }

    /// Returns the folder's entries, in no order.
    ///
    /// # Errors
    /// Those of getdents(2).
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            let kind = match entry.file_type() {
                FileType::Unknown => self.stat_of(&name)?.map(|stat| FileType::from_raw_mode(stat.st_mode)),
                kind => Some(kind),
            };
            // An entry that no longer exists is left out.
            entries.extend(kind.map(|kind| Entry {
                name,
                is_folder: kind == FileType::Directory,
            }));
        }
        Ok(entries)
    }

    /// Makes changes to the folder's names durable. For a folder that cannot be listed this is not possible, and not done.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.fd) {
            Err(Errno::BADF) => Ok(()),
            synced => Ok(synced?),
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Checks that a name leads only into its folder.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    match name.as_bytes() {
        b"" | b"." | b".." => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        bytes if bytes.contains(&b'/') => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        _ => Ok(name),
    }
}

fn absent_is_fine(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}
