//! HIP's own copy and fill kernels, which it uses within a device and for small copies.
//!
//! HIP compiles them when it starts, so their code is in no file. They are recognised by their names. Their arguments are those of
//! OpenCL C, in natural layout: rocclr/device/blitcl.cpp defines the kernels, and rocblit.cpp passes the arguments. The arguments
//! changed between HIP 5.7 and 6.4; their values show which form is in use.

use crate::vm::{AddressSpace, Fault};

/// The number of arguments examined, in 8-byte words.
const WORDS: usize = 8;

/// The longest pattern of a fill.
const PATTERN_BYTES: u64 = 4096;

/// The operation of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HipBlit {
    /// Copies bytes.
    Copy { src: u64, dst: u64, bytes: u64 },
    /// Stores the pattern at an address repeatedly.
    Fill {
        dst: u64,
        pattern: u64,
        pattern_bytes: u64,
        bytes: u64,
    },
}

impl HipBlit {
    /// Decodes the arguments of the kernel of that name. Returns `None` if it is not one of HIP's kernels, or if its arguments make
    /// no sense.
    pub fn decode(space: &AddressSpace, name: &str, kernarg: u64) -> Option<Self> {
        let form = match name {
            "__amd_rocclr_copyBuffer" => Self::copy,
            "__amd_rocclr_fillBufferAligned" => Self::fill,
            _ => return None,
        };
        let mut bytes = [0; WORDS * 8];
        space.read(kernarg, &mut bytes).ok()?;
        let (words, _) = bytes.as_chunks();
        form(&std::array::from_fn(|i| u64::from_le_bytes(words[i])))
    }

    /// HIP 6.4: source, destination, bytes, (remainder, size of elements), end of the range that whole elements cover, ...;
    /// HIP 5: source, destination, offset in each, words and one, (bytes beyond them).
    fn copy(words: &[u64; WORDS]) -> Option<Self> {
        let [src, dst, third, fourth, fifth, sixth, ..] = *words;
        let element = fourth >> 32;
        if matches!(element, 4 | 16) && (dst..=dst.checked_add(third)?).contains(&fifth) {
            return Some(Self::Copy { src, dst, bytes: third });
        }
        let remainder = sixth & 0xffff_ffff;
        let bytes = fifth.checked_sub(1)?.checked_mul(4)?.checked_add(remainder)?;
        (remainder < 4).then_some(Self::Copy {
            src: src.checked_add(third)?,
            dst: dst.checked_add(fourth)?,
            bytes,
        })
    }

    /// HIP 6.4: destination, pattern, (elements of the pattern, size of elements), end, ...;
    /// HIP 5: destination as bytes, as 16, 32 or 64-bit words (three of these are null), pattern, (its elements), offset in
    /// elements, patterns.
    fn fill(words: &[u64; WORDS]) -> Option<Self> {
        let [first, second, third, fourth, ..] = *words;
        if first != 0 && second != 0 {
            let pattern_bytes = (third & 0xffff_ffff).checked_mul(third >> 32)?;
            return Some(Self::Fill {
                dst: first,
                pattern: second,
                pattern_bytes,
                bytes: fourth.checked_sub(first)?,
            });
        }
        let places = [first, second, third, fourth];
        let at = places.iter().position(|&place| place != 0)?;
        let (element, [_, _, _, _, pattern, elements, offset, count]) = (1u64 << at, *words);
        let pattern_bytes = (elements & 0xffff_ffff).checked_mul(element)?;
        Some(Self::Fill {
            dst: places[at].checked_add(offset.checked_mul(element)?)?,
            pattern,
            pattern_bytes,
            bytes: count.checked_mul(pattern_bytes)?,
        })
    }

    /// Performs the operation.
    pub fn run(self, space: &AddressSpace) -> Result<(), Fault> {
        match self {
            Self::Copy { src, dst, bytes } => space.copy(dst, src, bytes),
            Self::Fill {
                dst,
                pattern,
                pattern_bytes,
                bytes,
            } => {
                if pattern_bytes == 0 || pattern_bytes > PATTERN_BYTES {
                    return Err(Fault(pattern));
                }
                let mut block = vec![0; pattern_bytes as usize];
                space.read(pattern, &mut block)?;
                let block = block.repeat((PATTERN_BYTES / pattern_bytes) as usize);
                let mut done = 0;
                while done < bytes {
                    let part = (block.len() as u64).min(bytes - done);
                    space.write(dst.checked_add(done).ok_or(Fault(dst))?, &block[..part as usize])?;
                    done += part;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_both_forms() {
        let new = [0x1000, 0x2000, 103, 16 << 32 | 7, 0x2060, 0, 0, 0];
        let expected = HipBlit::Copy {
            src: 0x1000,
            dst: 0x2000,
            bytes: 103,
        };
        assert_eq!(HipBlit::copy(&new), Some(expected));
        let old = [0x1000, 0x2000, 0x10, 0x20, 26, 0xffff_ffff_0000_0003, 0, 0];
        let expected = HipBlit::Copy {
            src: 0x1010,
            dst: 0x2020,
            bytes: 103,
        };
        assert_eq!(HipBlit::copy(&old), Some(expected));
    }

    #[test]
    fn fills_of_both_forms() {
        let new = [0x1000, 0x8000, 4 << 32 | 1, 0x1400, 0, 0, 0, 0];
        let expected = HipBlit::Fill {
            dst: 0x1000,
            pattern: 0x8000,
            pattern_bytes: 4,
            bytes: 0x400,
        };
        assert_eq!(HipBlit::fill(&new), Some(expected));
        let old = [0, 0, 0, 0x1000, 0x8000, 1, 2, 100];
        let expected = HipBlit::Fill {
            dst: 0x1010,
            pattern: 0x8000,
            pattern_bytes: 8,
            bytes: 800,
        };
        assert_eq!(HipBlit::fill(&old), Some(expected));
    }

    #[test]
    fn arguments_without_sense() {
        assert_eq!(HipBlit::fill(&[0; 8]), None);
        assert_eq!(HipBlit::copy(&[1, 2, 3, 4, 5, 99, 0, 0]), None);
        assert_eq!(HipBlit::copy(&[0; 8]), None);
    }
}
