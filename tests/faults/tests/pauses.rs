//! Attacks on pauses: kills of the recorder and its guardians, reused process ids, removed containers. No process stays stopped,
//! and no unrelated process is resumed.
//!
//! `cfg(test)` is for clippy, which otherwise treats the helpers as code that must not unwrap.

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
