//! Files: found by a name, opened only if they are regular, and copied.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags, fstat, fstatfs, openat2, statx,
};

use super::Answer;
use crate::confined::{
    channel::MAX_INLINE,
    request::{Body, FileInfo, MAX_MAPPINGS, MAX_MEMORY, MAX_NAMES, MAX_RANGES, Reply, Want},
    sealed,
};

/// Finds a name without opening its target, so that neither a driver nor the other end of a FIFO notices.
const FIND: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The number of bytes that are copied at a time.
const PIECE: usize = 256 << 10;

/// Answers for the file behind a mapping.
pub fn mapped(
    pid: u32,
    (start, end): (u64, u64),
    (device, inode): (&str, u64),
    path: &[u8],
    want: &Want,
) -> io::Result<Answer> {
    let link = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    match rustix::fs::open(link, FIND, Mode::empty()) {
        Ok(file) => again(file, want),
        // Without CAP_CHECKPOINT_RESTORE only the name remains, if it still names that file.
        Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
            let file = find_in_root(pid, path)?;
            let found = fstat(&file)?;
            let (major, minor) = (rustix::fs::major(found.st_dev), rustix::fs::minor(found.st_dev));
            if found.st_ino == inode && format!("{major:02x}:{minor:02x}") == device {
                again(file, want)
            } else {
                Ok((Reply::Other, Vec::new()))
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Answers with the times of the last changes of the files behind mappings. This asks no file system's server: the kernel knows the
/// times of files that are mapped, and a server that does not answer must not keep the recorder from a process.
pub fn changes(pid: u32, mappings: &[(u64, u64)]) -> io::Result<Answer> {
    if mappings.len() > MAX_MAPPINGS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let change = |&(start, end): &(u64, u64)| {
        let link = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
        let stat = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::CTIME).ok()?;
        Some((stat.stx_ctime.tv_sec, i64::from(stat.stx_ctime.tv_nsec)))
    };
    Ok((Reply::Changes(mappings.iter().map(change).collect()), Vec::new()))
}

/// Answers for a file in the root of a process.
pub fn in_root(pid: u32, path: &[u8], want: &Want) -> io::Result<Answer> {
    again(find_in_root(pid, path)?, want)
}

fn find_in_root(pid: u32, path: &[u8]) -> io::Result<OwnedFd> {
    let root = rustix::fs::open(format!("/proc/{pid}/root"), FIND | OFlags::DIRECTORY, Mode::empty())?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, OsStr::from_bytes(path), FIND, Mode::empty(), inside)?)
}

/// Returns the names in a folder in the root of a process.
pub fn names(pid: u32, path: &[u8]) -> io::Result<Vec<u8>> {
    let found = find_in_root(pid, path)?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Directory {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    let mut names = Vec::new();
    for entry in Dir::read_from(open(&found)?)?.take(MAX_NAMES) {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.extend_from_slice(entry.file_name().to_bytes_with_nul());
        }
    }
    Ok(names)
}

/// Answers for a file in the recorder's root.
pub fn own(path: &[u8], want: &Want) -> io::Result<Answer> {
    again(rustix::fs::open(OsStr::from_bytes(path), FIND, Mode::empty())?, want)
}

/// Answers with the requested contents of a file that was found.
pub fn again(found: OwnedFd, want: &Want) -> io::Result<Answer> {
    let stat = fstat(&found)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok((Reply::NotRegular, Vec::new()));
    }
    let info = info(&found, &stat);
    let (body, memory) = match want {
        Want::Start(most) => super::body(start(&open(&found)?, *most)?)?,
        Want::Whole(most) if info.size > *most => return Ok((Reply::TooLarge, Vec::new())),
        Want::Whole(most) => whole(&open(&found)?, info.size, *most)?,
        Want::Ranges(ranges) => super::body(these(&open(&found)?, info.size, ranges)?)?,
    };
    let mut descriptors = vec![found];
    descriptors.extend(memory);
    Ok((Reply::File(info, body), descriptors))
}

fn info(file: &OwnedFd, stat: &Stat) -> FileInfo {
    FileInfo {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        owner: stat.st_uid,
        file_system: fstatfs(file).map_or(0, |of| of.f_type as u64),
    }
}

/// Opens the file that was found, and no other: the name may lead elsewhere by now.
fn open(found: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(rustix::fs::open(link, flags, Mode::empty())?.into())
}

fn start(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.min(MAX_INLINE as u64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn whole(file: &File, size: u64, most: u64) -> io::Result<(Body, Vec<OwnedFd>)> {
    if size <= MAX_INLINE as u64 {
        return super::body(start(file, most)?);
    }
    // Pieces that stay in the processor's cache are read and written: splicing page by page takes three times as long.
    let mut memory = File::from(sealed::new_file()?);
    let mut piece = vec![0; PIECE];
    let mut left = size;
    while left > 0 {
        let step = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let count = match (&mut &*file).read(&mut piece[..step]) {
            // The file has become shorter.
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        memory.write_all(&piece[..count])?;
        left = left.saturating_sub(count as u64);
    }
    Ok((Body::Sealed, vec![sealed::seal(memory.into())?]))
}

fn these(file: &File, size: u64, ranges: &[(u64, u64)]) -> io::Result<Vec<u8>> {
    let total = ranges.iter().fold(0, |sum: u64, (_, len)| sum.saturating_add(*len));
    if ranges.len() > MAX_RANGES || total > MAX_MEMORY {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut bytes = Vec::new();
    for &(offset, len) in ranges {
        // No memory is allocated for bytes that are not there.
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(io::Error::from_raw_os_error(libc::ENODATA));
        }
        let start = bytes.len();
        bytes.resize(start + len as usize, 0);
        file.read_exact_at(&mut bytes[start..], offset)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::ENODATA))
            .map_err(io::Error::from_raw_os_error)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rustix::fs::{inotify, mkfifoat};

    use super::*;

    /// Opening a device can start it, so the reader checks the target of a name before it opens it.
    #[test]
    fn what_is_no_regular_file_is_not_even_opened() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let [fifo, link, file] = ["fifo", "link", "file"].map(|name| dir.path().join(name));
        mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        symlink(&fifo, &link).unwrap();
        fs::write(&file, "a code object").unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &fifo, inotify::WatchFlags::OPEN).unwrap();
        let read = |path: &std::path::Path| in_root(own, path.as_os_str().as_bytes(), &Want::Whole(4096)).unwrap();
        for path in [fifo.as_path(), &link, dir.path()] {
            assert_eq!(read(path).0, Reply::NotRegular, "{}", path.display());
        }
        let mut events = [0; 256];
        let seen = rustix::io::read(&watch, &mut events);
        assert_eq!(seen, Err(rustix::io::Errno::AGAIN), "the FIFO was opened");
        let Reply::File(_, Body::Inline(text)) = read(&file).0 else {
            panic!("no file");
        };
        assert_eq!(text, b"a code object");
    }

    #[test]
    fn a_change_of_a_mapped_file_shows_and_a_gap_has_none() {
        let own = std::process::id();
        let mapping = crate::target::proc_maps::executable(own).unwrap().remove(0);
        let asked = [(mapping.start, mapping.end), (1, 2)];
        let (Reply::Changes(found), _) = changes(own, &asked).unwrap() else {
            panic!("another reply");
        };
        let whole = Want::Start(1);
        let (Reply::File(info, _), _) = in_root(own, mapping.path.as_bytes(), &whole).unwrap() else {
            panic!("no file");
        };
        assert_eq!(found, [Some(info.changed), None]);
        assert!(changes(own, &[(0, 0); MAX_MAPPINGS + 1]).is_err());
    }
}
