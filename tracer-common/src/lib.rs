//! What eBPF programs and user space say to each other, and the fixed layouts of AMD's user-mode queues.
//!
//! No `std`, no allocation: the crate is compiled for `bpfel-unknown-none` and for the host. Everything with a
//! layout of its own says where the layout comes from.
#![no_std]

pub mod api;
pub mod aql;
pub mod ioctl_args;
pub mod kfd;
pub mod open;
pub mod pause;
pub mod placement;
pub mod queue;
pub mod r_debug;
pub mod record;
pub mod ring;
pub mod sdma;
