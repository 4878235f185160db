//! Fuzz targets: parsers of untrusted input, with the properties that must hold for any input.
//!
//! `cargo xtask fuzz` runs them under libFuzzer. The tests here run each target over its seeds and simple damages of them, so that
//! a broken target is noticed without fuzzing.

mod code;
mod elf;
mod hold;
mod names;
mod runtime;
mod targets;

pub use targets::{ALL, Target};

#[cfg(test)]
mod tests;
