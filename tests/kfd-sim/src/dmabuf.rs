//! Buffers that processes share: dmabufs, which are files of this simulator, and the handles of AMD's own driver package.
//!
//! A dmabuf is a file without a folder that the client could open: the simulator opens it and passes the descriptor on
//! ([`crate::descriptors`]). Its memory lives as long as a descriptor of it, or a buffer that was imported from one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::ioctl::Errno;
use crate::memory::Extent;

/// The inode of dmabuf 0. Device files have lower ones.
pub const FIRST_INODE: u64 = 1 << 32;

/// The beginning of the name of a dmabuf's file.
const NAME: &str = "dmabuf";

/// A buffer as others see it.
#[derive(Clone)]
pub struct Shared {
    /// Its memory.
    pub memory: Arc<Extent>,
    /// The index of its GPU.
    pub gpu: usize,
    /// The flags of its ALLOC_MEMORY_OF_GPU.
    pub flags: u32,
}

struct Dmabuf {
    shared: Shared,
    /// Open descriptions of its file.
    open: u32,
}

/// A buffer that a handle names without keeping it.
struct Named {
    memory: Weak<Extent>,
    gpu: usize,
    flags: u32,
}

/// All shared buffers.
#[derive(Default)]
pub struct Exports {
    next: AtomicU64,
    dmabufs: Mutex<BTreeMap<u64, Dmabuf>>,
    /// Buffers by the handle that IPC_EXPORT_HANDLE returned.
    handles: Mutex<BTreeMap<[u32; 4], Named>>,
    /// Descriptors that were given to a thread whose ioctl has not been answered yet: thread -> (what it exports, descriptor).
    given: Mutex<BTreeMap<i32, (u64, u32)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of a dmabuf's file.
pub fn file_name(id: u64) -> String {
    format!("{NAME}{id}")
}

/// Returns the number of the dmabuf whose file has that name.
pub fn id_of_name(name: &str) -> Option<u64> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Returns the number of the dmabuf behind a descriptor of a process: by what the kernel says of the descriptor, because a stat would
/// call this simulator itself.
pub fn id_of_descriptor(pid: i32, fd: u32) -> Result<u64, Errno> {
    let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).map_err(|_| Errno::EBADF)?;
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).map_err(|_| Errno::EBADF)?;
    id_of_link(&target, &info).ok_or(Errno::EINVAL)
}

fn id_of_link(target: &Path, info: &str) -> Option<u64> {
    let id = id_of_name(target.file_name()?.to_str()?)?;
    let inode = info.lines().find_map(|line| line.strip_prefix("ino:"))?;
    (inode.trim().parse() == Ok(FIRST_INODE + id)).then_some(id)
}

