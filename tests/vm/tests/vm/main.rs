//! The tracer on each of Debian's kernels, against what the programs in there count themselves. The jobs' hardware is made
//! up (tests/drm-sched-mock), and GPUs are simulated (tests/kfd-sim): there is none.
//!
//! They need what `cargo xtask setup --only vm` installs; `cargo xtask test` and `cargo xtask test --vm` do it.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

/// A test of each name for each kernel.
macro_rules! on_each_kernel {
    ($($check:ident),* $(,)?) => {
        mod v6_1 { $(#[test] fn $check() { super::$check("6.1"); })* }
        mod v6_12 { $(#[test] fn $check() { super::$check("6.12"); })* }
        mod v7 { $(#[test] fn $check() { super::$check("7.x"); })* }
    };
}

mod doctor;
mod kernels;
mod ring;
mod support;
mod together;
mod verify;
