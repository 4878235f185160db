//! The memory ioctls: ALLOC_MEMORY_OF_GPU and the others.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::abi::{AllocMemory, FreeMemory, MapMemory, Svm};
use super::{Errno, IoctlResult};
use crate::asic::Asic;
use crate::machine::{Doorbells, Machine};
use crate::memory::{Extent, PAGE, page_up};
use crate::process::{Buffer, DoorbellPage, Process, State};

/// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
mod flags {
    pub const VRAM: u32 = 1 << 0;
    pub const GTT: u32 = 1 << 1;
    pub const USERPTR: u32 = 1 << 2;
    pub const DOORBELL: u32 = 1 << 3;
    pub const MMIO_REMAP: u32 = 1 << 4;
    pub const KINDS: u32 = VRAM | GTT | USERPTR | DOORBELL | MMIO_REMAP;
}

/// Returns the doorbell page of the process on a GPU. The page is created when it is first needed.
pub fn doorbell_page<'a>(machine: &Machine, state: &'a mut State, gpu: usize) -> Result<&'a mut DoorbellPage, Errno> {
    match state.doorbells.entry(gpu) {
        Entry::Occupied(page) => Ok(page.into_mut()),
        Entry::Vacant(place) => {
            let offset = machine.doorbells.take_page().ok_or(Errno::ENOMEM)?;
            Ok(place.insert(DoorbellPage::new(offset)))
        }
    }
}

/// Returns a new handle in the driver's format: GPU id above, number below.
pub fn new_handle(state: &State, gpu_id: u32) -> u64 {
    let base = u64::from(gpu_id) << 32;
    (base..)
        .find(|handle| !state.buffers.contains_key(handle))
        .unwrap_or(base)
}

/// Performs ALLOC_MEMORY_OF_GPU.
pub fn alloc(machine: &Machine, process: &Process, args: &mut AllocMemory) -> IoctlResult {
    let gpu = machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
    if args.size == 0 || args.va_addr.checked_add(args.size).is_none() {
        return Err(Errno::EINVAL);
    }
    let mut state = process.state();
    let (memory, mmap_offset) = match args.flags & flags::KINDS {
        flags::VRAM | flags::GTT => {
            let vram = args.flags & flags::VRAM != 0;
            if vram && state.vram_used(gpu).saturating_add(args.size) > machine.asic.vram_bytes {
                return Err(Errno::ENOMEM);
            }
            let memory = Extent::allocate(&machine.vram, args.size).ok_or(Errno::ENOMEM)?;
            let offset = memory.offset();
            process.space.insert(args.va_addr, page_up(args.size), offset);
            (Some(Arc::new(memory)), offset)
        }
        // On input, `mmap_offset` is the user's address.
        flags::USERPTR if args.mmap_offset & (PAGE - 1) != 0 => return Err(Errno::EINVAL),
        flags::USERPTR => {
            if args.mmap_offset != args.va_addr {
                process.space.alias(args.va_addr, page_up(args.size), args.mmap_offset);
            }
            (None, args.mmap_offset)
        }
        flags::DOORBELL if args.size != Asic::DOORBELL_PAGE => return Err(Errno::EINVAL),
        flags::DOORBELL => (None, doorbell_page(machine, &mut state, gpu)?.offset),
        flags::MMIO_REMAP if args.size != PAGE => return Err(Errno::EINVAL),
        flags::MMIO_REMAP => (None, Doorbells::register_page(gpu)),
        _ => return Err(Errno::EINVAL),
    };
    args.handle = new_handle(&state, args.gpu_id);
    args.mmap_offset = mmap_offset;
    let vram = args.flags & flags::VRAM != 0;
    state.buffers.insert(
        args.handle,
        Buffer {
            va: args.va_addr,
            size: args.size,
            memory,
            gpu,
            vram,
            flags: args.flags,
        },
    );
    Ok(())
}

/// Performs FREE_MEMORY_OF_GPU.
pub fn free(process: &Process, args: &FreeMemory) -> IoctlResult {
    let buffer = process.state().buffers.remove(&args.handle).ok_or(Errno::EINVAL)?;
    process.space.remove(buffer.va);
    Ok(())
}

/// Performs MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU. Everything is already mapped everywhere, so only the arguments are
/// checked.
pub fn map(machine: &Machine, process: &Process, args: &mut MapMemory) -> IoctlResult {
    if args.n_devices == 0 || args.n_success > args.n_devices {
        return Err(Errno::EINVAL);
    }
    if args.n_devices > 4096 {
        return Err(Errno::ENOMEM);
    }
    let mut ids = vec![0; args.n_devices as usize * 4];
    process
        .space
        .read(args.device_ids, &mut ids)
        .map_err(|_| Errno::EFAULT)?;
    if !process.state().buffers.contains_key(&args.handle) {
        return Err(Errno::EINVAL);
    }
    for id in ids.as_chunks().0.iter().skip(args.n_success as usize) {
        machine.gpu_index(u32::from_le_bytes(*id)).ok_or(Errno::EINVAL)?;
        args.n_success += 1;
    }
    Ok(())
}

/// Performs SVM. Ranges need nothing here, since all of the client's memory is reachable. Attributes are reported as unset.
pub fn svm(args: &Svm, attributes: &mut [u8]) -> IoctlResult {
    const SET_ATTR: u32 = 0;
    const GET_ATTR: u32 = 1;
    const PREFERRED_LOCATION: u32 = 0;
    const PREFETCH_LOCATION: u32 = 1;
    const LOCATION_UNDEFINED: u32 = u32::MAX;
    let unaligned = (args.start_addr | args.size) & (PAGE - 1) != 0;
    if unaligned || args.start_addr == 0 || args.size == 0 || args.op > GET_ATTR {
        return Err(Errno::EINVAL);
    }
    if args.op == SET_ATTR {
        return Ok(());
    }
    let pairs = attributes.as_chunks_mut::<8>().0;
    for pair in pairs.iter_mut().take(args.nattr as usize) {
        let kind = u32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]);
        let value = if matches!(kind, PREFERRED_LOCATION | PREFETCH_LOCATION) {
            LOCATION_UNDEFINED
        } else {
            0
        };
        pair[4..].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}
