//! Errors of capture. Each message is one sentence that names the fix.

use std::{io, path::PathBuf};

use crate::{kernel::rights, target::pid_namespace};

/// A failure of the capture layer.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The binary carries no eBPF object.
    #[error("this binary was built without its eBPF programs; build it with `cargo xtask build`")]
    NoObject,
    /// Loading needs privileges that the process does not have.
    #[error("loading eBPF programs was refused ({0}); {fix}", fix = rights::fix())]
    NotPermitted(String),
    /// The process lacks these capabilities: recording would fail later, or harm processes that it could not resume.
    #[error("the capabilities {} are missing; {fix}", .0.join(", ").to_lowercase(), fix = rights::fix())]
    Lacking(Vec<&'static str>),
    /// This backend cannot be used.
    #[error("cannot record with `--backend {0}`: {1}")]
    NotUsable(&'static str, String),
    /// Only eBPF programs can do this.
    #[error("{0} needs eBPF, which this backend does without; use `--backend ebpf`, or leave it out")]
    NeedsEbpf(&'static str),
    /// tracer runs in a pid namespace of its own.
    #[error("{}; {}", pid_namespace::REASON, pid_namespace::FIX)]
    PidNamespace,
    /// The kernel refused a program.
    #[error("the kernel refused the eBPF program `{program}`: {reason}")]
    Refused {
        /// Its name.
        program: String,
        /// The message of the verifier or the kernel.
        reason: String,
    },
    /// No file descriptor is left, except those that are reserved for other uses.
    #[error(
        "no file descriptor is left ({0}); raise the limit with `ulimit -n 65536`, for a service with LimitNOFILE=65536"
    )]
    NoDescriptor(io::Error),
    /// The object lacks a program or a map: object and binary are of different builds.
    #[error(
        "the eBPF object has no `{0}`; object and binary are of different builds, rebuild with `cargo xtask build`"
    )]
    Missing(&'static str),
    /// tracefs cannot be reached.
    #[error("cannot mount tracefs ({0}); mount it with `mount -t tracefs nodev /sys/kernel/tracing`")]
    NoTracefs(io::Error),
    /// A trace event that capture needs is absent.
    #[error("this kernel has no trace event {0}; it needs CONFIG_FTRACE_SYSCALLS and CONFIG_EVENT_TRACING")]
    NoEvent(String),
    /// The format file of a trace event is not understood, so its fields cannot be read.
    #[error("cannot use the format of the trace event {event}: {what}")]
    BadFormat {
        /// Group and name.
        event: String,
        /// What is wrong with it.
        what: String,
    },
    /// An expected file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The variables in which sudo names its caller do not name a user.
    #[error(
        "{name} is {}, which is not the id of a user or group; run tracer itself with sudo, or unset SUDO_UID and SUDO_GID",
        .value.as_deref().unwrap_or("not set")
    )]
    Sudo {
        /// The variable.
        name: &'static str,
        /// Its value, quoted; `None` if it is not set while the other one is.
        value: Option<String>,
    },
    /// The command cannot be started; `std::io::ErrorKind::NotFound` if it does not exist.
    #[error("cannot run the command `{command}`: {source}")]
    Command {
        /// Its program.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// tracer cannot attach to a process.
    #[error("cannot trace process {pid}: {why}")]
    NotAttached {
        /// Its id.
        pid: u32,
        /// Why, and what to do.
        why: String,
    },
    /// A system call failed.
    #[error("{what} failed: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl CaptureError {
    pub(crate) fn system(what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System {
            what,
            source: source.into(),
        }
    }
}
