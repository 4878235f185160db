//! Commands of SDMA queues: their lengths, and the contents of those that move data.
//!
//! Source: `sdma_registers.h` and `amd_blit_sdma.cpp` of ROCR-Runtime, 5.2 to 6.4, for gfx9 to gfx12: the commands that its
//! `BlitSdma` writes into rings with 64-bit indexes. A command of another form ends the reading, because even its length would be a
//! guess. The submission is then unknown rather than wrong.

/// A decoded command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Copies consecutive bytes.
    Copy {
        /// Source address.
        source: u64,
        /// Destination address.
        destination: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Copies a box from one surface to another.
    CopyRect {
        /// Address of the source surface; the box begins somewhere in it.
        source: u64,
        /// Address of the destination surface.
        destination: u64,
        /// Bytes in the box.
        bytes: u64,
    },
    /// Fills with a word.
    Fill {
        /// Destination address.
        destination: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// A command that moves no data: a wait, a fence, an atomic, a time stamp, an interrupt, cache control, padding.
    Other,
}

/// `SDMA_OP_*`.
mod op {
    pub const NOP: u32 = 0;
    pub const COPY: u32 = 1;
    pub const FENCE: u32 = 5;
    pub const TRAP: u32 = 6;
    pub const POLL_REGMEM: u32 = 8;
    pub const ATOMIC: u32 = 10;
    pub const CONST_FILL: u32 = 11;
    pub const TIMESTAMP: u32 = 13;
    pub const GCR: u32 = 17;
}

/// Bytes of a dword.
const DWORD: usize = 4;
/// Bits of the count of a linear copy: 22, or 30 on gfx90a, gfx10.3 and later. The upper bits are 0 on engines with fewer bits.
const COPY_COUNT: u32 = 0x3fff_ffff;
/// Bits of the count of a fill.
const FILL_COUNT: u32 = 0x3f_ffff;

/// Reads the first command of `commands`, and returns it with its length in bytes; `None` if its form is unknown, or it is cut
/// short.
#[must_use]
pub fn decode(commands: &[u8]) -> Option<(Command, usize)> {
    let header = dword(commands, 0)?;
    let address = |at: usize| Some(u64::from(dword(commands, at)?) | u64::from(dword(commands, at + 1)?) << 32);
    let (operation, sub_operation) = (header & 0xff, header >> 8 & 0xff);
    let (command, dwords) = match (operation, sub_operation) {
        // The header counts the additional dwords to skip.
        (op::NOP, 0) => (Command::Other, 1 + (header >> 16 & 0x3fff) as usize),
        (op::COPY, 0) => {
            let copy = Command::Copy {
                source: address(3)?,
                destination: address(5)?,
                // From gfx9 on the field contains the count minus one.
                bytes: u64::from(dword(commands, 1)? & COPY_COUNT) + 1,
            };
            (copy, 7)
        }
        (op::COPY, 4) => {
            // 14 and 11 bits before gfx12, 16 and 14 from gfx12 on; the bits between are 0 before gfx12.
            let (plane, depth) = (dword(commands, 11)?, dword(commands, 12)?);
            let [x, y, z] = [plane & 0xffff, plane >> 16, depth & 0x3fff].map(|extent| u64::from(extent) + 1);
            // Elements of 1 to 16 bytes.
            let element = header >> 29;
            if element > 4 {
                return None;
            }
            let copy = Command::CopyRect {
                source: address(1)?,
                destination: address(6)?,
                bytes: (x * y * z) << element,
            };
            (copy, 13)
        }
        (op::CONST_FILL, 0) if header >> 30 == 2 => {
            let fill = Command::Fill {
                destination: address(1)?,
                // The field counts whole dwords, minus one, in bytes.
                bytes: u64::from(dword(commands, 4)? & FILL_COUNT & !3) + 4,
            };
            (fill, 5)
        }
        (op::FENCE, 0) => (Command::Other, 4),
        (op::TRAP, 0) => (Command::Other, 2),
        (op::POLL_REGMEM, 0) => (Command::Other, 6),
        (op::ATOMIC, 0) => (Command::Other, 8),
        (op::TIMESTAMP, 2) => (Command::Other, 3),
        (op::GCR, 1) => (Command::Other, 5),
        _ => return None,
    };
    let bytes = dwords * DWORD;
    (bytes <= commands.len()).then_some((command, bytes))
}

fn dword(commands: &[u8], at: usize) -> Option<u32> {
    let bytes = commands.get(at * DWORD..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(dwords: [u32; N]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (at, dword) in dwords.iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&dword.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn data_is_moved_by_three_commands() {
        let copy = bytes([1, 4095, 0, 0x1000, 0x7f00, 0x2000, 0x7f01]);
        let expected = Command::Copy {
            source: 0x7f00_0000_1000,
            destination: 0x7f01_0000_2000,
            bytes: 4096,
        };
        assert_eq!(decode(&copy), Some((expected, 28)));
        assert_eq!(decode(&copy[..27]), None, "cut short");
        let long = bytes([1, 0x3fff_ffff, 0, 0, 0, 0, 0]);
        assert!(matches!(
            decode(&long),
            Some((Command::Copy { bytes: 0x4000_0000, .. }, 28))
        ));
        // 10 by 5 by 2 elements of 4 bytes.
        let rect = bytes([
            1 | 4 << 8 | 2 << 29,
            0x1000,
            0,
            0,
            0,
            0,
            0x2000,
            0,
            0,
            0,
            0,
            9 | 4 << 16,
            1,
        ]);
        let expected = Command::CopyRect {
            source: 0x1000,
            destination: 0x2000,
            bytes: 400,
        };
        assert_eq!(decode(&rect), Some((expected, 52)));
        let fill = bytes([11 | 2 << 30, 0x1000, 1, 0xabcd, (16 - 1) * 4]);
        let expected = Command::Fill {
            destination: 0x1_0000_1000,
            bytes: 64,
        };
        assert_eq!(decode(&fill), Some((expected, 20)));
    }

    #[test]
    fn the_others_have_lengths_only() {
        for (header, dwords) in [
            (0, 1),
            (3 << 16, 4),
            (5, 4),
            (6, 2),
            (8 | 3 << 28 | 1 << 31, 6),
            (8, 6),
            (10 | 47 << 25, 8),
            (13 | 2 << 8, 3),
            (17 | 1 << 8, 5),
        ] {
            assert_eq!(
                decode(&bytes([header])),
                Some((Command::Other, dwords * 4)),
                "{header:#x}"
            );
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        // An unknown operation; tiled copies; a fill of bytes; sub-operations of other engines; 32 bytes per element.
        for header in [
            0xff,
            2,
            1 | 1 << 8,
            1 | 5 << 8,
            11,
            5 | 1 << 8,
            13,
            17,
            1 | 4 << 8 | 5 << 29,
        ] {
            assert_eq!(decode(&bytes([header])), None, "{header:#x}");
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0, 0, 0xff, 0x3f]), None, "padding beyond the end");
    }
}
