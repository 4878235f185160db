//! The layout of the arguments of the kernels in tests/gpu-kernels.

use std::ffi::c_void;
use std::mem::offset_of;

/// The distance between the arguments of two launches: a cache line.
pub const ARGUMENT_STRIDE: usize = 64;

/// The arguments of a kernel, in C layout.
pub trait Arguments {
    /// The name of the kernel.
    const KERNEL: &'static str;
    /// The number of bytes up to the end of the last argument. The code object declares this size.
    const BYTES: usize;
    /// Writes the arguments to `slot`.
    fn write(&self, slot: &mut [u8]);
    /// Returns the address of each argument, as HIP takes them.
    fn addresses(&self) -> Vec<*mut c_void>;
}

/// Declares the arguments of a kernel.
macro_rules! arguments {
    ($(#[$doc:meta])* $name:ident of $kernel:literal, $bytes:literal bytes { $($field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $(#[doc = concat!("Argument `", stringify!($field), "`.")] pub $field: $ty,)*
        }
        impl Arguments for $name {
            const KERNEL: &'static str = $kernel;
            const BYTES: usize = $bytes;
            fn write(&self, slot: &mut [u8]) {
                $(slot[offset_of!(Self, $field)..][..size_of::<$ty>()].copy_from_slice(&self.$field.to_le_bytes());)*
            }
            fn addresses(&self) -> Vec<*mut c_void> {
                vec![$((&raw const self.$field).cast_mut().cast()),*]
            }
        }
        const _: () = assert!(size_of::<$name>() >= $bytes && size_of::<$name>() <= ARGUMENT_STRIDE);
    };
}

arguments! {
    /// `c = a + b`.
    VectorAdd of "vector_add", 28 bytes { a: u64, b: u64, c: u64, n: u32, }
}
arguments! {
    /// `p = value`.
    Fill of "fill", 16 bytes { p: u64, value: u32, n: u32, }
}
arguments! {
    /// `y = a * x + y`.
    Saxpy of "saxpy", 28 bytes { a: f32, x: u64, y: u64, n: u32, }
}
arguments! {
    /// Keeps the GPU busy for a number of ticks.
    Spin of "spin", 8 bytes { clocks: u64, }
}
arguments! {
    /// `out += sum of input`.
    Reduce of "reduce", 20 bytes { input: u64, out: u64, n: u32, }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_as_the_kernels_expect() {
        assert_eq!(
            (
                offset_of!(VectorAdd, b),
                offset_of!(VectorAdd, c),
                offset_of!(VectorAdd, n)
            ),
            (8, 16, 24)
        );
        assert_eq!((offset_of!(Fill, value), offset_of!(Fill, n)), (8, 12));
        assert_eq!(
            (offset_of!(Saxpy, x), offset_of!(Saxpy, y), offset_of!(Saxpy, n)),
            (8, 16, 24)
        );
        assert_eq!((offset_of!(Reduce, out), offset_of!(Reduce, n)), (8, 16));
        assert_eq!(offset_of!(Spin, clocks), 0);
    }
}
