//! The sources of events: eBPF and perf backends, probe plan and resolver, library discovery, process tree.
//!
//! [`session::Session`] combines them: it loads the programs, pauses each process that maps an HSA runtime until its probes are
//! attached, and hands over [`tracer_core::event::Event`]s. It draws no conclusions from them.

mod api_choice;
pub mod backend;
mod complete;
pub mod confined;
mod cost;
pub mod decode;
pub mod error;
mod examination;
mod ftrace;
pub mod inspect;
pub mod inventory;
pub mod kernel;
pub mod pause;
mod perf;
mod probes;
pub mod runtime;
pub mod sampler;
mod samples;
pub mod script;
pub mod session;
mod shared_maps;
mod stacks;
pub mod sys;
pub mod target;
pub mod wake;

pub use error::CaptureError;
pub use probes::driver_event::DriverEventKind;
