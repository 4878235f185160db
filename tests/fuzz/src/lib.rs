//! Fuzz targets: parsers that read what strangers made, with what must hold whatever they are given.
//!
//! `cargo xtask fuzz` runs them under libFuzzer; the tests here run each over its seeds and simple damages of them, so that
//! a target that broke is noticed without.

mod code;
mod elf;
mod hold;
mod names;
mod runtime;
mod targets;

pub use targets::{ALL, Target};

#[cfg(test)]
mod tests;
