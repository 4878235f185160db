//! Capture by samples, for machines that do not permit eBPF: the kernel writes a record at each probe, and no code of tracer runs
//! there.
//!
//! Nothing reads the ring of a queue at its doorbell: [`queues`] reads it from the process's memory right after. By then the GPU
//! may have taken the packets, or their slots may be used again. Indexes read around each copy say which, as for packets that
//! eBPF programs could not read.
//!
//! Two backends supply the records, each by an [`Input`] and an [`Attach`]: `perf`, and `ftrace`. docs/backends.md says what is
//! weaker, and by how much.

mod changes;
mod ioctls;
mod places;
mod processes;
mod queues;
mod reader;
mod record;
mod rings;
mod source;

pub use ioctls::{EVENTS as IOCTL_EVENTS, Ioctls, OURS as OUR_IOCTLS};
pub use places::{Attach, Attachments, Place, Places, Program};
pub use record::{Argument, Call, File, Record, Registers, array, half, string, text, word};
pub use rings::Rings;
pub use source::{Input, Lost, Parts, Source};
