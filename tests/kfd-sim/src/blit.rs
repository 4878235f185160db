//! ROCr's own copy and fill kernels, which it uses where it does not use SDMA (within a device, and for fills).
//!
//! Their code is inside ROCr, so they cannot be recognised by it. They are distinguished from other unknown kernels by their form
//! (an `amd_kernel_code_t` with the code right behind it, as only ROCr's assembler generates) and by their arguments, which hold
//! the grid size and addresses that must agree with one another (`BlitKernel::KernelArgs` in `amd_blit_kernel.h`).

use crate::aql::packet::KernelDispatch;
use crate::vm::{AddressSpace, Fault};

/// Size of `amd_kernel_code_t`: the distance from the kernel object to the code.
pub const CODE_HEADER_BYTES: i64 = 256;

/// Bytes of the longest argument block.
const ARGUMENT_BYTES: usize = 84;

/// The operation of a blit kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blit {
    /// Copies bytes.
    Copy { src: u64, dst: u64, bytes: u64 },
    /// Stores a value repeatedly.
    Fill { dst: u64, value: u32, bytes: u64 },
}

impl Blit {
    /// Decodes the arguments of a dispatch that has the form of a blit. Returns `None` if they are not the arguments of a blit.
    pub fn decode(space: &AddressSpace, dispatch: &KernelDispatch) -> Option<Self> {
        let has_form = dispatch.dimensions == 1 && dispatch.workgroup == [64, 1, 1] && dispatch.grid[1..] == [1, 1];
        let mut arguments = [0; ARGUMENT_BYTES];
        if !has_form || space.read(dispatch.kernarg_address, &mut arguments).is_err() {
            return None;
        }
        Self::from_arguments(&arguments, dispatch.grid[0])
    }

    fn from_arguments(arguments: &[u8; ARGUMENT_BYTES], grid: u32) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| arguments[8 * at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| arguments[4 * at + i]));
        // In every phase, source and destination are at the same distance from their start.
        let copy = |phases: &[usize]| {
            let steps = |side: usize| phases.iter().map(move |&at| word(at + side).wrapping_sub(word(side)));
            let bytes = steps(0).next_back()?;
            (steps(0).eq(steps(1)) && steps(0).is_sorted()).then_some(Self::Copy {
                src: word(0),
                dst: word(1),
                bytes,
            })
        };
        let is_aligned_copy = half(20) == grid;
        let is_misaligned_copy = half(12) == grid;
        let is_fill = half(7) == grid && word(0) <= word(1) && word(1) <= word(2);
        let aligned = if is_aligned_copy { copy(&[0, 2, 4, 6, 8]) } else { None };
        let misaligned = || if is_misaligned_copy { copy(&[0, 2, 4]) } else { None };
        let fill = || {
            is_fill.then(|| Self::Fill {
                dst: word(0),
                value: half(6),
                bytes: word(2) - word(0),
            })
        };
        aligned.or_else(misaligned).or_else(fill)
    }

    /// Performs the operation.
    pub fn run(self, space: &AddressSpace) -> Result<(), Fault> {
        match self {
            Self::Copy { src, dst, bytes } => space.copy(dst, src, bytes),
            Self::Fill { dst, value, bytes } => space.fill_u32(dst, value, bytes / 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[u64], last: &[u32]) -> [u8; ARGUMENT_BYTES] {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = words.chain(last.iter().flat_map(|half| half.to_le_bytes())).collect();
        std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
    }

    #[test]
    fn the_three_kernels() {
        let aligned = arguments(
            &[
                0x1003, 0x2003, 0x1100, 0x2100, 0x1100, 0x2100, 0x1200, 0x2200, 0x1201, 0x2201,
            ],
            &[77_824],
        );
        let copy = Blit::Copy {
            src: 0x1003,
            dst: 0x2003,
            bytes: 0x1fe,
        };
        assert_eq!(Blit::from_arguments(&aligned, 77_824), Some(copy));
        let misaligned = arguments(&[0x1001, 0x2002, 0x1001, 0x2002, 0x1011, 0x2012], &[77_824]);
        let copy = Blit::Copy {
            src: 0x1001,
            dst: 0x2002,
            bytes: 0x10,
        };
        assert_eq!(Blit::from_arguments(&misaligned, 77_824), Some(copy));
        let fill = arguments(&[0x1000, 0x1000, 0x1400], &[0x1234, 19_456]);
        let expected = Blit::Fill {
            dst: 0x1000,
            value: 0x1234,
            bytes: 0x400,
        };
        assert_eq!(Blit::from_arguments(&fill, 19_456), Some(expected));
    }

    #[test]
    fn other_arguments() {
        let vector_add = arguments(&[0x1000, 0x2000, 0x3000], &[64]);
        assert_eq!(Blit::from_arguments(&vector_add, 64), None);
        let torn = arguments(&[0x1001, 0x2002, 0x1001, 0x2002, 0x1011, 0x2013], &[64]);
        assert_eq!(Blit::from_arguments(&torn, 64), None);
    }
}
