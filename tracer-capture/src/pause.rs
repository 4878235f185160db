//! Pauses: processes that the eBPF programs stopped for a moment, and who resumes them.
//!
//! The programs write an entry for each thread that they stop, into memory that the recorder, its guardians and later tracers
//! share ([`entries`]). Whoever resumes a process follows the same rules ([`resume`]): it has an entry, it is the process that
//! the entry is of, it still stands where it was stopped ([`place`]), and nobody else has stopped it meanwhile.
//!
//! The recorder's [`keeper`] gives signs of life, without which the programs pause nobody, and ends every pause that reaches
//! its limit.

pub mod entries;
pub mod keeper;
pub mod known;
pub mod left;
mod place;
pub mod resume;
