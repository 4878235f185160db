//! Copies between host and GPU. Each copy is waited for and counted.

use crate::context::Context;
use crate::error::Result;
use crate::hsa::memory::DeviceBuffer;
use crate::hsa::{Buffer, Signal};
use crate::report::Outcome;

/// A counter of copies that also makes them.
pub struct Copier<'c> {
    context: &'c Context,
    done: Signal,
    copies: u64,
    bytes: u64,
}

impl<'c> Copier<'c> {
    /// Returns a copier that has copied nothing yet.
    ///
    /// # Errors
    /// Fails if the runtime refuses a signal.
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
    /// Fails if the runtime refuses the copy, or the copy does not complete in time.
    pub fn upload<T>(&mut self, from: &Buffer<T>, to: &DeviceBuffer<T>) -> Result<()> {
        self.done.store(1);
        to.copy_from(from, &self.done)?;
        self.wait("a copy to the GPU", from.bytes())
    }

    /// Copies `from` to the host.
    ///
    /// # Errors
    /// Fails if the runtime refuses the copy, or the copy does not complete in time.
    pub fn download<T>(&mut self, from: &DeviceBuffer<T>, to: &mut Buffer<T>) -> Result<()> {
        self.done.store(1);
        from.copy_to(to, &self.done)?;
        self.wait("a copy to the host", to.bytes())
    }

    /// Adds the copies to `outcome`.
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
