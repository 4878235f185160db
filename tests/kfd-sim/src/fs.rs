//! The FUSE file system that holds the device files: one folder with `kfd` and `renderD128`...

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackingId, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, Request,
    TimeOrNow,
};

use crate::ioctl::request::{Call, Node, PendingIoctl};
use crate::ioctl::{drm, kfd};
use crate::machine::Machine;
use crate::process::Process;
use crate::topology::FIRST_RENDER_MINOR;
use crate::vm::AddressSpace;

/// The files never change.
const TTL: Duration = Duration::from_secs(3600);

const KFD_INODE: u64 = 2;

/// An open device file.
struct Open {
    /// Thread-group id of the opener.
    pid: i32,
    /// The KFD process, of /dev/kfd.
    process: Option<Arc<Process>>,
}

/// The file system.
pub struct DeviceFs {
    machine: Arc<Machine>,
    open: Mutex<HashMap<u64, Open>>,
    next_handle: AtomicU64,
    /// What the kernel calls the memory behind each file; kept for good, as a mapping outlives the open file.
    backing: Mutex<HashMap<u64, Arc<BackingId>>>,
}

impl DeviceFs {
    /// The device files of that machine.
    pub fn new(machine: Arc<Machine>) -> Self {
        Self {
            machine,
            open: Mutex::default(),
            next_handle: AtomicU64::new(1),
            backing: Mutex::default(),
        }
    }

    fn node(&self, inode: INodeNo) -> Option<Node> {
        match inode.0 {
            KFD_INODE => Some(Node::Kfd),
            inode => {
                let index = usize::try_from(inode.checked_sub(KFD_INODE + 1)?).ok()?;
                (index < self.machine.gpus).then_some(Node::Render(index))
            }
        }
    }

    fn inode(&self, name: &str) -> Option<INodeNo> {
        if name == "kfd" {
            return Some(INodeNo(KFD_INODE));
        }
        let minor: u64 = name.strip_prefix("renderD")?.parse().ok()?;
        let index = minor.checked_sub(u64::from(FIRST_RENDER_MINOR))?;
        (index < self.machine.gpus as u64).then_some(INodeNo(KFD_INODE + 1 + index))
    }

    fn attributes(inode: INodeNo) -> FileAttr {
        let (kind, perm) = if inode == INodeNo::ROOT {
            (FileType::Directory, 0o755)
        } else {
            (FileType::RegularFile, 0o666)
        };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: inode,
            size: 0,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
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

    fn open_file(&self, pid: i32, node: Node) -> io::Result<Open> {
        let process = if node == Node::Kfd {
            Some(self.machine.process(pid)?)
        } else {
            None
        };
        Ok(Open { pid, process })
    }

    fn backing(&self, inode: INodeNo, node: Node, reply: &ReplyOpen) -> io::Result<Arc<BackingId>> {
        let mut backing = self.backing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = backing.get(&inode.0) {
            return Ok(Arc::clone(id));
        }
        let doorbells = self.machine.doorbells.file();
        let file = if node == Node::Kfd {
            doorbells.as_fd()
        } else {
            self.machine.vram.as_fd()
        };
        let id = Arc::new(reply.open_backing(file)?);
        backing.insert(inode.0, Arc::clone(&id));
        Ok(id)
    }

    fn call(&self, call: Call, handle: FileHandle, reply: ReplyIoctl) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (opener, process) = open
            .get(&handle.0)
            .map_or((0, None), |open| (open.pid, open.process.as_ref().map(Arc::clone)));
        drop(open);
        let truth = Arc::clone(&self.machine.truth);
        match (call.node, process) {
            (Node::Kfd, Some(process)) => {
                let is_owner = call.pid == opener && process.is_alive();
                let space = Arc::clone(&process.space);
                let request = PendingIoctl::new(call, space, truth, reply);
                if is_owner {
                    kfd::dispatch(&self.machine, &process, request);
                } else {
                    // A child that inherited the descriptor has no KFD process of its own.
                    let bytes = request.bytes();
                    request.finish(Err(crate::ioctl::Errno::EBADF), &bytes);
                }
            }
            (Node::Kfd, None) => reply.error(Errno::EBADF),
            (Node::Render(_), _) => {
                let known = self
                    .machine
                    .known_process(call.pid)
                    .map(|process| Arc::clone(&process.space));
                let space =
                    known.unwrap_or_else(|| Arc::new(AddressSpace::new(call.pid, Arc::clone(&self.machine.vram))));
                let (pid, cmd) = (call.pid, call.cmd);
                let request = PendingIoctl::new(call, Arc::clone(&space), truth, reply);
                let mut bytes = request.bytes();
                let result = drm::dispatch(cmd, &mut bytes, pid, self.machine.asic, &space);
                request.finish(result, &bytes);
            }
        }
    }
}

/// The process a thread belongs to: FUSE tells thread ids.
fn thread_group(tid: u32, guess: Option<i32>) -> i32 {
    let tid = tid as i32;
    if let Some(pid) = guess
        && Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
    {
        return pid;
    }
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|pid| pid.trim().parse().ok()).unwrap_or(tid)
}

impl Filesystem for DeviceFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let too_old = || io::Error::other("this kernel's FUSE has no passthrough (Linux 6.9, CONFIG_FUSE_PASSTHROUGH)");
        config
            .add_capabilities(InitFlags::FUSE_PASSTHROUGH)
            .map_err(|_| too_old())?;
        config.set_max_stack_depth(2).map_err(|_| too_old())?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = name
            .to_str()
            .and_then(|name| self.inode(name))
            .filter(|_| parent == INodeNo::ROOT);
        match inode {
            Some(inode) => reply.entry(&TTL, &Self::attributes(inode), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &Self::attributes(inode));
    }

    fn setattr(
        &self,
        _req: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&TTL, &Self::attributes(inode));
    }

    fn open(&self, req: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let Some(node) = self.node(inode) else {
            reply.error(Errno::ENODEV);
            return;
        };
        let open = self.open_file(thread_group(req.pid(), None), node);
        match open.and_then(|open| Ok((open, self.backing(inode, node, &reply)?))) {
            Ok((open, backing)) => {
                let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
                self.open
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(handle, open);
                reply.opened_passthrough(FileHandle(handle), FopenFlags::empty(), &backing);
            }
            Err(error) => {
                log::error!("open {node:?}: {error}");
                reply.error(Errno::EIO);
            }
        }
    }

    fn release(
        &self,
        _req: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&handle.0);
        reply.ok();
    }

    fn flush(&self, _req: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn ioctl(
        &self,
        req: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: IoctlFlags,
        cmd: u32,
        in_data: &[u8],
        out_size: u32,
        reply: ReplyIoctl,
    ) {
        let Some(node) = self.node(inode) else {
            reply.error(Errno::ENOTTY);
            return;
        };
        let opener = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&handle.0)
            .map(|open| open.pid);
        let (pid, tid) = (thread_group(req.pid(), opener), req.pid() as i32);
        let call = Call {
            node,
            cmd,
            pid,
            tid,
            bytes: in_data.to_vec(),
            out_size: out_size as usize,
        };
        self.call(call, handle, reply);
    }
}
