//! The bytes of a code object: in a file below the process's root, or in the process's memory.
//!
//! The reader reads only the parts that the parser asks for: a code object can have hundreds of megabytes, its tables a few.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom},
};

use object::ReadCache;
use tracer_core::code_object::KernelsUnread;

use super::{Contents, ParseError, elf, uri::Part};
use crate::runtime::debug_files::Source;

/// Largest number of bytes to read from one code object.
pub const MAX_READ: usize = 256 << 20;

/// Returns the start time of a process, given the contents of `/proc/PID/stat`: seconds of the real-time clock, or up to a second
/// too early. The result can't show whether a file changed before or after the start in that second.
pub fn began_in(stat: &str) -> Option<i64> {
    // The fields after the name, which may contain spaces and parentheses. The list starts with the third field; the start time is
    // the 22nd.
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

/// Reads the code object in a part of a file or memory.
///
/// # Errors
/// The reason why its kernels are unknown.
pub fn read(from: &impl Source, part: Part) -> Result<Contents, KernelsUnread> {
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
    contents.map_err(|error| {
        failed.unwrap_or(match error {
            ParseError::NotCodeObject | ParseError::Malformed(_) => KernelsUnread::Malformed,
            ParseError::TooLarge(_) => KernelsUnread::TooLarge,
        })
    })
}

/// A part of a file or memory, presented as a file of its own.
struct Window<'a, S> {
    from: &'a S,
    part: Part,
    at: u64,
    /// Number of bytes that may still be read.
    left: usize,
    /// The reason of a failed read.
    failed: Option<KernelsUnread>,
}

impl<S: Source> Read for Window<'_, S> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let rest = self.part.size.saturating_sub(self.at);
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(to.len());
        let Some(left) = self.left.checked_sub(len) else {
            self.failed = Some(KernelsUnread::TooLarge);
            return Err(io::Error::other("more than is read of one code object"));
        };
        let Some(offset) = self.part.offset.checked_add(self.at) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let Some(bytes) = self.from.bytes(offset, len as u64) else {
            self.failed = Some(KernelsUnread::Unreadable);
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        to[..len].copy_from_slice(&bytes);
        self.left = left;
        self.at += len as u64;
        Ok(len)
    }
}

impl<S> Seek for Window<'_, S> {
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
