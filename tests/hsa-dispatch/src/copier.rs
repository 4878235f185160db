//! Copies between host and GPU, each waited for and counted.

use crate::context::Context;
use crate::error::Result;
use crate::hsa::memory::DeviceBuffer;
use crate::hsa::{Buffer, Signal};
use crate::report::Outcome;

/// Makes copies and counts them.
pub struct Copier<'c> {
    context: &'c Context,
    done: Signal,
    copies: u64,
    bytes: u64,
}

impl<'c> Copier<'c> {
    /// One that has copied nothing yet.
    ///
    /// # Errors
    /// The runtime refuses a signal.
    pub fn new(context: &'c Context) -> Result<Self> {
        Ok(Self {
            context,
            done: context.signal(0)?,
            copies: 0,
            bytes: 0,
        })
    }

    /// Copies `from` to the GPU.
    ///
    /// # Errors
    /// The runtime refuses, or the copy does not end in time.
    pub fn upload<T>(&mut self, from: &Buffer<T>, to: &DeviceBuffer<T>) -> Result<()> {
        self.done.store(1);
        to.copy_from(from, &self.done)?;
        self.wait("a copy to the GPU", from.bytes())
    }

    /// Copies `from` to the host.
    ///
    /// # Errors
    /// The runtime refuses, or the copy does not end in time.
    pub fn download<T>(&mut self, from: &DeviceBuffer<T>, to: &mut Buffer<T>) -> Result<()> {
        self.done.store(1);
        from.copy_to(to, &self.done)?;
        self.wait("a copy to the host", to.bytes())
    }

    /// Adds what was copied to `outcome`.
    pub fn report(self, outcome: &mut Outcome) {
        outcome.add_copies(self.copies, self.bytes);
    }

    fn wait(&mut self, what: &str, bytes: usize) -> Result<()> {
        self.done.wait(what, self.context.timeout, &[])?;
        self.copies += 1;
        self.bytes += bytes as u64;
        Ok(())
    }
}
