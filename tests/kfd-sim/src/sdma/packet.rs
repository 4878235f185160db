//! SDMA packets, as ROCr builds them for gfx9 to gfx11 (`runtime/hsa-runtime/core/inc/sdma_registers.h`).

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
    CopyRect {
        src: Window,
        dst: Window,
        x: u64,
        y: u64,
        z: u64,
        element: u64,
    },
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

/// One side of a rectangular copy. Lengths are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Address of the surface.
    pub base: u64,
    /// Start in the surface.
    pub offset: [u64; 3],
    /// Elements from one line to the next.
    pub pitch: u64,
    /// Elements from one slice to the next.
    pub slice: u64,
}

impl Sdma {
    /// Decodes the packet at the start of `dwords`, which are zero beyond what was submitted. Returns the packet with its length.
    pub fn decode(dwords: &[u32; MAX_DWORDS]) -> Option<(Self, usize)> {
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
            (1, 4) => {
                let window = |at: usize| Window {
                    base: address(at),
                    offset: [
                        u64::from(dwords[at + 2] & 0x3fff),
                        u64::from(dwords[at + 2] >> 16 & 0x3fff),
                        u64::from(dwords[at + 3] & 0x7ff),
                    ],
                    pitch: u64::from(dwords[at + 3] >> 13) + 1,
                    slice: u64::from(dwords[at + 4] & 0xfff_ffff) + 1,
                };
                let rect = Self::CopyRect {
                    src: window(1),
                    dst: window(6),
                    x: u64::from(dwords[11] & 0x3fff) + 1,
                    y: u64::from(dwords[11] >> 16 & 0x3fff) + 1,
                    z: u64::from(dwords[12] & 0x7ff) + 1,
                    element: 1 << (header >> 29),
                };
                (rect, 13)
            }
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
            Self::CopyRect { .. } => "copy_rect",
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
            Self::CopyRect {
                src,
                dst,
                x,
                y,
                z,
                element,
            } => (src.base, dst.base, x * y * z * element),
            Self::Fence { dst, data } => (u64::from(data), dst, 4),
            Self::Trap { context } => (u64::from(context), 0, 0),
            Self::Poll { src, reference, .. } => (src, u64::from(reference), 4),
            Self::AtomicAdd64 { dst, operand } => (operand, dst, 8),
            Self::Fill { dst, value, bytes } => (u64::from(value), dst, bytes),
            Self::Timestamp { dst } => (0, dst, 8),
        }
    }
}

/// Returns whether a polled value satisfies its function. A function that does not exist is never satisfied.
pub fn poll_passes(function: u32, value: u32, reference: u32) -> bool {
    match function {
        0 => true,
        1 => value < reference,
        2 => value <= reference,
        3 => value == reference,
        4 => value != reference,
        5 => value >= reference,
        6 => value > reference,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(dwords: &[u32]) -> [u32; MAX_DWORDS] {
        std::array::from_fn(|i| dwords.get(i).copied().unwrap_or(0))
    }

    #[test]
    fn linear_copy_and_fill() {
        let copy = Sdma::decode(&packet(&[1, 4095, 0, 0x1000, 0x7f00, 0x2000, 0x7f01]));
        let expected = Sdma::Copy {
            src: 0x7f00_0000_1000,
            dst: 0x7f01_0000_2000,
            bytes: 4096,
        };
        assert_eq!(copy, Some((expected, 7)));
        let fill = Sdma::decode(&packet(&[11 | 2 << 30, 0x1000, 1, 0xabcd, (16 - 1) * 4]));
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
    fn rect() {
        let dwords = [
            1 | 4 << 8 | 2 << 29,
            0x1000,
            0,
            1 | 2 << 16,
            3 | 63 << 13,
            4095,
            0x2000,
            0,
            0,
            31 << 13,
            1023,
            9 | 4 << 16,
            1,
        ];
        let Some((
            Sdma::CopyRect {
                src,
                dst,
                x,
                y,
                z,
                element,
            },
            13,
        )) = Sdma::decode(&packet(&dwords))
        else {
            panic!("not a rect copy")
        };
        assert_eq!(
            src,
            Window {
                base: 0x1000,
                offset: [1, 2, 3],
                pitch: 64,
                slice: 4096
            }
        );
        assert_eq!(
            dst,
            Window {
                base: 0x2000,
                offset: [0, 0, 0],
                pitch: 32,
                slice: 1024
            }
        );
        assert_eq!((x, y, z, element), (10, 5, 2, 4));
    }

    #[test]
    fn small_ones() {
        assert_eq!(Sdma::decode(&packet(&[3 << 16])), Some((Sdma::Nop, 4)));
        assert_eq!(Sdma::decode(&packet(&[6, 9])), Some((Sdma::Trap { context: 9 }, 2)));
        assert_eq!(Sdma::decode(&packet(&[8, 0, 0x8000_0000])), Some((Sdma::HdpFlush, 6)));
        let poll = Sdma::Poll {
            src: 0x10,
            function: 3,
            reference: 0,
            mask: u32::MAX,
        };
        assert_eq!(
            Sdma::decode(&packet(&[8 | 3 << 28 | 1 << 31, 0x10, 0, 0, u32::MAX])),
            Some((poll, 6))
        );
        let atomic = Sdma::AtomicAdd64 {
            dst: 0x10,
            operand: u64::MAX,
        };
        assert_eq!(
            Sdma::decode(&packet(&[10 | 47 << 25, 0x10, 0, u32::MAX, u32::MAX])),
            Some((atomic, 8))
        );
        assert_eq!(
            Sdma::decode(&packet(&[13 | 2 << 8, 0x20])),
            Some((Sdma::Timestamp { dst: 0x20 }, 3))
        );
        assert_eq!(Sdma::decode(&packet(&[0xff])), None);
    }

    #[test]
    fn poll_functions() {
        let of = |function| [1, 2, 3].map(|value| poll_passes(function, value, 2));
        assert_eq!(of(0), [true; 3]);
        assert_eq!(of(1), [true, false, false]);
        assert_eq!(of(3), [false, true, false]);
        assert_eq!(of(5), [false, true, true]);
        assert_eq!(of(7), [false; 3]);
    }
}
