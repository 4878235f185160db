//! Attacks on pauses: kills of the recorder and its guardians, process ids that are used again, containers that are removed. No
//! process stays stopped, no stranger is resumed.
//!
//! `cfg(test)` is for clippy, which otherwise takes helpers for code that must not unwrap.

#[cfg(test)]
mod containers;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod reuse;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod support;
#[cfg(test)]
mod together;
