//! The answers of readers, and the check of which answers the recorder accepts.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{
    channel::Message,
    request::{Body, FileInfo, MAX_MEMORY, MAX_PIECES, MAX_PROC, Memory, Reply, Request, Want},
    sealed::Sealed,
};

/// The reason why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The deadline passed first, and the reader is abandoned.
    #[error("reading took too long")]
    Blocked,
    /// No reader was asked, because [`MAX_PER_USER`] readers of this user are blocked.
    #[error("not examined: other files or memory of this user block all readers that a user may have")]
    NotExamined,
    /// No reader was asked, because the user has the maximum number of requests under way. The caller must take an answer first.
    #[error("too many reads for this user at once")]
    Busy,
    /// The system refused, with this error number.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    Refused(i32),
    /// The file is not a regular file.
    #[error("not a regular file")]
    NotRegular,
    /// The file of that name is not the mapped file any more.
    #[error("the file was replaced")]
    Other,
    /// The file has more bytes than the request allows.
    #[error("larger than the limit")]
    TooLarge,
    /// The reader or the spawner is gone, or its answer makes no sense.
    #[error("the reader is gone")]
    Gone,
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// A file, found by its path.
    File(File),
    /// The contents of a file in /proc, or the target of a link.
    Bytes(Contents),
    /// Pieces of memory.
    Memory(Memory),
    /// The times of the last changes of files.
    Changes(Vec<Option<(i64, i64)>>),
    /// Threads, and the system call that each of them is in.
    Calls(Vec<(u32, String)>),
}

/// A file that a reader found. Its descriptor (O_PATH: using and closing it asks no file system) keeps the inode from being reused,
/// and allows a probe to name the file as `/proc/self/fd/N`.
#[derive(Debug)]
pub struct File {
    path: OwnedFd,
    pub(super) info: FileInfo,
    /// The requested contents of the file.
    pub contents: Contents,
}

impl File {
    /// Returns the properties of the file.
    #[must_use]
    pub fn info(&self) -> FileInfo {
        self.info
    }

    /// Returns the first bytes of the file, which are read when it is found: all bytes of a small file.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        self.contents.bytes()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.path.as_fd()
    }
}

/// Bytes that were read.
#[derive(Debug)]
pub enum Contents {
    /// A few bytes, in the message itself.
    Inline(Vec<u8>),
    /// Bytes in a memory file.
    Sealed(Sealed),
}

impl Contents {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Sealed(file) => file.bytes(),
        }
    }

    /// Converts the bytes to a memory file.
    ///
    /// # Errors
    /// Fails with EMFILE or ENOMEM.
    pub fn sealed(self) -> io::Result<Sealed> {
        match self {
            Self::Inline(bytes) => Sealed::copy_of(&bytes),
            Self::Sealed(file) => Ok(file),
        }
    }
}

/// The answers that a request can have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    File { most: u64 },
    Bytes,
    Memory { pieces: usize, bytes: u64 },
    Changes { count: usize },
    Calls,
}

impl Shape {
    pub(super) fn of(request: &Request) -> Self {
        match request {
            Request::Mapped { want, .. }
            | Request::InRoot { want, .. }
            | Request::Own { want, .. }
            | Request::Again { want } => Self::File {
                most: match want {
                    Want::Start(most) | Want::Whole(most) => *most,
                    Want::Ranges(_) => MAX_MEMORY,
                },
            },
            Request::Memory { pieces, .. } => Self::Memory {
                pieces: pieces.len().min(MAX_PIECES),
                bytes: pieces.iter().map(|piece| u64::from(piece.len)).sum(),
            },
            Request::Proc { .. } | Request::List { .. } | Request::Root { .. } => Self::Bytes,
            Request::Changes { mappings, .. } => Self::Changes { count: mappings.len() },
            Request::Calls { .. } => Self::Calls,
        }
    }

    /// Returns the answer in a message, if it is an answer to this request: a compromised reader may send anything.
    pub(super) fn answer(self, message: Message) -> Result<Answer, ReadError> {
        let gone = |_| ReadError::Gone;
        let reply = message.value::<Reply>().map_err(gone)?;
        let mut descriptors = message.descriptors.into_iter();
        let contents = |body: Body, most: u64, descriptor: Option<OwnedFd>| match (body, descriptor) {
            (Body::Inline(bytes), _) if bytes.len() as u64 <= most => Ok(Contents::Inline(bytes)),
            (Body::Sealed, Some(file)) => Sealed::take(file, most).map(Contents::Sealed).map_err(gone),
            _ => Err(ReadError::Gone),
        };
        match (self, reply) {
            (_, Reply::Failed(code)) => Err(ReadError::Refused(code)),
            (Self::File { .. }, Reply::NotRegular) => Err(ReadError::NotRegular),
            (Self::File { .. }, Reply::Other) => Err(ReadError::Other),
            (Self::File { .. }, Reply::TooLarge) => Err(ReadError::TooLarge),
            (Self::File { most }, Reply::File(info, body)) => {
                let path = descriptors.next().filter(is_path).ok_or(ReadError::Gone)?;
                let contents = contents(body, most, descriptors.next())?;
                Ok(Answer::File(File { path, info, contents }))
            }
            (Self::Bytes, Reply::Bytes(body)) => Ok(Answer::Bytes(contents(body, MAX_PROC, descriptors.next())?)),
            (Self::Memory { pieces, bytes: len }, Reply::Memory(body, memory)) => {
                let bytes = match contents(body, len, descriptors.next())? {
                    Contents::Inline(bytes) => bytes,
                    Contents::Sealed(file) => file.bytes().to_vec(),
                };
                let is_whole = bytes.len() as u64 == len && memory.there.len() == pieces;
                if !is_whole || memory.time_ns > memory.after_ns {
                    return Err(ReadError::Gone);
                }
                Ok(Answer::Memory(Memory { bytes, ..memory }))
            }
            (Self::Changes { count }, Reply::Changes(changes)) if changes.len() == count => {
                Ok(Answer::Changes(changes))
            }
            (Self::Calls, Reply::Calls(calls)) => Ok(Answer::Calls(calls)),
            _ => Err(ReadError::Gone),
        }
    }
}

