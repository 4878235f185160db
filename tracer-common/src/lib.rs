//! The interface between the eBPF programs and user space, and the fixed layouts of AMD's user-mode queues.
//!
//! No `std`, no allocation: the crate is compiled for `bpfel-unknown-none` and for the host. Each module that defines a layout
//! names its source.
#![no_std]

#[macro_use]
mod declare;

pub mod api;
pub mod aql;
pub mod driver_plan;
pub mod ioctl_args;
pub mod kfd;
pub mod offset;
pub mod open;
pub mod pause;
pub mod placement;
pub mod queue;
pub mod queue_descriptor;
pub mod r_debug;
pub mod record;
pub mod ring;
pub mod sdma;
