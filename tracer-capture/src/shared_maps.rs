//! Maps of the eBPF programs that this process shares with them, and reads without disturbing them.

pub(crate) mod api_stats;
pub(crate) mod counting;
pub(crate) mod losses;
pub(crate) mod open_calls;
pub(crate) mod positions;
pub(crate) mod words;
