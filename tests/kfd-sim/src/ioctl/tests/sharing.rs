//! Tests of the ioctls that share buffers.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::super::{gem, sharing};
use super::*;
use crate::dmabuf::Shared;
use crate::memory::{Extent, page_up};

const VRAM: u32 = 1;

/// Allocates a buffer of device memory at that address, and returns its handle.
fn allocate(driver: &Driver, va: u64, size: u64) -> AllocMemory {
    let mut args = AllocMemory {
        va_addr: va,
        size,
        gpu_id: gpu_id(1),
        flags: VRAM | 1 << 31,
        ..AllocMemory::default()
    };
    assert_eq!(driver.call(0x16, &mut args), Ok(()));
    args
}

#[test]
fn a_handle_of_another_process_is_the_same_memory() {
    let driver = Driver::new("gfx942");
    let (first, second) = (0x7000_0000_0000, 0x7100_0000_0000);
    let buffer = allocate(&driver, first, 8192);
    let mut export = IpcExport {
        handle: buffer.handle,
        gpu_id: gpu_id(1),
        ..IpcExport::default()
    };
    assert_eq!(driver.call(0x81, &mut export), Ok(()));
    let mut import = IpcImport {
        va_addr: second,
        share_0: export.share_0,
        share_1: export.share_1,
        share_2: export.share_2,
        share_3: export.share_3,
        gpu_id: gpu_id(1),
        ..IpcImport::default()
    };
    assert_eq!(driver.call(0x80, &mut import), Ok(()));
    assert_eq!((import.mmap_offset, import.flags), (buffer.mmap_offset, VRAM | 1 << 31));
    assert_ne!(import.handle, buffer.handle);
    let space = &driver.process.space;
    space.write(first + 4096, &7u64.to_le_bytes()).unwrap();
    assert_eq!(space.read_u64(second + 4096), Ok(7));
    // The memory lives as long as one of its buffers.
    let free = |handle| driver.call(0x17, &mut FreeMemory { handle });
    assert_eq!(free(buffer.handle), Ok(()));
    assert_eq!(
        (space.read_u64(second + 4096), space.read_u64(first).is_err()),
        (Ok(7), true)
    );
    assert_eq!(free(import.handle), Ok(()));
    assert_eq!(driver.call(0x80, &mut import), Err(Errno::EINVAL), "gone");
}

#[test]
fn handles_that_do_not_exist() {
    let driver = Driver::new("gfx942");
    let mut unknown = IpcImport {
        gpu_id: gpu_id(0),
        share_0: 1,
        ..IpcImport::default()
    };
    assert_eq!(driver.call(0x80, &mut unknown), Err(Errno::EINVAL));
    unknown.gpu_id = 1;
    assert_eq!(driver.call(0x80, &mut unknown), Err(Errno::EINVAL));
    let mut export = IpcExport {
        handle: 1,
        gpu_id: gpu_id(0),
        ..IpcExport::default()
    };
    assert_eq!(driver.call(0x81, &mut export), Err(Errno::EINVAL));
}

#[test]
fn a_descriptor_comes_from_outside_of_the_ioctl() {
    let driver = Driver::new("gfx942");
    let buffer = allocate(&driver, 0x7000_0000_0000, 4096);
    let export = |handle| {
        let mut args = ExportDmabuf {
            handle,
            ..ExportDmabuf::default()
        };
        let result = sharing::export(&driver.machine, &driver.process, 7, &mut args);
        (result, args.dmabuf_fd)
    };
    assert_eq!(export(buffer.handle), (Err(Errno::ENOTTY), 0));
    driver.machine.exports.give(7, buffer.handle, 12);
    assert_eq!(export(buffer.handle), (Ok(()), 12));
    assert_eq!(export(buffer.handle), (Err(Errno::ENOTTY), 0), "only once");
    assert_eq!(export(1), (Err(Errno::EINVAL), 0));
}

