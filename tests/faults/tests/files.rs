//! Files that tracer writes and reads, in folders that other users control. Root's rights must not be usable through them.
//!
//! `cfg(test)` is for clippy, which otherwise treats the helpers as code that must not unwrap.

#[cfg(test)]
mod damaged;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod support;
