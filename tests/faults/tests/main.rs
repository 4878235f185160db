//! Attacks on the tracer, a module for each thing that is attacked. Needs root, and what `cargo xtask test` builds.

mod blocked;
mod files;
mod hostile;
mod life;
mod limits;
mod pauses;
mod readers;
mod rights;
mod unused;
