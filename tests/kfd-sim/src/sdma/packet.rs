//! SDMA packets, as ROCr builds them for gfx9 to gfx12 (`runtime/hsa-runtime/core/inc/sdma_registers.h`).

use super::rect::{Rect, RectForm};

/// The longest packet, in dwords.
pub const MAX_DWORDS: usize = 13;

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdma {
    /// Skips some dwords.
    Nop,
    /// Copies bytes.
    Copy { src: u64, dst: u64, bytes: u64 },
    /// Copies a box of elements.
    CopyRect(Rect),
    /// Stores a dword.
    Fence { dst: u64, data: u32 },
    /// Raises the interrupt of an event.
    Trap { context: u32 },
    /// Waits for a dword of memory.
    Poll {
        src: u64,
        function: u32,
        reference: u32,
        mask: u32,
    },
    /// A poll without memory, which flushes the cache of the host path.
    HdpFlush,
    /// Adds to a quadword.
    AtomicAdd64 { dst: u64, operand: u64 },
    /// Fills with a dword.
    Fill { dst: u64, value: u32, bytes: u64 },
    /// Stores the GPU counter.
    Timestamp { dst: u64 },
    /// Cache control.
    Gcr,
}

impl Sdma {
    /// Decodes the packet at the start of `dwords`, which are zero beyond what was submitted. Returns the packet with its length.
    pub fn decode(dwords: &[u32; MAX_DWORDS], rect: RectForm) -> Option<(Self, usize)> {
        let header = dwords[0];
        let address = |at: usize| u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32;
        Some(match (header & 0xff, header >> 8 & 0xff) {
            (0, _) => (Self::Nop, 1 + (header >> 16 & 0x3fff) as usize),
            (1, 0) => {
                let bytes = u64::from(dwords[1] & 0x3fff_ffff) + 1;
                (
                    Self::Copy {
                        src: address(3),
                        dst: address(5),
                        bytes,
                    },
                    7,
                )
            }
            (1, 4) => (Self::CopyRect(rect.decode(dwords)), 13),
            (5, _) => (
                Self::Fence {
                    dst: address(1),
                    data: dwords[3],
                },
                4,
            ),
            (6, _) => (
                Self::Trap {
                    context: dwords[1] & 0xfff_ffff,
                },
                2,
            ),
            (8, _) if header >> 31 == 0 => (Self::HdpFlush, 6),
            (8, _) => {
                let (function, reference, mask) = (header >> 28 & 7, dwords[3], dwords[4]);
                (
                    Self::Poll {
                        src: address(1),
                        function,
                        reference,
                        mask,
                    },
                    6,
                )
            }
            (10, _) if header >> 25 == 47 => (
                Self::AtomicAdd64 {
                    dst: address(1),
                    operand: address(3),
                },
                8,
            ),
            (11, _) if header >> 30 == 2 => {
                // The field holds the count minus one, in bytes; the count is always a number of whole dwords.
                let bytes = u64::from(dwords[4] & 0x3f_fffc) + 4;
                (
                    Self::Fill {
                        dst: address(1),
                        value: dwords[3],
                        bytes,
                    },
                    5,
                )
            }
            (13, 2) => (Self::Timestamp { dst: address(1) }, 3),
            (17, _) => (Self::Gcr, 5),
            _ => return None,
        })
    }

    /// Returns the packet's name in the truth log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Copy { .. } => "copy",
            Self::CopyRect(_) => "copy_rect",
            Self::Fence { .. } => "fence",
            Self::Trap { .. } => "trap",
            Self::Poll { .. } => "poll",
            Self::HdpFlush => "hdp_flush",
            Self::AtomicAdd64 { .. } => "atomic_add64",
            Self::Fill { .. } => "fill",
            Self::Timestamp { .. } => "timestamp",
            Self::Gcr => "gcr",
        }
    }

    /// Returns (src, dst, bytes) for the truth log. An operand that is not an address is in `src`, the reference of a poll in
    /// `dst`.
    pub fn operands(&self) -> (u64, u64, u64) {
        match *self {
            Self::Nop | Self::HdpFlush | Self::Gcr => (0, 0, 0),
            Self::Copy { src, dst, bytes } => (src, dst, bytes),
            Self::CopyRect(rect) => (rect.src.base, rect.dst.base, rect.x * rect.y * rect.z * rect.element),
            Self::Fence { dst, data } => (u64::from(data), dst, 4),
            Self::Trap { context } => (u64::from(context), 0, 0),
            Self::Poll { src, reference, .. } => (src, u64::from(reference), 4),
            Self::AtomicAdd64 { dst, operand } => (operand, dst, 8),
            Self::Fill { dst, value, bytes } => (u64::from(value), dst, bytes),
            Self::Timestamp { dst } => (0, dst, 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(dwords: &[u32]) -> [u32; MAX_DWORDS] {
        std::array::from_fn(|i| dwords.get(i).copied().unwrap_or(0))
    }

    fn decode(dwords: &[u32]) -> Option<(Sdma, usize)> {
        Sdma::decode(&packet(dwords), RectForm::Narrow)
    }

    #[test]
    fn linear_copy_and_fill() {
        let copy = decode(&[1, 4095, 0, 0x1000, 0x7f00, 0x2000, 0x7f01]);
        let expected = Sdma::Copy {
            src: 0x7f00_0000_1000,
            dst: 0x7f01_0000_2000,
            bytes: 4096,
        };
        assert_eq!(copy, Some((expected, 7)));
        let fill = decode(&[11 | 2 << 30, 0x1000, 1, 0xabcd, (16 - 1) * 4]);
        assert_eq!(
            fill,
            Some((
                Sdma::Fill {
                    dst: 0x1_0000_1000,
                    value: 0xabcd,
                    bytes: 64
                },
                5
            ))
        );
    }

    #[test]
    fn small_ones() {
        assert_eq!(decode(&[3 << 16]), Some((Sdma::Nop, 4)));
        assert_eq!(decode(&[6, 9]), Some((Sdma::Trap { context: 9 }, 2)));
        assert_eq!(decode(&[8, 0, 0x8000_0000]), Some((Sdma::HdpFlush, 6)));
        let poll = Sdma::Poll {
            src: 0x10,
            function: 3,
            reference: 0,
            mask: u32::MAX,
        };
        assert_eq!(decode(&[8 | 3 << 28 | 1 << 31, 0x10, 0, 0, u32::MAX]), Some((poll, 6)));
        let atomic = Sdma::AtomicAdd64 {
            dst: 0x10,
            operand: u64::MAX,
        };
        assert_eq!(decode(&[10 | 47 << 25, 0x10, 0, u32::MAX, u32::MAX]), Some((atomic, 8)));
        assert_eq!(decode(&[13 | 2 << 8, 0x20]), Some((Sdma::Timestamp { dst: 0x20 }, 3)));
        assert_eq!(decode(&[0xff]), None);
    }
}
