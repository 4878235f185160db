//! What readers are asked for, and what they answer.

use serde::{Deserialize, Serialize};

/// Pieces of memory in one request (UIO_MAXIOV of process_vm_readv).
pub const MAX_PIECES: usize = 1024;
/// Bytes of memory in one request.
pub const MAX_MEMORY: u64 = 64 << 20;
/// Ranges of a file in one request.
pub const MAX_RANGES: usize = 64;
/// Bytes of a file in /proc: the mappings of a process with the most that it can have (vm.max_map_count) take 20 MiB.
pub const MAX_PROC: u64 = 64 << 20;
/// Names in a folder.
pub const MAX_NAMES: usize = 4096;
/// Threads of which [`Request::Calls`] tells.
pub const MAX_THREADS: usize = 1024;

/// What a reader is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The file behind a mapping of a process.
    Mapped {
        /// Process id.
        pid: u32,
        /// First address of the mapping.
        start: u64,
        /// One past the last.
        end: u64,
        /// Device as /proc/PID/maps has it: `major:minor` in hexadecimal.
        device: String,
        /// Inode.
        inode: u64,
        /// Path in the root of the process.
        path: Vec<u8>,
        /// What of its contents.
        want: Want,
    },
    /// A file by its path in the root of a process; links lead nowhere else.
    InRoot {
        /// Process id.
        pid: u32,
        /// Its path.
        path: Vec<u8>,
        /// What of its contents.
        want: Want,
    },
    /// A file by its path in the recorder's own root.
    Own {
        /// Its path.
        path: Vec<u8>,
        /// What of its contents.
        want: Want,
    },
    /// More of a file that an earlier answer named: its descriptor goes with the request.
    Again {
        /// What of its contents.
        want: Want,
    },
    /// Pieces of the memory of a process, in this order.
    Memory {
        /// Process id.
        pid: u32,
        /// At most [`MAX_PIECES`], of at most [`MAX_MEMORY`] bytes together.
        pieces: Vec<Piece>,
    },
    /// A file of a process in /proc.
    Proc {
        /// Process id.
        pid: u32,
        /// Which one.
        file: ProcFile,
    },
    /// `/proc/PID/task/*/syscall`: in which system call each thread is.
    Calls {
        /// Process id.
        pid: u32,
    },
    /// The names in a folder, by its path in the root of a process: at most [`MAX_NAMES`], each with a NUL behind it.
    List {
        /// Process id.
        pid: u32,
        /// Its path.
        path: Vec<u8>,
    },
    /// The link `/proc/PID/root`: where the root of a process lies.
    Root {
        /// Process id.
        pid: u32,
    },
}

/// Which part of a file is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// None.
    Nothing,
    /// Up to that many bytes from its start on: what a message holds at the most.
    Start(u64),
    /// All of it, if it has no more than that many bytes.
    Whole(u64),
    /// These ranges, offset and length, one after the other, at most [`MAX_RANGES`]. All of them must be there.
    Ranges(Vec<(u64, u64)>),
}

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub len: u32,
}

/// A file of a process in /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcFile {
    /// `maps`.
    Maps,
    /// `stat`.
    Stat,
    /// `status`.
    Status,
    /// `comm`.
    Comm,
    /// `mountinfo`.
    MountInfo,
}

impl ProcFile {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Maps => "maps",
            Self::Stat => "stat",
            Self::Status => "status",
            Self::Comm => "comm",
            Self::MountInfo => "mountinfo",
        }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileInfo {
    /// Device, as stat has it.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// When its inode last changed: s and ns of the real-time clock.
    pub changed: (i64, i64),
    /// Type of its file system (f_type of statfs); 0 if that does not tell.
    pub file_system: u64,
}

/// What reading memory gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The pieces, one after the other; those that are not there are zeros.
    pub bytes: Vec<u8>,
    /// Whether each piece is there.
    pub there: Vec<bool>,
    /// Before they were read: CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    /// After it.
    pub after_ns: u64,
}

/// How a reader answers. Descriptors: first that of the file, if there is one, then the memory file, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The system's error.
    Failed(i32),
    /// What the name leads to is a FIFO, a device, a folder, a socket.
    NotRegular,
    /// The file of that name is another one than the mapped one.
    Other,
    /// It has more bytes than were asked for.
    TooLarge,
    /// A file, and what was wanted of it.
    File(FileInfo, Body),
    /// Bytes of something else.
    Bytes(Body),
    /// Memory.
    Memory {
        body: Body,
        there: Vec<bool>,
        time_ns: u64,
        after_ns: u64,
    },
    /// Threads, and what their `syscall` files hold.
    Calls(Vec<(u32, String)>),
}

/// Bytes of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Body {
    /// In the message.
    Inline(Vec<u8>),
    /// In a sealed memory file beside it.
    Sealed,
}
