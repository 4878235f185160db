//! What completion signals hold: [`Signals`].

use super::Header;

/// When a packet ran, in ticks of its GPU's clock: what the GPU writes into its completion signal if the queue is profiled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// It began.
    pub start: u64,
    /// It ended.
    pub end: u64,
}

/// A completion signal, as it was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalState {
    /// Handle of the signal, which is the user address of the `amd_signal_t`; 0 if there is none, or it could not be read.
    pub signal: u64,
    /// Its value, read before the stamps, which the GPU writes before the value.
    pub value: i64,
    /// Of the packet that it ended last.
    pub stamps: Stamps,
}

/// Signals in a [`Signals`] record.
pub const SIGNALS_PER_RECORD: usize = 16;

/// The completion signals of some of the last packets of a queue, read by a thread that ends it: of packets that lie one
/// after the other in the ring.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    /// Header. Its time is that before the reads.
    pub header: Header,
    /// Time after them, CLOCK_MONOTONIC ns.
    pub after_ns: u64,
    /// The signals.
    pub signals: [SignalState; SIGNALS_PER_RECORD],
}
