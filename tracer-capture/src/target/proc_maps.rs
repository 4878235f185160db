//! `/proc/PID/maps`: the files that a process has mapped executable.

use std::{fs, io};

use crate::runtime::resolver::Resolution;

/// One executable file mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Device, as the kernel prints it (`fd:01`), and inode: they identify the file, whatever its name.
    pub file: FileId,
    /// Path as seen from the process's root; may end in ` (deleted)`.
    pub path: String,
}

/// The identity of a file, whatever its name and mount point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device as `major:minor` in hexadecimal.
    pub device: String,
    /// Inode.
    pub inode: u64,
}

impl Mapping {
    /// Returns the address at which the mapping shows an offset of the file.
    #[must_use]
    pub fn address_of(&self, file_offset: u64) -> Option<u64> {
        let inside = file_offset.checked_sub(self.offset)?;
        let address = self.start.checked_add(inside)?;
        (address < self.end).then_some(address)
    }

    /// Returns the bias of the mapped library: the difference between its addresses in the process and as linked. The mapping must
    /// contain the library's functions.
    #[must_use]
    pub fn bias(&self, resolution: &Resolution) -> Option<u64> {
        let site = resolution.doorbells.first()?.probe;
        Some(self.address_of(site.file_offset)?.wrapping_sub(site.vaddr))
    }
}

/// Returns the executable file mappings of a process, in address order.
///
/// # Errors
/// ENOENT or ESRCH for a process that has exited, EACCES without the right to inspect it.
pub fn executable(pid: u32) -> io::Result<Vec<Mapping>> {
    Ok(executable_in(&fs::read(format!("/proc/{pid}/maps"))?))
}

/// Returns the executable file mappings in the contents of `/proc/PID/maps`.
pub fn executable_in(maps: &[u8]) -> Vec<Mapping> {
    let lines = maps.split(|&b| b == b'\n');
    lines.filter_map(|line| parse(&String::from_utf8_lossy(line))).collect()
}

/// Parses `start-end perms offset device inode path`; `None` for anything but an executable file mapping.
fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let offset = words.next()?;
    let device = words.next()?;
    let inode: u64 = words.next()?.parse().ok()?;
    let path = words.next()?.trim_start();
    (permissions.as_bytes().get(2) == Some(&b'x') && inode != 0).then_some(())?;
    let hex = |s| u64::from_str_radix(s, 16).ok();
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        file: FileId {
            device: device.to_owned(),
            inode,
        },
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_files_count_and_paths_may_have_spaces() {
        let line =
            "7f00a000-7f00b000 r-xp 00002000 fd:01 77                     /opt/my libs/libhsa-runtime64.so.1 (deleted)";
        let mapping = parse(line).unwrap();
        assert_eq!(
            (mapping.start, mapping.end, mapping.offset),
            (0x7f00_a000, 0x7f00_b000, 0x2000)
        );
        assert_eq!(
            mapping.file,
            FileId {
                device: "fd:01".into(),
                inode: 77
            }
        );
        assert_eq!(mapping.path, "/opt/my libs/libhsa-runtime64.so.1 (deleted)");
        assert_eq!(parse("7f00a000-7f00b000 r--p 00002000 fd:01 77 /lib/x.so"), None);
        assert_eq!(
            parse("7ffd0000-7ffd2000 r-xp 00000000 00:00 0                  [vdso]"),
            None
        );
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn this_process_maps_its_own_program() {
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        let mappings = executable(std::process::id()).unwrap();
        assert!(mappings.iter().any(|m| m.path == own.to_string_lossy()), "{mappings:?}");
    }
}
