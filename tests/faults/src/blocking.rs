//! Objects that block their readers: a file system that does not answer, and memory whose page faults stay unresolved.

use std::{
    any::Any,
    ffi::{CString, OsStr},
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, Request, Session, SessionACL,
};

/// The only file of a file system that blocks.
const NAME: &str = "libblocks.so";
const INODE: INodeNo = INodeNo(2);

/// A blocked operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The file's attributes.
    Attributes,
    /// Opening the file.
    Open,
    /// Reading the file.
    Read,
    /// Closing the file.
    Close,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Attributes, Self::Open, Self::Read, Self::Close];
}

#[derive(Default)]
struct State {
    blocks: Option<Operation>,
    /// The number of requests for that operation that are still answered.
    answered: u32,
    /// Requests that wait for an answer.
    waiting: Vec<Waiting>,
}

struct Waiting {
    release: Box<dyn FnOnce() + Send>,
    #[expect(dead_code, reason = "says what waits, in a debugger")]
    operation: Operation,
}

/// A file system with one file. It answers every operation except the blocked one.
pub struct BlockingFs {
    folder: tempfile::TempDir,
    state: Arc<Mutex<State>>,
    /// The server, which stops at the unmount.
    _server: Box<dyn Any + Send>,
}

struct Server {
    state: Arc<Mutex<State>>,
    contents: Vec<u8>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Answers now, or when the operation is not blocked any more.
    fn answer(&self, operation: Operation, answer: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.state);
        let is_blocked = state.blocks == Some(operation);
        if is_blocked && state.answered > 0 {
            state.answered -= 1;
            drop(state);
            answer();
        } else if is_blocked {
            let release = Box::new(answer);
            state.waiting.push(Waiting { release, operation });
        } else {
            drop(state);
            answer();
        }
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let (kind, perm) = if inode == INODE {
            (FileType::RegularFile, 0o755)
        } else {
            (FileType::Directory, 0o755)
        };
        FileAttr {
            ino: inode,
            size: self.contents.len() as u64,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _req: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&Duration::ZERO, &self.attributes(INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let attributes = self.attributes(inode);
        let answer = move || reply.attr(&Duration::ZERO, &attributes);
        if inode == INODE {
            self.answer(Operation::Attributes, answer);
        } else {
            answer();
        }
    }

    fn open(&self, _req: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.answer(Operation::Open, || reply.opened(FileHandle(0), FopenFlags::empty()));
    }

    fn read(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.contents.len());
        let end = start.saturating_add(size as usize).min(self.contents.len());
        let bytes = self.contents[start..end].to_vec();
        self.answer(Operation::Read, move || reply.data(&bytes));
    }

    fn flush(&self, _req: &Request, _inode: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        self.answer(Operation::Close, || reply.ok());
    }
}

impl BlockingFs {
    /// Mounts the file system, with that file in it. Only this thread, and the processes it starts, see it.
    ///
    /// # Errors
    /// Returns the kernel's error: mounting needs root.
    pub fn mount(contents: Vec<u8>) -> io::Result<Self> {
        Self::mount_of(0, contents)
    }

    /// Mounts the file system as that user's program would.
    ///
    /// # Errors
    /// Fails as [`Self::mount`] does.
    pub fn mount_of(user: u32, contents: Vec<u8>) -> io::Result<Self> {
        // SAFETY: the flags are plain integers; the thread gets its own mount namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None)?;
        let folder = tempfile::tempdir()?;
        let fuse: OwnedFd = OpenOptions::new().read(true).write(true).open("/dev/fuse")?.into();
        let options = format!(
            "fd={},rootmode=40000,user_id={user},group_id=0,allow_other",
            fuse.as_raw_fd()
        );
        mount(Some("blocking"), folder.path(), Some("fuse"), 0, Some(&options))?;
        let state = Arc::new(Mutex::new(State::default()));
        let server = Server {
            state: Arc::clone(&state),
            contents,
        };
        let mut config = Config::default();
        config.acl = SessionACL::All;
        let session = Session::from_fd(server, fuse, SessionACL::All, config)?;
        let server = session.spawn()?;
        Ok(Self {
            folder,
            state,
            _server: Box::new(server),
        })
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Blocks this operation from now on, and answers the waiting requests.
    pub fn block(&self, operation: Option<Operation>) {
        self.set(operation, 0);
    }

    /// Blocks this operation after this many more answers, and answers the waiting requests.
    pub fn block_after(&self, operation: Operation, answered: u32) {
        self.set(Some(operation), answered);
    }

    fn set(&self, operation: Option<Operation>, answered: u32) {
        let mut state = lock(&self.state);
        (state.blocks, state.answered) = (operation, answered);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(|waiting| (waiting.release)());
    }

    /// Returns the number of requests that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.state).waiting.len()
    }
}

impl Drop for BlockingFs {
    fn drop(&mut self) {
        self.block(None);
        let path = CString::new(self.folder.path().as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

fn mount(
    source: Option<&str>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
    options: Option<&str>,
) -> io::Result<()> {
    let text = |text: &[u8]| CString::new(text).map_err(io::Error::other);
    let source = source.map(|source| text(source.as_bytes())).transpose()?;
    let target = text(target.as_os_str().as_bytes())?;
    let kind = kind.map(|kind| text(kind.as_bytes())).transpose()?;
    let options = options.map(|options| text(options.as_bytes())).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    // SAFETY: all pointers are null or point to NUL-terminated strings that outlive the call.
    let done = unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            pointer(&options).cast(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A file that is mapped executable.
pub struct Mapped {
    start: *mut libc::c_void,
    len: usize,
}

impl Mapped {
    /// Maps a whole file, and touches none of it.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, len })
    }

    /// Returns its first address, and the one past its last.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let start = self.start.expose_provenance() as u64;
        (start, start + (self.len as u64).next_multiple_of(4096))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

/// Memory behind a userfaultfd whose faults stay unresolved: its readers wait.
pub struct BlockingMemory {
    start: *mut libc::c_void,
    len: usize,
    _fault: OwnedFd,
}

/// `struct uffdio_api` and `struct uffdio_register` (`include/uapi/linux/userfaultfd.h`).
#[repr(C)]
struct UffdioApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct UffdioRegister {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00;
const MODE_MISSING: u64 = 1;

impl BlockingMemory {
    /// Maps `len` bytes.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: the flags are plain integers; the call returns a descriptor or an error.
        let fault = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let fault = i32::try_from(fault).ok().filter(|&fd| fd >= 0);
        // SAFETY: the descriptor was just created and has no other owner.
        let fault = unsafe { OwnedFd::from_raw_fd(fault.ok_or_else(io::Error::last_os_error)?) };
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = Self {
            start,
            len,
            _fault: fault,
        };
        let mut api = UffdioApi {
            api: UFFD_API,
            features: 0,
            ioctls: 0,
        };
        let mut register = UffdioRegister {
            start: memory.address(),
            len: len as u64,
            mode: MODE_MISSING,
            ioctls: 0,
        };
        let fd = memory._fault.as_raw_fd();
        // SAFETY: the kernel reads and writes a struct of that size, which lives through the call.
        let begun = unsafe { libc::ioctl(fd, UFFDIO_API, &raw mut api) };
        // SAFETY: as above.
        if begun != 0 || unsafe { libc::ioctl(fd, UFFDIO_REGISTER, &raw mut register) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(memory)
    }

    /// Returns its first address. A read there in this process blocks the process, too.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }
}

impl Drop for BlockingMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping.
        unsafe { libc::munmap(self.start, self.len) };
    }
}