/// Returns whether a descriptor only stands for a place in a file system (O_PATH). Closing it asks no file system or server, unlike
/// closing an open file.
fn is_path(file: &OwnedFd) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::PATH))
}

#[cfg(test)]
mod tests {
    use super::{super::channel::Channel, *};
    use crate::confined::request::Piece;

    const INFO: FileInfo = FileInfo {
        device: 1,
        inode: 2,
        size: 3,
        changed: (4, 5),
        owner: 7,
        file_system: 6,
    };

    /// Returns what the recorder makes of a reader's reply.
    fn taken(request: &Request, reply: &Reply, beside: &[BorrowedFd<'_>]) -> Result<Answer, ReadError> {
        let (reader, recorder) = Channel::pair().unwrap();
        reader.send(reply, beside).unwrap();
        Shape::of(request).answer(recorder.receive().unwrap())
    }

    #[test]
    fn replies_of_a_reader_that_was_taken_over_are_refused() {
        let file = Request::Own {
            path: Vec::new(),
            want: Want::Whole(4),
        };
        let memory = Request::Memory {
            pid: 1,
            pieces: vec![Piece { address: 8, len: 4 }],
        };
        let proc = Request::Root { pid: 1 };
        let changes = Request::Changes {
            pid: 1,
            mappings: vec![(1, 2), (2, 3)],
        };
        let inline = |bytes: &[u8]| Body::Inline(bytes.to_vec());
        let read = |body: Body, there: &[bool], time_ns: u64| {
            let memory = Memory {
                bytes: Vec::new(),
                there: there.to_vec(),
                time_ns,
                after_ns: 7,
            };
            Reply::Memory(body, memory)
        };
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let path = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).unwrap();
        let open = std::fs::File::open("/dev/null").unwrap();
        let unsealed = super::super::sealed::new_file().unwrap();
        let sealed = Sealed::copy_of(b"1234").unwrap();
        let long = Sealed::copy_of(b"12345").unwrap();
        let [path, open, unsealed] = [path.as_fd(), open.as_fd(), unsealed.as_fd()];
        let whole = |body: Body| Reply::File(INFO, body);
        // Valid replies.
        assert!(taken(&file, &whole(inline(b"1234")), &[path]).is_ok());
        assert!(taken(&file, &whole(Body::Sealed), &[path, sealed.as_fd()]).is_ok());
        assert!(taken(&memory, &read(inline(b"1234"), &[true], 7), &[]).is_ok());
        assert!(taken(&changes, &Reply::Changes(vec![None, Some((1, 2))]), &[]).is_ok());
        assert!(taken(&memory, &read(Body::Sealed, &[false], 7), &[sealed.as_fd()]).is_ok());
        assert_eq!(
            taken(&proc, &Reply::Failed(libc::EIO), &[]).unwrap_err(),
            ReadError::Refused(libc::EIO)
        );
        for (request, reply, beside) in [
            // No descriptor, or a descriptor whose close may wait for a file system.
            (&file, whole(inline(b"")), vec![]),
            (&file, whole(inline(b"")), vec![open]),
            // More than the request allows; not sealed; not there; not a memory file.
            (&file, whole(inline(b"12345")), vec![path]),
            (&file, whole(Body::Sealed), vec![path, long.as_fd()]),
            (&file, whole(Body::Sealed), vec![path, unsealed]),
            (&file, whole(Body::Sealed), vec![path]),
            (&file, whole(Body::Sealed), vec![path, open]),
            // A wrong number of bytes or pieces; times that run backwards.
            (&memory, read(inline(b"123"), &[true], 7), vec![]),
            (&memory, read(inline(b"1234"), &[true, true], 7), vec![]),
            (&memory, read(inline(b"1234"), &[], 7), vec![]),
            (&memory, read(inline(b"1234"), &[true], 8), vec![]),
            // Answers to other requests.
            (&memory, Reply::Bytes(inline(b"1234")), vec![]),
            (&proc, whole(inline(b"")), vec![path]),
            (&proc, Reply::NotRegular, vec![]),
            (&file, Reply::Calls(Vec::new()), vec![]),
            (&changes, Reply::Changes(vec![None]), vec![]),
        ] {
            assert_eq!(
                taken(request, &reply, &beside).unwrap_err(),
                ReadError::Gone,
                "{reply:?}"
            );
        }
    }
}
