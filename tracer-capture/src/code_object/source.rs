//! The bytes of a code object: in a file of the process's root, or in its memory.
//!
//! Only what is asked for is read: code objects can have hundreds of megabytes, their tables a few.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{ffi::OsStrExt, fs::FileExt, fs::MetadataExt},
};

use object::ReadCache;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use tracer_core::code_object::KernelsUnread;

use super::{
    Contents, elf,
    list::{Memory, Process},
    uri::{Part, Place},
};

/// All that is read of one code object at the most.
const MAX_READ: usize = 256 << 20;

/// Reads the code object at this place; `unchanged_since`: time since which its file must not have changed (of the
/// real-time clock, s).
pub fn contents(pid: u32, place: Option<Place>, unchanged_since: Option<i64>) -> Result<Contents, KernelsUnread> {
    match place {
        None => Err(KernelsUnread::UnknownSource),
        Some(Place::Memory(part)) => read(Process(pid), part),
        Some(Place::File { path, part }) => {
            let file = open(pid, &path).map_err(|_| KernelsUnread::Unreadable)?;
            let metadata = file.metadata().map_err(|_| KernelsUnread::Unreadable)?;
            if unchanged_since.is_some_and(|time| metadata.ctime() >= time) {
                return Err(KernelsUnread::Changed);
            }
            let size = metadata.len();
            read(file, part.unwrap_or(Part { offset: 0, size }))
        }
    }
}

/// Opens a regular file by its path in the process's root, which no link leads out of.
fn open(pid: u32, path: &[u8]) -> io::Result<File> {
    let root = File::open(format!("/proc/{pid}/root"))?;
    let path = OsStr::from_bytes(path);
    // Whatever else lies there must not keep anybody waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    let file = File::from(file);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("no regular file"))
    }
}

/// When a process began, s of the real-time clock, or up to a second earlier: what happened to files in that second can't be
/// told apart by this.
pub fn began(pid: u32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have spaces and parentheses: fields from the third one on; the 22nd is meant.
    let ticks: i64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .parse()
        .ok()?;
    let per_second = i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    boot.checked_add(ticks.checked_div(per_second)?)
}

fn read(from: impl ReadAt, part: Part) -> Result<Contents, KernelsUnread> {
    let window = Window {
        from,
        part,
        at: 0,
        left: MAX_READ,
        failed: None,
    };
    let cache = ReadCache::new(window);
    let contents = elf::contents(&cache);
    let failed = cache.into_inner().failed;
    contents.map_err(|error| failed.unwrap_or_else(|| (&error).into()))
}

/// Something that bytes can be read from.
trait ReadAt {
    /// Fills `to` from `offset` on.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(to, offset)
    }
}

impl ReadAt for Process {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.read(offset, to)
    }
}

/// A part of a file or memory, as a file of its own.
struct Window<F> {
    from: F,
    part: Part,
    at: u64,
    /// Bytes that may still be read.
    left: usize,
    /// Why reading failed, if it did.
    failed: Option<KernelsUnread>,
}

impl<F: ReadAt> Read for Window<F> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let rest = self.part.size.saturating_sub(self.at);
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(to.len());
        let Some(left) = self.left.checked_sub(len) else {
            self.failed = Some(KernelsUnread::TooLarge);
            return Err(io::Error::other("more than is read of one code object"));
        };
        let Some(offset) = self.part.offset.checked_add(self.at) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        if let Err(error) = self.from.read_at(offset, &mut to[..len]) {
            self.failed = Some(KernelsUnread::Unreadable);
            return Err(error);
        }
        self.left = left;
        self.at += len as u64;
        Ok(len)
    }
}

impl<F> Seek for Window<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.part.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