#[test]
fn what_is_no_dmabuf() {
    let driver = Driver::new("gfx942");
    let file = tempfile::tempfile().unwrap();
    let of = |fd: u32| {
        let mut info = DmabufInfo {
            dmabuf_fd: fd,
            ..DmabufInfo::default()
        };
        let mut import = ImportDmabuf {
            dmabuf_fd: fd,
            gpu_id: gpu_id(0),
            ..ImportDmabuf::default()
        };
        (driver.call(0x1c, &mut info), driver.call(0x1d, &mut import))
    };
    assert_eq!(of(file.as_raw_fd() as u32), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!(of(1 << 20), (Err(Errno::EBADF), Err(Errno::EBADF)));
}

#[test]
fn objects_of_render_nodes_are_mapped_and_closed() {
    let driver = Driver::new("gfx942");
    let memory = Arc::new(Extent::allocate(&driver.machine.vram, 8192).unwrap());
    let shared = Shared {
        memory: Arc::clone(&memory),
        gpu: 0,
        flags: VRAM,
    };
    driver.process.state().objects.insert(3, shared);
    let call = |nr: u8, args: &mut dyn FnMut(&mut [u8])| {
        let mut bytes = [0; 320];
        args(&mut bytes);
        let result = gem::dispatch(&driver.machine, &driver.process, 7, nr, &mut bytes).unwrap();
        (result, u64::from_le_bytes(bytes[..8].try_into().unwrap()))
    };
    assert_eq!(call(0x41, &mut |bytes| bytes[0] = 3), (Ok(()), memory.offset()));
    assert_eq!(call(0x41, &mut |bytes| bytes[0] = 4).0, Err(Errno::ENOENT));
    let va = 0x7200_0000_0000;
    let map = |operation, map_size, offset_in_bo| {
        let args = GemVa {
            handle: 3,
            operation,
            va_address: va,
            map_size,
            offset_in_bo,
            ..GemVa::default()
        };
        call(0x48, &mut |bytes| args.store(bytes)).0
    };
    assert_eq!(map(1, page_up(8192), 4096), Err(Errno::EINVAL), "beyond the end");
    assert_eq!(map(1, 4096, 4096), Ok(()));
    driver.process.space.write(va, &9u64.to_le_bytes()).unwrap();
    let at = memory.at(4096, 8).unwrap().cast::<u64>();
    // SAFETY: `at` is valid and aligned, and nothing writes there any more.
    assert_eq!(unsafe { at.read_volatile() }, 9);
    assert_eq!(map(2, 4096, 0), Ok(()));
    assert!(driver.process.space.read_u64(va).is_err());
    assert_eq!(map(9, 4096, 0), Err(Errno::EINVAL));
    let data = |bytes: &mut [u8], op: u8| {
        (bytes[0], bytes[4]) = (3, op);
        (bytes[24], bytes[28], bytes[29]) = (2, 0xab, 0xcd);
    };
    assert_eq!(call(0x46, &mut |bytes| data(bytes, 1)).0, Ok(()));
    assert_eq!(call(0x46, &mut |bytes| data(bytes, 9)).0, Err(Errno::EINVAL));
    assert_eq!(
        sharing::metadata(&memory),
        [0xab, 0xcd],
        "at the buffer, for all that share it"
    );
    let mut info = [0u64; 4];
    let op = GemOp {
        handle: 3,
        value: info.as_mut_ptr() as u64,
        ..GemOp::default()
    };
    assert_eq!(call(0x50, &mut |bytes| op.store(bytes)).0, Ok(()));
    assert_eq!(driver.process.space.read_u64(op.value), Ok(8192));
    assert_eq!(driver.process.space.read_u64(op.value + 16), Ok(4), "device memory");
    assert_eq!(call(0x09, &mut |bytes| bytes[0] = 3).0, Ok(()));
    assert_eq!(call(0x09, &mut |bytes| bytes[0] = 3).0, Err(Errno::EINVAL));
    assert!(gem::dispatch(&driver.machine, &driver.process, 7, 0x45, &mut [0; 64]).is_none());
}
