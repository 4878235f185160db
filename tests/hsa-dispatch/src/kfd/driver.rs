//! The kernel driver's interface, as far as one AQL queue needs it (`include/uapi/linux/kfd_ioctl.h`).

use std::ffi::c_ulong;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

const KFD: &str = "/dev/kfd";
const RENDER: &str = "/dev/dri/renderD128";
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// `KFD_IOC_QUEUE_TYPE_COMPUTE_AQL`.
const TYPE_AQL: u32 = 2;
/// `KFD_IOC_ALLOC_MEM_FLAGS_*`: USERPTR, with WRITABLE, EXECUTABLE, NO_SUBSTITUTE and COHERENT.
const USER_MEMORY: u32 = 1 << 2 | 0b1101 << 28 | 1 << 26;
/// The same flags with VRAM, WRITABLE, EXECUTABLE, PUBLIC, NO_SUBSTITUTE and COHERENT.
const DEVICE_MEMORY: u32 = 1 | 0b1111 << 28 | 1 << 26;
/// Bytes of a page of doorbells of GPUs since gfx9.
const DOORBELLS: usize = 8192;

/// `kfd_ioctl_create_queue_args`, as before KFD 1.17.
#[repr(C)]
#[derive(Default)]
struct CreateQueue {
    ring_base: u64,
    write_pointer: u64,
    read_pointer: u64,
    doorbell_offset: u64,
    ring_size: u32,
    gpu_id: u32,
    kind: u32,
    percentage: u32,
    priority: u32,
    queue_id: u32,
    eop_address: u64,
    eop_size: u64,
    save_address: u64,
    save_size: u32,
    stack_size: u32,
}

/// `kfd_ioctl_acquire_vm_args`.
#[repr(C)]
struct AcquireVm {
    drm_fd: u32,
    gpu_id: u32,
}

/// `kfd_ioctl_alloc_memory_of_gpu_args`.
#[repr(C)]
struct AllocMemory {
    address: u64,
    size: u64,
    handle: u64,
    /// In: the address of user memory. Out: where other memory is in the render node.
    offset: u64,
    gpu_id: u32,
    flags: u32,
}

/// `kfd_ioctl_map_memory_to_gpu_args`.
#[repr(C)]
struct MapMemory {
    handle: u64,
    gpu_ids: u64,
    count: u32,
    done: u32,
}

/// An open GPU.
pub struct Driver {
    kfd: File,
    render: File,
    gpu_id: u32,
}

/// A queue that the driver created.
pub struct Created {
    /// Its id.
    pub id: u32,
    /// Its doorbell.
    pub doorbell: *mut u64,
}

impl Driver {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// Fails if there is no GPU, or if the driver refuses.
    pub fn open() -> Result<Self> {
        let open = |path: &str| {
            let opened = OpenOptions::new().read(true).write(true).open(path);
            opened.map_err(|source| file_error(Path::new(path), source))
        };
        let (kfd, render) = (open(KFD)?, open(RENDER)?);
        let gpu_id = first_gpu()?.ok_or(Error::NoGpu { wanted: 0, found: 0 })?;
        let driver = Self { kfd, render, gpu_id };
        let drm_fd = driver.render.as_raw_fd().cast_unsigned();
        driver.call(0x15, "ACQUIRE_VM", &mut AcquireVm { drm_fd, gpu_id })?;
        Ok(driver)
    }

    /// Maps pages of memory that the GPU can use.
    ///
    /// # Errors
    /// Fails if there is no memory, or if the driver refuses.
    pub fn map(&self, bytes: usize) -> Result<*mut u8> {
        let memory = anonymous(bytes)?;
        self.allocate(memory.expose_provenance() as u64, bytes, USER_MEMORY)?;
        Ok(memory)
    }

