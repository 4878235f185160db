//! Pauses: processes that the eBPF programs stopped for a moment, and the code that resumes them.
//!
//! The programs write an entry for each thread that they stop, into memory that the recorder, its guardians and later tracers share
//! ([`entries`]). Each of these follows the same rules to resume a process ([`resume`]): the process has an entry, it is the
//! process that the entry names, it still stands where it was stopped ([`place`]), and no other process has stopped it in between.
//!
//! Without eBPF, the recorder stops processes itself ([`stop`]), and writes the same entries.
//!
//! The recorder's [`keeper`] gives signs of life, without which the programs pause no process, and ends every pause that reaches
//! its limit.

pub mod entries;
pub mod guardian;
pub mod keeper;
pub mod known;
pub mod left;
mod place;
pub mod resume;
mod stop;
