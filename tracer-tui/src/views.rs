//! The tables, one per file.

pub mod api;
pub mod copies;
pub mod ioctls;
pub mod kernels;
pub mod processes;
pub mod queue;
pub mod queues;
pub mod rings;