    /// Maps pages of the GPU's own memory.
    ///
    /// # Errors
    /// Fails if there is no memory, or if the driver refuses.
    pub fn map_device(&self, bytes: usize) -> Result<*mut u8> {
        // As runtimes do: the GPU's address is the process's.
        let memory = anonymous(bytes)?;
        let offset = self.allocate(memory.expose_provenance() as u64, bytes, DEVICE_MEMORY)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: replaces the mapping that was just made, which nothing uses.
        let mapped = unsafe {
            libc::mmap(
                memory.cast(),
                bytes,
                protection,
                flags,
                self.render.as_raw_fd(),
                offset.cast_signed(),
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(file_error(Path::new(RENDER), io::Error::last_os_error()));
        }
        Ok(memory)
    }

    /// Allocates memory at an address, and maps it to the GPU. Returns its place in the render node.
    fn allocate(&self, address: u64, bytes: usize, flags: u32) -> Result<u64> {
        let mut alloc = AllocMemory {
            address,
            size: bytes as u64,
            handle: 0,
            offset: if flags == USER_MEMORY { address } else { 0 },
            gpu_id: self.gpu_id,
            flags,
        };
        self.call(0x16, "ALLOC_MEMORY_OF_GPU", &mut alloc)?;
        let mut map = MapMemory {
            handle: alloc.handle,
            gpu_ids: (&raw const self.gpu_id).expose_provenance() as u64,
            count: 1,
            done: 0,
        };
        self.call(0x18, "MAP_MEMORY_TO_GPU", &mut map)?;
        Ok(alloc.offset)
    }

    /// Creates an AQL queue.
    ///
    /// # Errors
    /// Fails if the driver refuses.
    pub fn create_queue(&self, ring: u64, ring_size: u32, write_pointer: u64, read_pointer: u64) -> Result<Created> {
        let mut create = CreateQueue {
            ring_base: ring,
            write_pointer,
            read_pointer,
            ring_size,
            gpu_id: self.gpu_id,
            kind: TYPE_AQL,
            percentage: 100,
            priority: 7,
            ..CreateQueue::default()
        };
        self.call(0x02, "CREATE_QUEUE", &mut create)?;
        let within = create.doorbell_offset as usize % DOORBELLS;
        let page = (create.doorbell_offset - within as u64).cast_signed();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let doorbells = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                DOORBELLS,
                protection,
                libc::MAP_SHARED,
                self.kfd.as_raw_fd(),
                page,
            )
        };
        if doorbells == libc::MAP_FAILED {
            return Err(file_error(Path::new(KFD), io::Error::last_os_error()));
        }
        Ok(Created {
            id: create.queue_id,
            // SAFETY: `within` is inside the mapping.
            doorbell: unsafe { doorbells.cast::<u8>().add(within) }.cast(),
        })
    }

    /// Performs an ioctl of the KFD that reads and writes its argument.
    fn call<T>(&self, number: u32, name: &str, argument: &mut T) -> Result<()> {
        // ACQUIRE_VM is the only one here that only writes (_IOW).
        let direction: u32 = if number == 0x15 { 1 } else { 3 };
        let command = direction << 30 | (size_of::<T>() as u32) << 16 | u32::from(b'K') << 8 | number;
        // SAFETY: the argument is the struct that the command names, with its size.
        let result = unsafe {
            libc::ioctl(
                self.kfd.as_raw_fd(),
                c_ulong::from(command),
                std::ptr::from_mut(argument),
            )
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            return Err(Error::Unexpected(format!("{name} failed: {error}")));
        }
        Ok(())
    }
}

/// Maps pages of anonymous memory.
fn anonymous(bytes: usize) -> Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(file_error(Path::new("mmap"), io::Error::last_os_error()));
    }
    Ok(memory.cast())
}

/// Returns the id of the first node of the topology that is a GPU.
fn first_gpu() -> Result<Option<u32>> {
    let nodes = fs::read_dir(NODES).map_err(|source| file_error(Path::new(NODES), source))?;
    let mut nodes: Vec<PathBuf> = nodes.flatten().map(|node| node.path()).collect();
    nodes.sort();
    let id = |node: &PathBuf| fs::read_to_string(node.join("gpu_id")).ok()?.trim().parse().ok();
    Ok(nodes.iter().filter_map(id).find(|id| *id != 0))
}

fn file_error(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}
