//! The files: their names, inodes, sizes and content.

use std::sync::Arc;
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::{DeviceFs, KFD_INODE};
use crate::dmabuf::{FIRST_INODE, id_of_name};
use crate::ioctl::request::Node;
use crate::memory::{SharedFile, page_up};
use crate::topology::FIRST_RENDER_MINOR;

impl DeviceFs {
    /// Returns what a file is; `None` if there is no such file.
    pub(super) fn node(&self, inode: INodeNo) -> Option<Node> {
        match inode.0 {
            KFD_INODE => Some(Node::Kfd),
            inode if inode >= FIRST_INODE => {
                let id = inode - FIRST_INODE;
                self.machine.exports.get(id).map(|_| Node::Dmabuf(id))
            }
            inode => {
                let index = usize::try_from(inode.checked_sub(KFD_INODE + 1)?).ok()?;
                (index < self.machine.gpus).then_some(Node::Render(index))
            }
        }
    }

    /// Returns the inode of a file of that name.
    pub(super) fn inode(&self, name: &str) -> Option<INodeNo> {
        if name == "kfd" {
            return Some(INodeNo(KFD_INODE));
        }
        if let Some(id) = id_of_name(name) {
            return self.machine.exports.get(id).map(|_| INodeNo(FIRST_INODE + id));
        }
        let minor: u64 = name.strip_prefix("renderD")?.parse().ok()?;
        let index = minor.checked_sub(u64::from(FIRST_RENDER_MINOR))?;
        (index < self.machine.gpus as u64).then_some(INodeNo(KFD_INODE + 1 + index))
    }

    /// Returns the memory file behind a device file; `None` for a dmabuf, which is a part of one.
    pub(super) fn memory(&self, node: Node) -> Option<Arc<SharedFile>> {
        match node {
            Node::Kfd => Some(self.machine.doorbells.file()),
            Node::Render(_) => Some(Arc::clone(&self.machine.vram)),
            Node::Dmabuf(_) => None,
        }
    }

    /// Returns the size of a file. Pages beyond it cannot be accessed. Passthrough takes the size of a device file from the file
    /// behind it.
    fn size(&self, node: Node) -> u64 {
        match (node, self.memory(node)) {
            (Node::Dmabuf(id), _) => self
                .machine
                .exports
                .get(id)
                .map_or(0, |shared| page_up(shared.memory.len())),
            (_, Some(memory)) if !self.passthrough => memory.len(),
            _ => 0,
        }
    }

    /// Returns what stat says of a file.
    pub(super) fn attributes(&self, inode: INodeNo) -> FileAttr {
        let (kind, perm) = if inode == INodeNo::ROOT {
            (FileType::Directory, 0o755)
        } else {
            (FileType::RegularFile, 0o666)
        };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: inode,
            size: self.node(inode).map_or(0, |node| self.size(node)),
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

    /// Reads the memory of a dmabuf, up to its end.
    pub(super) fn read_dmabuf(&self, node: Node, offset: u64, size: u64) -> Result<Vec<u8>, Errno> {
        let Node::Dmabuf(id) = node else { return Err(Errno::EIO) };
        let shared = self.machine.exports.get(id).ok_or(Errno::EIO)?;
        let size = size.min(page_up(shared.memory.len()).saturating_sub(offset));
        let at = shared.memory.at(offset, size).ok_or(Errno::EIO)?;
        // SAFETY: `at` has `size` readable bytes, in memory that `shared` keeps; the vector is a copy.
        Ok(unsafe { std::slice::from_raw_parts(at, size as usize) }.to_vec())
    }

    /// Writes the memory of a dmabuf.
    pub(super) fn write_dmabuf(&self, node: Node, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let Node::Dmabuf(id) = node else { return Err(Errno::EIO) };
        let shared = self.machine.exports.get(id).ok_or(Errno::EIO)?;
        let at = shared.memory.at(offset, data.len() as u64).ok_or(Errno::EFBIG)?;
        // SAFETY: `at` has `data.len()` writable bytes, in memory that `shared` keeps; `data` is separate.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
        Ok(())
    }
}
