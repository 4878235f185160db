//! The sources of events: eBPF backend, probe plan and resolver, library discovery, process tree.
//!
//! [`session::Session`] combines them: it loads the programs, pauses each process that maps an HSA runtime until its probes are
//! attached, and hands over [`tracer_core::event::Event`]s. It draws no conclusions from them.

mod api_stats;
pub mod attach;
mod btf;
pub mod candidate;
pub mod code_object;
pub mod confined;
pub mod debug_files;
pub mod decode;
pub mod devices;
mod diagnostics;
mod elf_peek;
pub mod elsewhere;
pub mod error;
mod findings;
mod gate;
pub mod guardian;
mod hold;
pub mod inspect;
pub mod inventory;
pub mod kallsyms;
pub mod kfd_proc;
pub mod launch;
mod library;
mod losses;
mod mapped;
pub mod object;
mod open_calls;
pub mod open_files;
pub mod pause;
pub mod pid_namespace;
mod probes;
mod proc_maps;
mod process_stat;
pub mod resolver;
pub mod rights;
mod ring_marks;
pub mod sampler;
mod scattered;
mod served;
pub mod session;
pub mod sys;
mod system;
mod thunk;
mod tree;

pub use error::CaptureError;
