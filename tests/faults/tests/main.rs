//! Attacks on tracer, one module per target. They need root, and the files that `cargo xtask test` builds.

mod blocked;
mod files;
mod hostile;
mod inodes;
mod life;
mod limits;
mod pauses;
mod readers;
mod rights;
mod unused;
