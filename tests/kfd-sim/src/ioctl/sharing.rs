//! The ioctls by which processes share buffers: dmabufs, and the handles of AMD's own driver package.

use super::abi::{Abi, DmabufInfo, ExportDmabuf, ImportDmabuf, IpcExport, IpcImport, PrimeHandle};
use super::memory::new_handle;
use super::{Errno, IoctlResult};
use crate::dmabuf::{Shared, id_of_descriptor};
use crate::machine::Machine;
use crate::memory::{Extent, page_up};
use crate::process::{Buffer, Process, State, thread_group};

/// `AMDKFD_IOC_EXPORT_DMABUF` and `DRM_IOCTL_PRIME_HANDLE_TO_FD`: the ioctls that give their caller a descriptor.
pub const EXPORT_DMABUF: u32 = 0xc010_4b24;
pub const PRIME_HANDLE_TO_FD: u32 = 0xc00c_642d;

/// Returns the identity of an object of a render node. The driver's handles have a GPU id above, so they differ from it.
pub fn gem_identity(handle: u32) -> u64 {
    1 << 63 | u64::from(handle)
}

/// Returns what an ioctl that was stopped before it began would export: an identity of the object, its buffer and the flags of the
/// new descriptor. Returns `None` if the ioctl will fail.
pub fn exported(machine: &Machine, tid: i32, command: u32, argument: u64) -> Option<(u64, Shared, u32)> {
    let process = machine.known_process(thread_group(tid.unsigned_abs(), None))?;
    let mut bytes = [0; 16];
    let size = if command == EXPORT_DMABUF { 16 } else { 12 };
    process.space.read(argument, &mut bytes[..size]).ok()?;
    let state = process.state();
    if command == EXPORT_DMABUF {
        let args = ExportDmabuf::load(&bytes);
        Some((args.handle, state.buffers.get(&args.handle)?.shared()?, args.flags))
    } else {
        let args = PrimeHandle::load(&bytes);
        let object = state.objects.get(&args.handle)?.clone();
        Some((gem_identity(args.handle), object, args.flags))
    }
}

/// Performs EXPORT_DMABUF, with the descriptor that the thread was given before.
pub fn export(machine: &Machine, process: &Process, tid: i32, args: &mut ExportDmabuf) -> IoctlResult {
    let given = machine.exports.take_given(tid, args.handle);
    let state = process.state();
    let buffer = state.buffers.get(&args.handle).ok_or(Errno::EINVAL)?;
    buffer.shared().ok_or(Errno::EINVAL)?;
    args.dmabuf_fd = given.ok_or(Errno::ENOTTY)?;
    Ok(())
}

/// Returns the buffer of a dmabuf descriptor of the process.
pub fn dmabuf(machine: &Machine, process: &Process, fd: u32) -> Result<Shared, Errno> {
    let id = id_of_descriptor(process.pid, fd)?;
    machine.exports.get(id).ok_or(Errno::EINVAL)
}

/// Distance of the size of the data, and of the data, from the start of the metadata.
const DATA_SIZE: usize = 16;
const DATA: usize = 20;

/// Returns the data in a buffer's metadata.
pub fn metadata(memory: &Extent) -> Vec<u8> {
    let notes = memory.notes();
    let size = notes
        .get(DATA_SIZE..DATA)
        .map_or(0, |size| u32::from_le_bytes(std::array::from_fn(|i| size[i])));
    let data = notes.get(DATA..).unwrap_or_default();
    data[..data.len().min(size as usize)].to_vec()
}

/// Performs GET_DMABUF_INFO. Metadata that does not fit is not copied, but its size is returned.
pub fn info(machine: &Machine, process: &Process, args: &mut DmabufInfo) -> IoctlResult {
    let shared = dmabuf(machine, process, args.dmabuf_fd)?;
    args.size = shared.memory.len();
    let (room, metadata) = (args.metadata_size as usize, metadata(&shared.memory));
    args.metadata_size = metadata.len() as u32;
    args.gpu_id = crate::topology::gpu_id(shared.gpu);
    args.flags = shared.flags;
    if metadata.is_empty() || args.metadata_ptr == 0 || room == 0 {
        return Ok(());
    }
    if metadata.len() > room {
        return Err(Errno::EINVAL);
    }
    process
        .space
        .write(args.metadata_ptr, &metadata)
        .map_err(|_| Errno::EFAULT)
}

/// Makes a buffer of the process from one of another process. The address 0 stands for none.
fn import(state: &mut State, process: &Process, shared: Shared, va: u64) -> u64 {
    let Shared { memory, gpu, flags } = shared;
    if va != 0 {
        process.space.insert(va, page_up(memory.len()), memory.offset());
    }
    let handle = new_handle(state, crate::topology::gpu_id(gpu));
    let buffer = Buffer {
        va,
        size: memory.len(),
        memory: Some(memory),
        gpu,
        // The process that allocated it counts it.
        vram: false,
        flags,
    };
    state.buffers.insert(handle, buffer);
    handle
}

/// Performs IMPORT_DMABUF.
pub fn import_dmabuf(machine: &Machine, process: &Process, args: &mut ImportDmabuf) -> IoctlResult {
    machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
    let shared = dmabuf(machine, process, args.dmabuf_fd)?;
    args.handle = import(&mut process.state(), process, shared, args.va_addr);
    Ok(())
}

/// Performs IPC_EXPORT_HANDLE of AMD's own driver package.
pub fn ipc_export(machine: &Machine, process: &Process, args: &mut IpcExport) -> IoctlResult {
    machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
    let shared = {
        let state = process.state();
        let buffer = state.buffers.get(&args.handle).ok_or(Errno::EINVAL)?;
        buffer.shared().ok_or(Errno::EINVAL)?
    };
    let handle = machine.exports.handle(&shared);
    [args.share_0, args.share_1, args.share_2, args.share_3] = handle;
    Ok(())
}

/// Performs IPC_IMPORT_HANDLE of AMD's own driver package.
pub fn ipc_import(machine: &Machine, process: &Process, args: &mut IpcImport) -> IoctlResult {
    machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
    let handle = [args.share_0, args.share_1, args.share_2, args.share_3];
    let shared = machine.exports.by_handle(handle).ok_or(Errno::EINVAL)?;
    args.mmap_offset = shared.memory.offset();
    args.flags = shared.flags;
    args.handle = import(&mut process.state(), process, shared, args.va_addr);
    Ok(())
}
