//! The memory that an address belongs to, according to the allocations of processes from the KFD.
//!
//! A GPU reaches memory that the process has not allocated from the KFD too: memory of the C library, for example, that the runtime
//! registers as shared virtual memory. [`rest`] says when this is certainly the host's.

mod rest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tracer_common::kfd::{self, alloc_memory as layout};

use super::ioctls::{u32_at, u64_at};
use crate::event::Ioctl;
use crate::tables::{Direction, RingMemory};
use rest::Rest;

/// Largest number of allocations kept, over all processes.
const MAX_ALLOCATIONS: usize = 1 << 18;

/// Place of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    Gpu,
    /// Registers of the GPU, such as doorbells, or memory of an unknown kind.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Allocation {
    /// One past its last address.
    end: u64,
    place: Place,
    handle: u64,
}

/// The allocations of every process.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Allocations by process and first address. Allocations of one process do not overlap.
    allocations: BTreeMap<(u32, u64), Allocation>,
    by_handle: BTreeMap<(u32, u64), u64>,
    /// What is known of all other memory.
    rest: Rest,
}

impl Memory {
    /// Takes an ioctl on the KFD, which may allocate or free memory.
    pub(super) fn ioctl(&mut self, event: &Ioctl<'_>) {
        let (pid, nr) = (event.origin.pid, kfd::ioc_nr(event.cmd));
        self.rest.ioctl(event);
        let done = event.ret == Some(0) && kfd::ioc_type(event.cmd) == kfd::IOC_TYPE_KFD;
        if !done {
            return;
        }
        if nr == kfd::NR_ALLOC_MEMORY_OF_GPU {
            if self.allocate(pid, event).is_none() {
                // The addresses of the allocation stay unknown.
                self.rest.unsure(pid);
            }
        } else if nr == kfd::NR_FREE_MEMORY_OF_GPU
            && let Some(handle) = event.arg_in.and_then(|arg| u64_at(arg, 0))
            && let Some(start) = self.by_handle.remove(&(pid, handle))
        {
            self.allocations.remove(&(pid, start));
        }
    }

    /// Notes a process that may have allocated memory before its ioctls were watched.
    pub(super) fn attached(&mut self, pid: u32) {
        self.rest.unsure(pid);
    }

    /// Notes lost events.
    pub(super) fn lost(&mut self, source: &str) {
        self.rest.lost(source);
    }

    /// Forgets the allocations of a process whose address space is gone.
    pub(super) fn end_process(&mut self, pid: u32) {
        self.rest.forget(pid);
        let all = (pid, 0)..=(pid, u64::MAX);
        for (_, allocation) in self.allocations.extract_if(all, |_, _| true) {
            self.by_handle.remove(&(pid, allocation.handle));
        }
    }

    /// Returns the memories between which the bytes move; `None` unless both are known.
    pub(super) fn direction(&self, pid: u32, source: (u64, u64), destination: (u64, u64)) -> Option<Direction> {
        match (self.place(pid, source)?, self.place(pid, destination)?) {
            (Place::Host, Place::Gpu) => Some(Direction::H2d),
            (Place::Gpu, Place::Host) => Some(Direction::D2h),
            (Place::Gpu, Place::Gpu) => Some(Direction::D2d),
            (Place::Host, Place::Host) => Some(Direction::H2h),
            (Place::Other, _) | (_, Place::Other) => None,
        }
    }

    /// Returns the memory that holds all of a ring, given by its address and its bytes; `None` if unknown.
    pub(super) fn holder(&self, pid: u32, ring: (u64, u64)) -> Option<RingMemory> {
        match self.place(pid, ring)? {
            Place::Host => Some(RingMemory::Host),
            Place::Gpu => Some(RingMemory::Device),
            Place::Other => None,
        }
    }

    fn place(&self, pid: u32, (start, bytes): (u64, u64)) -> Option<Place> {
        let end = start.checked_add(bytes.max(1))?;
        match self.allocations.range((pid, 0)..(pid, end)).next_back() {
            Some((&(_, first), allocation)) if allocation.end > start => {
                (first <= start && end <= allocation.end).then_some(allocation.place)
            }
            _ => self.rest.is_host(pid, start, end).then_some(Place::Host),
        }
    }

    fn allocate(&mut self, pid: u32, event: &Ioctl<'_>) -> Option<()> {
        let (arg, out) = (event.arg_in?, event.arg_out?);
        let start = u64_at(arg, layout::ADDRESS)?;
        let end = start.checked_add(u64_at(arg, layout::SIZE)?)?;
        let flags = u32_at(arg, layout::FLAGS)?;
        let place = match flags {
            flags if flags & layout::VRAM != 0 => Place::Gpu,
            flags if flags & (layout::GTT | layout::USERPTR) != 0 => Place::Host,
            _ => Place::Other,
        };
        let handle = u64_at(out, layout::HANDLE)?;
        // The former allocation at these addresses is gone: the event of its release was lost.
        while let Some((&key, old)) = self.allocations.range((pid, 0)..(pid, end)).next_back() {
            if old.end <= start {
                break;
            }
            self.remove(key);
        }
        (self.allocations.len() < MAX_ALLOCATIONS && end > start).then_some(())?;
        self.allocations.insert((pid, start), Allocation { end, place, handle });
        self.by_handle.insert((pid, handle), start);
        Some(())
    }

    fn remove(&mut self, key: (u32, u64)) {
        if let Some(allocation) = self.allocations.remove(&key) {
            self.by_handle.remove(&(key.0, allocation.handle));
        }
    }
}
