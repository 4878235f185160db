//! Runs work that other processes can block or attack in processes of its own.
//!
//! A process that reads a file on a FUSE or NFS mount, or memory behind a userfaultfd, waits for as long as another party likes. A
//! process that parses what was read exposes a program to bytes that another party controls. The recorder therefore does neither.
//! It asks
//!
//! - a *reader*, which copies bytes and understands none of them. It has the capabilities that reading takes, and no others:
//!   CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and CAP_CHECKPOINT_RESTORE (the last one because the kernel lets no other process follow
//!   the links in `/proc/PID/map_files`, the only way to a mapped file that is deleted or is on btrfs);
//! - a *parser*, which understands them. It has no capability, opens nothing, and gets its input through a socket.
//!
//! Both are forks of a *spawner*, which is itself forked before the recorder has a second thread or any descriptor that matters.
//! The spawner forks and does not execute a new program: a fork answers after about a millisecond, and it is the same build of
//! tracer even if the file behind `/proc/self/exe` was replaced or can't be reached from the mount namespace.
//!
//! [`Readers`] waits for a reader until a deadline, then abandons it: the reader is killed, counted until the kernel lets it go,
//! and never waited for. A user can block [`MAX_PER_USER`] readers; after that, requests for the user's files and memory fail with
//! [`ReadError::NotExamined`] at once. Readers of other users are not affected.

mod answer;
mod channel;
mod examine;
mod parser;
mod parsers;
mod reader;
mod readers;
mod request;
mod sandbox;
mod sealed;
mod spawner;
mod user;

pub use answer::{Answer, Contents, File, ReadError};
pub(crate) use channel::Channel;
pub use examine::{Debug, Examine, NotRead, Remote};
pub use parser::{Job, Kernels, Output};
pub use parsers::{Input, ParseFailed, Parsers};
pub use readers::{MAX_PER_USER, Pending, Readers};
pub use request::{FileInfo, Memory, Piece, ProcFile, Request, Want};
pub use sealed::Sealed;
pub use user::user_of;

#[cfg(test)]
mod tests;