impl Exports {
    /// Makes a dmabuf, whose file is still to be opened. Returns its number.
    pub fn add(&self, shared: Shared) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        locked(&self.dmabufs).insert(id, Dmabuf { shared, open: 0 });
        id
    }

    /// Returns the buffer of a dmabuf.
    pub fn get(&self, id: u64) -> Option<Shared> {
        locked(&self.dmabufs).get(&id).map(|dmabuf| dmabuf.shared.clone())
    }

    /// Counts an open of a dmabuf's file.
    pub fn opened(&self, id: u64) {
        if let Some(dmabuf) = locked(&self.dmabufs).get_mut(&id) {
            dmabuf.open += 1;
        }
    }

    /// Counts the close of the last descriptor of an open file, or an open that failed. The last one frees the dmabuf.
    pub fn closed(&self, id: u64) {
        let mut dmabufs = locked(&self.dmabufs);
        let unused = dmabufs.get_mut(&id).is_some_and(|dmabuf| {
            dmabuf.open = dmabuf.open.saturating_sub(1);
            dmabuf.open == 0
        });
        if unused {
            dmabufs.remove(&id);
        }
    }

    /// Notes a descriptor that a thread was given for its pending ioctl. `what` identifies the exported object.
    pub fn give(&self, tid: i32, what: u64, fd: u32) {
        locked(&self.given).insert(tid, (what, fd));
    }

    /// Returns the descriptor that the thread was given to export `what`.
    pub fn take_given(&self, tid: i32, what: u64) -> Option<u32> {
        let (given, fd) = locked(&self.given).remove(&tid)?;
        (given == what).then_some(fd)
    }

    /// Returns a handle by which other processes can import the buffer.
    pub fn handle(&self, shared: &Shared) -> [u32; 4] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Not a secret here, only no number that a mistake would hit.
        let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let handle = [mixed as u32, (mixed >> 32) as u32, std::process::id(), number as u32];
        let named = Named {
            memory: Arc::downgrade(&shared.memory),
            gpu: shared.gpu,
            flags: shared.flags,
        };
        locked(&self.handles).insert(handle, named);
        handle
    }

    /// Returns the buffer with that handle, if it still exists.
    pub fn by_handle(&self, handle: [u32; 4]) -> Option<Shared> {
        let mut handles = locked(&self.handles);
        let named = handles.get(&handle)?;
        let shared = named.memory.upgrade().map(|memory| Shared {
            memory,
            gpu: named.gpu,
            flags: named.flags,
        });
        if shared.is_none() {
            handles.remove(&handle);
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SharedFile;

    fn buffer(file: &Arc<SharedFile>) -> Shared {
        Shared {
            memory: Arc::new(Extent::allocate(file, 8192).unwrap()),
            gpu: 1,
            flags: 3,
        }
    }

    #[test]
    fn memory_lives_as_long_as_a_descriptor() {
        let file = Arc::new(SharedFile::new("test", 1 << 20).unwrap());
        let exports = Exports::default();
        let shared = buffer(&file);
        let offset = shared.memory.offset();
        let id = exports.add(shared);
        exports.opened(id);
        exports.opened(id);
        exports.closed(id);
        let got = exports.get(id).unwrap();
        assert_eq!((got.memory.offset(), got.gpu, got.flags), (offset, 1, 3));
        drop(got);
        exports.closed(id);
        assert!(exports.get(id).is_none());
        assert_eq!(buffer(&file).memory.offset(), offset, "the memory is free again");
    }

    #[test]
    fn a_handle_does_not_keep_the_memory() {
        let file = Arc::new(SharedFile::new("test", 1 << 20).unwrap());
        let exports = Exports::default();
        let shared = buffer(&file);
        let (handle, other) = (exports.handle(&shared), exports.handle(&shared));
        assert_ne!(handle, other);
        assert_eq!(
            exports.by_handle(handle).unwrap().memory.offset(),
            shared.memory.offset()
        );
        assert!(exports.by_handle([0; 4]).is_none());
        drop(shared);
        assert!(exports.by_handle(handle).is_none());
    }

    #[test]
    fn a_descriptor_is_for_one_ioctl() {
        let exports = Exports::default();
        exports.give(7, 0x9c0f, 12);
        assert_eq!(exports.take_given(8, 0x9c0f), None);
        assert_eq!(exports.take_given(7, 0x9c0f), Some(12));
        assert_eq!(exports.take_given(7, 0x9c0f), None);
        exports.give(7, 0x9c0f, 12);
        assert_eq!(exports.take_given(7, 1), None, "another object");
    }

    #[test]
    fn a_file_of_that_name_is_not_enough() {
        let of = |path: &str, ino: u64| id_of_link(Path::new(path), &format!("pos:\t0\nflags:\t02\nino:\t{ino}\n"));
        assert_eq!(of("/dmabuf7", FIRST_INODE + 7), Some(7));
        assert_eq!(of("/tmp/dmabuf7", 812), None);
        assert_eq!(of("/memfd:x (deleted)", FIRST_INODE + 7), None);
        assert_eq!(id_of_link(Path::new("/dmabuf7"), "pos:\t0\n"), None);
        assert_eq!(id_of_descriptor(std::process::id() as i32, 1 << 20), Err(Errno::EBADF));
    }
}
