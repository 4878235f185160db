//! Stores to AQL doorbells.

use std::ops::RangeInclusive;

use super::table;

table! {
    /// Stores to the doorbells of AQL queues.
    pub struct Doorbell: "doorbells" by time_ns, Events {
        /// Queue, as in `queues.queue`; null if tracer could not read the memory of the process.
        pub queue: Option<u32>,
        /// Process.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Time just before the store.
        pub time_ns: u64 => "ns",
        /// Value stored: index of the last packet published.
        pub value: u64 => "index",
        /// Indexes that it published; 0 for a repeated or lower value.
        pub published: u64 => "packets",
        /// The queue's read index at that moment.
        pub read_index: u64 => "index",
        /// The queue's write index at that moment.
        pub write_index: u64 => "index",
        /// Time since the thread's last reserve on this queue; null if none was seen.
        pub reserve_to_doorbell_ns: Option<u64> => "ns",
        /// Whether the value is an index that was not reserved.
        pub beyond: bool,
    }
}

impl Doorbell {
    /// Returns the indexes that it published; `None` if it published none.
    #[must_use]
    pub fn indexes(&self) -> Option<RangeInclusive<u64>> {
        let before = self.published.checked_sub(1)?;
        Some(self.value.saturating_sub(before)..=self.value)
    }
}
