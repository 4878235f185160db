//! A workload whose result counts its launches.

use std::sync::Arc;

use super::super::memory::HostBuffer;
use super::super::runtime::Runtime;
use crate::arguments::VectorAdd;
use crate::error::Result;
use crate::packet::Grid;
use crate::workloads::accumulator::{step, to_f32, within};
use crate::workloads::check;

/// A row of sums in pinned host memory. Each run of the kernel increases each sum by its own step. No copy is involved.
pub struct Accumulator {
    sums: HostBuffer<f32>,
    /// The steps, which the kernel reads.
    _steps: HostBuffer<f32>,
    /// The arguments of `vector_add`.
    pub arguments: VectorAdd,
    /// The size of a launch.
    pub grid: Grid,
}

impl Accumulator {
    /// Returns sums, all zero, for launches of `grid`.
    ///
    /// # Errors
    /// Fails if HIP refuses the memory.
    pub fn new(runtime: &Arc<Runtime>, grid: Grid) -> Result<Self> {
        let len = grid.items as usize;
        let mut sums = HostBuffer::new(runtime, len)?;
        let mut steps = HostBuffer::new(runtime, len)?;
        sums.write(&vec![0.0; len]);
        steps.write(&(0..len).map(|i| to_f32(step(i))).collect::<Vec<_>>());
        let arguments = VectorAdd {
            a: sums.address(),
            b: steps.address(),
            c: sums.address(),
            n: grid.items,
        };
        Ok(Self {
            sums,
            _steps: steps,
            arguments,
            grid,
        })
    }

    /// Fails unless the kernel has run `times` times.
    ///
    /// # Errors
    /// Names the sum that is wrong.
    pub fn verify(&self, what: &str, times: u64) -> Result<()> {
        within(times)?;
        check(
            &format!("sums of {what} after {times} launches"),
            &self.sums.read(),
            |i| to_f32(times * step(i)),
        )
    }
}
