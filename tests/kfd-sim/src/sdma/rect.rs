//! Rectangular copies, whose fields have other widths on gfx12.

/// A copy of a box of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Where it is read.
    pub src: Window,
    /// Where it is written.
    pub dst: Window,
    /// Elements in a line.
    pub x: u64,
    /// Lines in a slice.
    pub y: u64,
    /// Slices.
    pub z: u64,
    /// Bytes of an element.
    pub element: u64,
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

/// Widths of the fields of a rectangular copy, which grew with gfx12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RectForm {
    /// gfx9 to gfx11.
    Narrow,
    /// gfx12.
    Wide,
}

impl RectForm {
    /// Returns the form that a GPU with that major version of the instruction set uses.
    pub fn of(gfx_major: u32) -> Self {
        if gfx_major >= 12 { Self::Wide } else { Self::Narrow }
    }

    /// Decodes a packet whose header says that it is a rectangular copy.
    pub fn decode(self, dwords: &[u32; 13]) -> Rect {
        // Masks of x and y, of z, and of a slice; the lowest bit of a pitch.
        let (plane, depth, slice, pitch) = match self {
            Self::Narrow => (0x3fff, 0x7ff, 0xfff_ffff, 13),
            Self::Wide => (0xffff, 0x3fff, u32::MAX, 16),
        };
        let window = |at: usize| Window {
            base: u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32,
            offset: [
                u64::from(dwords[at + 2] & plane),
                u64::from(dwords[at + 2] >> 16 & plane),
                u64::from(dwords[at + 3] & depth),
            ],
            pitch: u64::from(dwords[at + 3] >> pitch) + 1,
            slice: u64::from(dwords[at + 4] & slice) + 1,
        };
        Rect {
            src: window(1),
            dst: window(6),
            x: u64::from(dwords[11] & plane) + 1,
            y: u64::from(dwords[11] >> 16 & plane) + 1,
            z: u64::from(dwords[12] & depth) + 1,
            element: 1 << (dwords[0] >> 29),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rect_before_gfx12() {
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
        let Rect {
            src,
            dst,
            x,
            y,
            z,
            element,
        } = RectForm::Narrow.decode(&dwords);
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

    /// The fields that are wider on gfx12 have values here that do not fit into the narrow ones.
    #[test]
    fn rect_of_gfx12() {
        let dwords = [
            1 | 4 << 8,
            0x1000,
            0x7f,
            0x8001 | 0x9002 << 16,
            0x2003 | 0xf0ff << 16,
            0xffff_fffe,
            0x2000,
            0,
            0,
            31 << 16,
            1023,
            0x7fff | 0xfffe << 16,
            0x3001,
        ];
        let (src, dst) = (
            Window {
                base: 0x7f_0000_1000,
                offset: [0x8001, 0x9002, 0x2003],
                pitch: 0xf100,
                slice: 0xffff_ffff,
            },
            Window {
                base: 0x2000,
                offset: [0, 0, 0],
                pitch: 32,
                slice: 1024,
            },
        );
        let rect = Rect {
            src,
            dst,
            x: 0x8000,
            y: 0xffff,
            z: 0x3002,
            element: 1,
        };
        assert_eq!(RectForm::of(12).decode(&dwords), rect);
        assert_ne!(RectForm::of(11).decode(&dwords), rect);
    }
}
