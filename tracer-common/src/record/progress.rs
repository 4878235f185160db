//! The progress of a queue, read by a thread of its own process: [`Progress`].

use super::Header;

/// Bits of [`Header::flags`] in a [`Progress`].
pub mod progress_flags {
    /// The bits of the occasion.
    pub const OCCASION: u16 = 3;
    /// The thread enters DESTROY_QUEUE.
    pub const DESTROY: u16 = 0;
    /// The thread returns from a DESTROY_QUEUE that succeeded.
    pub const DESTROYED: u16 = 1;
    /// The thread exits, and its process with it.
    pub const PROCESS_END: u16 = 2;
}

/// A sample of the two indexes of an AQL queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Header; [`progress_flags`]. Its time is the time before the read.
    pub header: Header,
    /// User address of the `amd_queue_t`.
    pub queue: u64,
    /// Time after the read, CLOCK_MONOTONIC ns.
    pub after_ns: u64,
    /// Read index, read first.
    pub read_index: u64,
    /// Write index.
    pub write_index: u64,
    /// One past the highest index that doorbells published before the sample, including doorbells whose records were lost;
    /// [`super::UNKNOWN`] if this queue's walks are not known.
    pub rung_end: u64,
}
