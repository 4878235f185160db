//! A workload whose result counts its dispatches.

use super::check;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hsa::Buffer;
use crate::hsa::executable::Kernel;
use crate::kernels::{ArgumentBuffer, VectorAdd};
use crate::packet::{Clusters, Grid, Packet};

/// The launch size of accumulators whose size does not matter: not a multiple of a wavefront, with a workgroup that is only partly
/// filled.
pub const SMALL: Grid = Grid {
    items: 100,
    workgroup: 64,
};

/// Integers up to this value are exact in `f32`.
const EXACT: u64 = 1 << 24;

/// A row of sums in host memory. Each run of the packet increases each sum by its own step: `sum = sum + step`.
///
/// A dispatch that is lost, doubled, or reads other data leaves a wrong sum. Only the kernel accesses the sums, so no copy is
/// involved.
pub struct Accumulator {
    sums: Buffer<f32>,
    /// The steps, which the kernel reads.
    _steps: Buffer<f32>,
    arguments: ArgumentBuffer,
    kernel: Kernel,
    grid: Grid,
}

impl Accumulator {
    /// Returns sums, all zero, for launches of `grid`.
    ///
    /// # Errors
    /// Fails if the runtime refuses the memory.
    pub fn new(context: &Context, grid: Grid) -> Result<Self> {
        let len = grid.items as usize;
        let mut sums = context.pools.host(len)?;
        let mut steps = context.pools.host(len)?;
        sums.write(&vec![0.0; len]);
        steps.write(&(0..len).map(|i| to_f32(step(i))).collect::<Vec<_>>());
        let launch = VectorAdd {
            a: sums.address(),
            b: steps.address(),
            c: sums.address(),
            n: grid.items,
        };
        let arguments = ArgumentBuffer::new(&context.pools, &[launch])?;
        Ok(Self {
            sums,
            _steps: steps,
            arguments,
            kernel: context.kernels.vector_add,
            grid,
        })
    }

    /// Returns a packet that adds the steps once, after everything before it in its queue.
    #[must_use]
    pub fn packet(&self) -> Packet {
        self.packet_of(self.grid)
    }

    /// Returns the same packet with another launch size.
    #[must_use]
    pub fn packet_of(&self, grid: Grid) -> Packet {
        Packet::dispatch(&self.kernel, grid, self.arguments.address(0)).after_all()
    }

    /// Returns a packet that does the same as an extended dispatch, whose size must be that of the grid.
    #[must_use]
    pub fn ext_packet(&self, clusters: Clusters) -> Packet {
        Packet::ext_dispatch(&self.kernel, clusters, self.arguments.address(0)).after_all()
    }

    /// Fails unless the packet has run `times` times.
    ///
    /// # Errors
    /// Names the sum that is wrong.
    pub fn verify(&self, what: &str, times: u64) -> Result<()> {
        within(times)?;
        check(
            &format!("sums of {what} after {times} dispatches"),
            &self.sums.read(),
            |i| to_f32(times * step(i)),
        )
    }
}

/// Checks that sums of this many dispatches are exact.
///
/// # Errors
/// Fails if they are not exact.
pub(crate) fn within(times: u64) -> Result<()> {
    if times > EXACT / step(2) {
        return Err(Error::Unexpected(format!(
            "{times} dispatches are too many to be counted exactly"
        )));
    }
    Ok(())
}

/// Returns the step of sum `i`: 1, 2 or 3.
pub(crate) fn step(i: usize) -> u64 {
    1 + i as u64 % 3
}

#[expect(clippy::cast_precision_loss, reason = "at most EXACT, which is exact")]
pub(crate) fn to_f32(value: u64) -> f32 {
    debug_assert!(value <= EXACT);
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_keeps_sums_exact() {
        assert!(super::super::MAX_DISPATCHES.cast_unsigned() <= EXACT / step(2));
    }
}
