//! The checksum by which `.gnu_debuglink` identifies a file: CRC-32 as in zlib and Ethernet.

use std::{fs::File, os::unix::fs::FileExt};

/// Largest file that tracer reads for its checksum. A process waits in between: a quarter of a second at 1 GB/s.
pub const MAX_FILE: u64 = 256 << 20;

/// Checks that the file's contents have the expected checksum. Returns a message if they do not.
pub fn check(file: &File, expected: u32) -> Result<(), String> {
    let mut buffer = vec![0; 1 << 16];
    let mut hasher = crc32fast::Hasher::new();
    let mut at = 0u64;
    loop {
        let count = file.read_at(&mut buffer, at).map_err(|error| error.to_string())?;
        if count == 0 {
            return compare(hasher.finalize(), expected);
        }
        hasher.update(&buffer[..count]);
        at += count as u64;
        if at > MAX_FILE {
            return Err(format!(
                "tracer does not compute its checksum: it has more than {MAX_FILE} bytes"
            ));
        }
    }
}

/// Checks that a checksum is the expected one. Returns a message if it is not.
pub fn compare(sum: u32, expected: u32) -> Result<(), String> {
    if sum == expected {
        Ok(())
    } else {
        Err(format!(
            "its checksum is {sum:#010x}, but the library's link names {expected:#010x}"
        ))
    }
}
