//! The FUSE file system that holds the device files: one folder with `kfd`, `renderD128`... and the dmabufs.

mod files;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackingId, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};

use crate::dmabuf::FIRST_INODE;
use crate::ioctl::request::{Call, Node, PendingIoctl};
use crate::ioctl::{abi, drm, gem, kfd};
use crate::machine::Machine;
use crate::process::{Process, thread_group};
use crate::vm::AddressSpace;

/// The files never change.
const TTL: Duration = Duration::from_secs(3600);

const KFD_INODE: u64 = 2;

/// An open device file.
struct Open {
    /// Thread-group id of the opener.
    pid: i32,
    /// The KFD process, if the file is /dev/kfd.
    process: Option<Arc<Process>>,
}

/// The file system.
pub struct DeviceFs {
    machine: Arc<Machine>,
    open: Mutex<HashMap<u64, Open>>,
    next_handle: AtomicU64,
    /// The kernel's names for the memory behind each file. They are never removed, because a mapping outlives the open file.
    backing: Mutex<HashMap<u64, Arc<BackingId>>>,
    /// Whether FUSE has passthrough. Without it, files are read and written through the kernel's cache.
    passthrough: bool,
}

impl DeviceFs {
    /// Returns the device files of that machine.
    ///
    /// With `passthrough`, clients map the memory behind the files itself, if this kernel's FUSE supports that.
    pub fn new(machine: Arc<Machine>, passthrough: bool) -> Self {
        Self {
            machine,
            open: Mutex::default(),
            next_handle: AtomicU64::new(1),
            backing: Mutex::default(),
            passthrough,
        }
    }

    fn open_file(&self, pid: i32, node: Node) -> io::Result<Open> {
        // The simulator itself opens the files in order to map them.
        let own = pid == std::process::id() as i32;
        let process = if node == Node::Kfd && !own {
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
        let memory = self.memory(node).ok_or(io::ErrorKind::Unsupported)?;
        let id = Arc::new(reply.open_backing(memory.as_fd())?);
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
                let known = self.machine.known_process(call.pid);
                let space = match &known {
                    Some(process) => Arc::clone(&process.space),
                    None => Arc::new(AddressSpace::new(call.pid, Arc::clone(&self.machine.vram))),
                };
                let (pid, tid, cmd) = (call.pid, call.tid, call.cmd);
                let request = PendingIoctl::new(call, Arc::clone(&space), truth, reply);
                let mut bytes = request.bytes();
                let (nr, kind, _) = abi::decode_cmd(cmd);
                let object = known
                    .filter(|_| kind == b'd')
                    .and_then(|process| gem::dispatch(&self.machine, &process, tid, nr, &mut bytes));
                let result = object.unwrap_or_else(|| drm::dispatch(cmd, &mut bytes, pid, self.machine.asic, &space));
                request.finish(result, &bytes);
            }
            // A dmabuf is coherent here only at msync and munmap, so there is nothing to synchronize.
            (Node::Dmabuf(_), _) => reply.error(Errno::ENOTTY),
        }
    }
}

impl Filesystem for DeviceFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Passthrough needs Linux 6.9 or later, with `CONFIG_FUSE_PASSTHROUGH`.
        self.passthrough = self.passthrough
            && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(2).is_ok();
        if !self.passthrough && self.machine.gpus > 1 {
            // Each file has a cache of its own, but GPUs share memory.
            return Err(io::Error::other(
                "without FUSE passthrough (Linux 6.9, CONFIG_FUSE_PASSTHROUGH) only one GPU can be simulated: --gpus 1",
            ));
        }
        if !self.passthrough && self.machine.driver_memory {
            return Err(io::Error::other(
                "--vram needs FUSE passthrough (Linux 6.9, CONFIG_FUSE_PASSTHROUGH)",
            ));
        }
        // A thread that waits for the value is gone only when the simulator exits.
        let _ = self.machine.passthrough.set(self.passthrough);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = name
            .to_str()
            .and_then(|name| self.inode(name))
            .filter(|_| parent == INodeNo::ROOT);
        match inode {
            Some(inode) => reply.entry(&TTL, &self.attributes(inode), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
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
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn open(&self, req: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let Some(node) = self.node(inode) else {
            reply.error(Errno::ENODEV);
            return;
        };
        let open = self.open_file(thread_group(req.pid(), None), node);
        let backed = open.and_then(|open| {
            let backing = self
                .passthrough
                .then_some(node)
                .filter(|node| !matches!(node, Node::Dmabuf(_)))
                .map(|node| self.backing(inode, node, &reply))
                .transpose()?;
            Ok((open, backing))
        });
        match backed {
            Ok((open, backing)) => {
                let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
                self.open
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(handle, open);
                if let Node::Dmabuf(id) = node {
                    self.machine.exports.opened(id);
                    reply.opened(FileHandle(handle), FopenFlags::empty());
                    return;
                }
                match backing {
                    Some(backing) => reply.opened_passthrough(FileHandle(handle), FopenFlags::empty(), &backing),
                    None => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
                }
            }
            Err(error) => {
                log::error!("open {node:?}: {error}");
                reply.error(Errno::EIO);
            }
        }
    }

    fn read(
        &self,
        _req: &Request,
        inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self
            .node(inode)
            .ok_or(Errno::ENODEV)
            .and_then(|node| match self.memory(node) {
                Some(memory) => Ok(memory.read(offset, size as usize)?),
                None => self.read_dmabuf(node, offset, u64::from(size)),
            });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _req: &Request,
        inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self
            .node(inode)
            .ok_or(Errno::ENODEV)
            .and_then(|node| match self.memory(node) {
                Some(memory) => Ok(memory.write(offset, data)?),
                None => self.write_dmabuf(node, offset, data),
            });
        match written {
            // FUSE splits writes into pieces far below 4 GiB.
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        // Only the simulator calls this, and always to punch holes.
        let punched = self
            .node(inode)
            .ok_or(Errno::ENODEV)
            .and_then(|node| Ok(self.memory(node).ok_or(Errno::EOPNOTSUPP)?.punch(offset, length)?));
        match punched {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn release(
        &self,
        _req: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(id) = inode.0.checked_sub(FIRST_INODE) {
            self.machine.exports.closed(id);
        }
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&handle.0);
        reply.ok();
    }

    fn flush(&self, _req: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    /// The kernel writes what is changed before it asks for this.
    fn fsync(&self, _req: &Request, _inode: INodeNo, _handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
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
