//! Batches of writes.

/// Writes to execute in order, batched to need few system calls.
#[derive(Default)]
pub struct WriteBatch {
    pub(super) data: Vec<u8>,
    pub(super) parts: Vec<(u64, usize)>,
}

impl WriteBatch {
    /// Adds a write to the end.
    pub fn push(&mut self, va: u64, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.parts.push((va, bytes.len()));
    }

    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}
