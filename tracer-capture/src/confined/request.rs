//! The requests to readers, and their replies.

use serde::{Deserialize, Serialize};

/// The maximum number of pieces of memory in one request (`UIO_MAXIOV` of `process_vm_readv`).
pub const MAX_PIECES: usize = 1024;
/// The maximum number of bytes of memory in one request.
pub const MAX_MEMORY: u64 = 64 << 20;
/// The maximum number of ranges of a file in one request.
pub const MAX_RANGES: usize = 64;
/// The maximum number of bytes of a file in /proc: the mappings of a process with the most that it can have (`vm.max_map_count`)
/// take 20 MiB.
pub const MAX_PROC: u64 = 64 << 20;
/// The maximum number of mappings in one request.
pub const MAX_MAPPINGS: usize = 1024;
/// The maximum number of names in a folder.
pub const MAX_NAMES: usize = 4096;
/// The maximum number of threads that [`Request::Calls`] reports.
pub const MAX_THREADS: usize = 1024;

/// A request to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The file behind a mapping of a process.
    Mapped {
        /// The process id.
        pid: u32,
        /// The first address of the mapping.
        start: u64,
        /// The address after the last one.
        end: u64,
        /// The device as /proc/PID/maps shows it: `major:minor` in hexadecimal.
        device: String,
        /// The inode.
        inode: u64,
        /// The path in the root of the process.
        path: Vec<u8>,
        /// The requested part of its contents.
        want: Want,
    },
    /// The times of the last changes of the files behind mappings of a process, without their contents.
    Changes {
        /// The process id.
        pid: u32,
        /// The first address of each mapping, and the address after the last one: at most [`MAX_MAPPINGS`].
        mappings: Vec<(u64, u64)>,
    },
    /// A file by its path in the root of a process; links lead nowhere else.
    InRoot {
        /// The process id.
        pid: u32,
        /// The path.
        path: Vec<u8>,
        /// The requested part of its contents.
        want: Want,
    },
    /// A file by its path in the recorder's own root.
    Own {
        /// The path.
        path: Vec<u8>,
        /// The requested part of its contents.
        want: Want,
    },
    /// More of a file that an earlier answer named: its descriptor goes with the request.
    Again {
        /// The requested part of its contents.
        want: Want,
    },
    /// Pieces of the memory of a process, in this order.
    Memory {
        /// The process id.
        pid: u32,
        /// At most [`MAX_PIECES`] pieces, of at most [`MAX_MEMORY`] bytes together.
        pieces: Vec<Piece>,
    },
    /// A file of a process in /proc.
    Proc {
        /// The process id.
        pid: u32,
        /// The file.
        file: ProcFile,
    },
    /// `/proc/PID/task/*/syscall`: the system call that each thread is in.
    Calls {
        /// The process id.
        pid: u32,
    },
    /// The names in a folder, given by its path in the root of a process: at most [`MAX_NAMES`] names, each followed by a NUL.
    List {
        /// The process id.
        pid: u32,
        /// The path.
        path: Vec<u8>,
    },
    /// The target of the link `/proc/PID/root`: the place of the process's root.
    Root {
        /// The process id.
        pid: u32,
    },
}

/// The requested part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// Up to that many bytes from the start of the file, and at most what a message holds.
    Start(u64),
    /// The whole file, if it has no more than that many bytes.
    Whole(u64),
    /// These ranges (offset and length), one after the other, at most [`MAX_RANGES`]. All of them must be there.
    Ranges(Vec<(u64, u64)>),
}

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The address.
    pub address: u64,
    /// The length in bytes.
    pub len: u32,
}

/// A file of a process in /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
    Mountinfo,
    /// `cgroup`.
    Cgroup,
}

/// The properties of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileInfo {
    /// The device, as stat reports it.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of the inode: s and ns of the real-time clock.
    pub changed: (i64, i64),
    /// The user that owns it.
    pub owner: u32,
    /// The type of its file system (`f_type` of statfs); 0 if statfs fails.
    pub file_system: u64,
}

/// The result of reading memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The pieces, one after the other; pieces that are not there are zeros. In a reply, they are in its body.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// For each piece, whether it is there.
    pub there: Vec<bool>,
    /// The time before the pieces were read: CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    /// The time after the pieces were read.
    pub after_ns: u64,
}

/// A reader's reply. Its descriptors are first that of the file, if there is one, then the memory file, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The system's error.
    Failed(i32),
    /// The target of the name is a FIFO, a device, a folder or a socket.
    NotRegular,
    /// The file of that name is not the mapped file.
    Other,
    /// The file has more bytes than the request allows.
    TooLarge,
    /// A file, and its requested contents.
    File(FileInfo, Body),
    /// The bytes of something other than a file.
    Bytes(Body),
    /// Memory.
    Memory(Body, Memory),
    /// For each mapping, the time of the last change of its file (s and ns of the real-time clock), if the mapping is there and the
    /// reader may look behind it.
    Changes(Vec<Option<(i64, i64)>>),
    /// Threads, and the contents of their `syscall` files.
    Calls(Vec<(u32, String)>),
}

/// The bytes of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Body {
    /// The bytes are in the message.
    Inline(Vec<u8>),
    /// The bytes are in a sealed memory file beside the message.
    Sealed,
}
