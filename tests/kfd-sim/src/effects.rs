//! The effects of the project's test kernels, as host functions on the client's memory.

use std::time::Duration;

use crate::aql::packet::KernelDispatch;
use crate::clock::GPU_TICK_NS;
use crate::vm::{AddressSpace, Fault};

/// The number of elements computed at a time.
const BLOCK: u64 = 16 * 1024;

/// The effect of a kernel. The signatures are those in tests/gpu-kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `vector_add(a: *const f32, b: *const f32, c: *mut f32, n: u32)`
    VectorAdd,
    /// `fill(p: *mut u32, value: u32, n: u32)`
    Fill,
    /// `saxpy(a: f32, x: *const f32, y: *mut f32, n: u32)`
    Saxpy,
    /// `spin(clocks: u64)`
    Spin,
    /// `reduce(input: *const u32, out: *mut u32, n: u32)`
    Reduce,
}

/// The kernel arguments in their natural C layout.
struct Arguments([u8; 28]);

impl Arguments {
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }
}

impl Effect {
    /// Returns the effect of the kernel of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "vector_add" => Self::VectorAdd,
            "fill" => Self::Fill,
            "saxpy" => Self::Saxpy,
            "spin" => Self::Spin,
            "reduce" => Self::Reduce,
            _ => return None,
        })
    }

    /// Returns the size of the arguments in bytes.
    fn argument_bytes(self) -> usize {
        match self {
            Self::VectorAdd | Self::Saxpy => 28,
            Self::Fill => 16,
            Self::Spin => 8,
            Self::Reduce => 20,
        }
    }

    /// Applies the kernel's effect. Returns how long the device would be busy, if the kernel's effect is to take time.
    pub fn run(self, space: &AddressSpace, dispatch: &KernelDispatch) -> Result<Duration, Fault> {
        let mut arguments = Arguments([0; 28]);
        space.read(dispatch.kernarg_address, &mut arguments.0[..self.argument_bytes()])?;
        // The kernels index by the first dimension alone: each row of a larger grid repeats the same work.
        let [items, rows, planes] = dispatch.grid;
        let count = |n: u32| u64::from(items.min(n));
        match self {
            Self::VectorAdd => {
                let (a, b, c, n) = (arguments.u64(0), arguments.u64(8), arguments.u64(16), arguments.u32(24));
                map2(space, (a, b, c), count(n), |a, b| {
                    f32::to_bits(f32::from_bits(a) + f32::from_bits(b))
                })?;
            }
            Self::Fill => {
                let (p, value, n) = (arguments.u64(0), arguments.u32(8), arguments.u32(12));
                space.fill_u32(p, value, count(n))?;
            }
            Self::Saxpy => {
                let (a, x, y, n) = (arguments.u32(0), arguments.u64(8), arguments.u64(16), arguments.u32(24));
                let a = f32::from_bits(a);
                map2(space, (x, y, y), count(n), |x, y| {
                    f32::to_bits(a * f32::from_bits(x) + f32::from_bits(y))
                })?;
            }
            Self::Spin => return Ok(Duration::from_nanos(arguments.u64(0).saturating_mul(GPU_TICK_NS))),
            Self::Reduce => {
                let (input, out, n) = (arguments.u64(0), arguments.u64(8), arguments.u32(16));
                let mut sum = 0u32;
                each_block(count(n), |at, words| {
                    let input = read_words(space, input.wrapping_add(at), words)?;
                    sum = input.into_iter().fold(sum, u32::wrapping_add);
                    Ok(())
                })?;
                space.add_u32(out, sum.wrapping_mul(rows).wrapping_mul(planes))?;
            }
        }
        Ok(Duration::ZERO)
    }
}

/// Calls `step` with the byte offset and the number of elements of each block.
fn each_block(count: u64, mut step: impl FnMut(u64, usize) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut done = 0;
    while done < count {
        let words = BLOCK.min(count - done);
        step(done * 4, words as usize)?;
        done += words;
    }
    Ok(())
}

fn read_words(space: &AddressSpace, va: u64, words: usize) -> Result<Vec<u32>, Fault> {
    let mut bytes = vec![0; words * 4];
    space.read(va, &mut bytes)?;
    Ok(bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect())
}

fn map2(
    space: &AddressSpace,
    (a, b, out): (u64, u64, u64),
    count: u64,
    f: impl Fn(u32, u32) -> u32,
) -> Result<(), Fault> {
    each_block(count, |at, words| {
        let a = read_words(space, a.wrapping_add(at), words)?;
        let b = read_words(space, b.wrapping_add(at), words)?;
        let bytes: Vec<u8> = a.into_iter().zip(b).flat_map(|(a, b)| f(a, b).to_le_bytes()).collect();
        space.write(out.wrapping_add(at), &bytes)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SharedFile;

    fn run(effect: Effect, arguments: &[u8], grid: u32) -> Result<Duration, Fault> {
        let space = AddressSpace::new(
            std::process::id() as i32,
            Arc::new(SharedFile::new("test", 1 << 20).unwrap()),
        );
        let dispatch = KernelDispatch {
            dimensions: 1,
            workgroup: [64, 1, 1],
            grid: [grid, 1, 1],
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 0,
            kernarg_address: arguments.as_ptr() as u64,
            completion_signal: 0,
        };
        effect.run(&space, &dispatch)
    }

    fn address<T>(data: &mut [T]) -> [u8; 8] {
        (data.as_mut_ptr() as u64).to_le_bytes()
    }

    #[test]
    fn vector_add_and_saxpy() {
        let (mut a, mut b) = (vec![1.5f32; 40_000], vec![2.0f32; 40_000]);
        let mut c = vec![0f32; 40_000];
        let arguments = [
            &address(&mut a)[..],
            &address(&mut b),
            &address(&mut c),
            &40_000u32.to_le_bytes(),
        ]
        .concat();
        run(Effect::VectorAdd, &arguments, 40_960).unwrap();
        assert!(c.iter().all(|&c| c == 3.5));
        let arguments = [
            &2f32.to_le_bytes()[..],
            &[0; 4],
            &address(&mut a),
            &address(&mut c),
            &100u32.to_le_bytes(),
        ]
        .concat();
        run(Effect::Saxpy, &arguments, 64).unwrap();
        assert!(c[..64].iter().all(|&c| c == 6.5), "a work-item an element");
        assert!(c[64..].iter().all(|&c| c == 3.5), "the grid ends before n");
    }

    #[test]
    fn fill_reduce_spin() {
        let mut data = vec![0u32; 1000];
        let arguments = [&address(&mut data)[..], &7u32.to_le_bytes(), &999u32.to_le_bytes()].concat();
        run(Effect::Fill, &arguments, 1024).unwrap();
        assert_eq!((data[998], data[999]), (7, 0));
        let mut out = [u32::MAX];
        let arguments = [&address(&mut data)[..], &address(&mut out), &1000u32.to_le_bytes()].concat();
        run(Effect::Reduce, &arguments, 1024).unwrap();
        assert_eq!(out, [999 * 7 - 1]);
        assert_eq!(
            run(Effect::Spin, &5000u64.to_le_bytes(), 1),
            Ok(Duration::from_micros(50))
        );
    }

    #[test]
    fn wild_pointers_fault() {
        let arguments = [&[0; 8][..], &7u32.to_le_bytes(), &999u32.to_le_bytes()].concat();
        assert!(run(Effect::Fill, &arguments, 1024).is_err());
    }
}
