//! The running kernel: its structures, symbols and limits, its KFD, and the programs that tracer loads into it.

pub(crate) mod btf;
pub mod descriptors;
pub mod devices;
pub(crate) mod diagnostics;
pub mod ebpf_object;
pub mod kallsyms;
pub mod kfd_proc;
mod products;
pub mod rights;
pub(crate) mod uprobe_events;
