//! Files that tracer writes and reads, in folders that others control: root's rights must lead nowhere.
//!
//! `cfg(test)` is for clippy, which otherwise takes helpers for code that must not unwrap.

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
