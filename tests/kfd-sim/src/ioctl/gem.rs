//! The ioctls of render nodes on buffers that were imported there.

use super::abi::{Abi, GemClose, GemMetadata, GemMmap, GemOp, GemVa, PrimeHandle};
use super::sharing::{dmabuf, gem_identity};
use super::{Errno, IoctlResult, with};
use crate::machine::Machine;
use crate::memory::{PAGE, page_up};
use crate::process::Process;

/// Executes an ioctl of a render node on its objects. Returns `None` for any other ioctl.
pub fn dispatch(machine: &Machine, process: &Process, tid: i32, nr: u8, bytes: &mut [u8]) -> Option<IoctlResult> {
    Some(match nr {
        0x09 => with(bytes, |args: &mut GemClose| {
            let removed = process.state().objects.remove(&args.handle);
            removed.map(|_| ()).ok_or(Errno::EINVAL)
        }),
        0x2d => with(bytes, |args: &mut PrimeHandle| {
            let given = machine.exports.take_given(tid, gem_identity(args.handle));
            if !process.state().objects.contains_key(&args.handle) {
                return Err(Errno::ENOENT);
            }
            args.fd = given.ok_or(Errno::ENOTTY)?;
            Ok(())
        }),
        0x2e => with(bytes, |args: &mut PrimeHandle| {
            let shared = dmabuf(machine, process, args.fd)?;
            let mut state = process.state();
            // The same memory is the same object.
            let known = state
                .objects
                .iter()
                .find(|(_, object)| object.memory.offset() == shared.memory.offset());
            args.handle = match known {
                Some((&handle, _)) => handle,
                None => (1..).find(|handle| !state.objects.contains_key(handle)).unwrap_or(1),
            };
            state.objects.entry(args.handle).or_insert(shared);
            Ok(())
        }),
        0x41 => with(bytes, |args: &mut GemMmap| {
            let state = process.state();
            let handle = args.offset as u32;
            let object = state.objects.get(&handle).ok_or(Errno::ENOENT)?;
            args.offset = object.memory.offset();
            Ok(())
        }),
        0x46 => object_notes(process, bytes),
        0x48 => with(bytes, |args: &mut GemVa| map_object(process, args)),
        0x50 => with(bytes, |args: &mut GemOp| describe(process, args)),
        _ => return None,
    })
}

/// Performs `AMDGPU_GEM_VA`.
fn map_object(process: &Process, args: &GemVa) -> IoctlResult {
    const MAP: u32 = 1;
    const UNMAP: u32 = 2;
    const CLEAR: u32 = 3;
    const REPLACE: u32 = 4;
    match args.operation {
        MAP | REPLACE => {
            let state = process.state();
            let memory = &state.objects.get(&args.handle).ok_or(Errno::ENOENT)?.memory;
            let end = args.offset_in_bo.checked_add(args.map_size).ok_or(Errno::EINVAL)?;
            if args.map_size == 0 || end > page_up(memory.len()) {
                return Err(Errno::EINVAL);
            }
            process
                .space
                .insert(args.va_address, args.map_size, memory.offset() + args.offset_in_bo);
            Ok(())
        }
        UNMAP | CLEAR => {
            process.space.remove(args.va_address);
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Distance of the metadata from the start of `drm_amdgpu_gem_metadata`, and its size: flags, tiling, the size of the data, and room
/// for the data.
const NOTES: usize = 8;
const NOTE_BYTES: usize = 276;

/// Performs `AMDGPU_GEM_METADATA`: notes something at a buffer, or returns it. All who share the buffer see it.
fn object_notes(process: &Process, bytes: &mut [u8]) -> IoctlResult {
    const SET: u32 = 1;
    const GET: u32 = 2;
    let args = GemMetadata::load(bytes);
    let state = process.state();
    let memory = &state.objects.get(&args.handle).ok_or(Errno::ENOENT)?.memory;
    let notes = bytes.get_mut(NOTES..NOTES + NOTE_BYTES).ok_or(Errno::EINVAL)?;
    match args.op {
        SET => memory.note(notes),
        GET => {
            let known = memory.notes();
            notes.fill(0);
            notes[..known.len()].copy_from_slice(&known);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(())
}

/// Performs `AMDGPU_GEM_OP`: describes a buffer as it would be created.
fn describe(process: &Process, args: &GemOp) -> IoctlResult {
    const GET_CREATE_INFO: u32 = 0;
    const DOMAIN_GTT: u64 = 2;
    const DOMAIN_VRAM: u64 = 4;
    let state = process.state();
    let object = state.objects.get(&args.handle).ok_or(Errno::ENOENT)?;
    if args.op != GET_CREATE_INFO {
        return Err(Errno::EINVAL);
    }
    // Bit 0 of the flags of ALLOC_MEMORY_OF_GPU.
    let domain = if object.flags & 1 != 0 { DOMAIN_VRAM } else { DOMAIN_GTT };
    let info: Vec<u8> = [object.memory.len(), PAGE, domain, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    process.space.write(args.value, &info).map_err(|_| Errno::EFAULT)
}
