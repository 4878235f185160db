//! The checksum by which `.gnu_debuglink` names a file: CRC-32 as of zlib and Ethernet.

use std::{fs::File, os::unix::fs::FileExt};

/// A process waits meanwhile: a quarter of a second at 1 GB/s.
const MAX_FILE: u64 = 256 << 20;
/// The polynomial 0x04c11db7, bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ POLYNOMIAL
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// Continues a checksum; the first one begins with 0.
pub fn crc32(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!sum, |sum, &byte| {
        let entry = (sum as u8 ^ byte) as usize;
        TABLE.get(entry).copied().unwrap_or(0) ^ sum >> 8
    })
}

/// Whether the file's contents have the checksum; words if not.
pub fn check(file: &File, expected: u32) -> Result<(), String> {
    let mut buffer = vec![0; 1 << 16];
    let (mut sum, mut at) = (0, 0u64);
    loop {
        let count = file.read_at(&mut buffer, at).map_err(|error| error.to_string())?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        sum = crc32(sum, read);
        at += count as u64;
        if at > MAX_FILE {
            return Err(format!("its checksum is not taken: it has more than {MAX_FILE} bytes"));
        }
    }
    if sum == expected {
        Ok(())
    } else {
        Err(format!(
            "its checksum is {sum:#010x}, and the library's link says {expected:#010x}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        // "check" of CRC-32/ISO-HDLC.
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
        assert_eq!(crc32(0, b""), 0);
    }
}
