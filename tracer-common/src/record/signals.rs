//! The contents of completion signals: [`Signals`].

use super::Header;

/// The times when a packet ran, in ticks of its GPU's clock. The GPU writes them into the packet's completion signal if the queue
/// is profiled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The start of the packet.
    pub start: u64,
    /// The end of the packet.
    pub end: u64,
}

/// The state of a completion signal when it was read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalState {
    /// Handle of the signal, which is the user address of the `amd_signal_t`; 0 if there is none, or it could not be read.
    pub signal: u64,
    /// The signal's value, read before the stamps. The GPU writes the stamps before the value.
    pub value: i64,
    /// The stamps of the packet that last completed on the signal.
    pub stamps: Stamps,
}

/// The number of signals in a [`Signals`] record.
pub const SIGNALS_PER_RECORD: usize = 16;

/// The completion signals of some of a queue's last packets, which are consecutive in the ring. A thread that ends the queue reads
/// them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    /// Header. Its time is the time before the reads.
    pub header: Header,
    /// Time after the reads, CLOCK_MONOTONIC ns.
    pub after_ns: u64,
    /// The signals.
    pub signals: [SignalState; SIGNALS_PER_RECORD],
}
