//! The memory that an address belongs to, according to the allocations of processes from the KFD.

use std::collections::BTreeMap;

use tracer_common::kfd::{self, alloc_memory as layout};

use super::ioctls::{u32_at, u64_at};
use crate::event::Ioctl;
use crate::tables::Direction;

/// Largest number of allocations kept, over all processes.
const MAX_ALLOCATIONS: usize = 1 << 18;

/// Place of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    Gpu,
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
}

impl Memory {
    /// Takes an ioctl on the KFD, which may allocate or free memory.
    pub(super) fn ioctl(&mut self, event: &Ioctl<'_>) {
        let (pid, nr) = (event.origin.pid, kfd::ioc_nr(event.cmd));
        let done = event.ret == Some(0) && kfd::ioc_type(event.cmd) == kfd::IOC_TYPE_KFD;
        if !done {
            return;
        }
        if nr == kfd::NR_ALLOC_MEMORY_OF_GPU {
            // The addresses of an allocation that cannot be read stay unknown.
            let _ = self.allocate(pid, event);
        } else if nr == kfd::NR_FREE_MEMORY_OF_GPU
            && let Some(handle) = event.arg_in.and_then(|arg| u64_at(arg, 0))
            && let Some(start) = self.by_handle.remove(&(pid, handle))
        {
            self.allocations.remove(&(pid, start));
        }
    }

    /// Forgets the allocations of a process whose address space is gone.
    pub(super) fn end_process(&mut self, pid: u32) {
        let all = (pid, 0)..=(pid, u64::MAX);
        for (_, allocation) in self.allocations.extract_if(all, |_, _| true) {
            self.by_handle.remove(&(pid, allocation.handle));
        }
    }

    /// Returns the memories between which the bytes move; `None` unless both ranges are in known allocations.
    pub(super) fn direction(&self, pid: u32, source: (u64, u64), destination: (u64, u64)) -> Option<Direction> {
        Some(match (self.place(pid, source)?, self.place(pid, destination)?) {
            (Place::Host, Place::Gpu) => Direction::H2d,
            (Place::Gpu, Place::Host) => Direction::D2h,
            (Place::Gpu, Place::Gpu) => Direction::D2d,
            (Place::Host, Place::Host) => Direction::H2h,
        })
    }

    fn place(&self, pid: u32, (start, bytes): (u64, u64)) -> Option<Place> {
        let (_, allocation) = self.allocations.range((pid, 0)..=(pid, start)).next_back()?;
        (start.checked_add(bytes)? <= allocation.end).then_some(allocation.place)
    }

    fn allocate(&mut self, pid: u32, event: &Ioctl<'_>) -> Option<()> {
        let (arg, out) = (event.arg_in?, event.arg_out?);
        let start = u64_at(arg, layout::ADDRESS)?;
        let end = start.checked_add(u64_at(arg, layout::SIZE)?)?;
        let flags = u32_at(arg, layout::FLAGS)?;
        let place = match flags {
            flags if flags & layout::VRAM != 0 => Place::Gpu,
            flags if flags & (layout::GTT | layout::USERPTR) != 0 => Place::Host,
            _ => return None,
        };
        let handle = u64_at(out, layout::HANDLE)?;
        // The former allocation at these addresses is gone: the event of its release was lost.
        while let Some((&key, old)) = self.allocations.range((pid, 0)..(pid, end)).next_back() {
            if old.end <= start {
                break;
            }
            self.remove(key);
        }
        if self.allocations.len() < MAX_ALLOCATIONS && end > start {
            self.allocations.insert((pid, start), Allocation { end, place, handle });
            self.by_handle.insert((pid, handle), start);
        }
        Some(())
    }

    fn remove(&mut self, key: (u32, u64)) {
        if let Some(allocation) = self.allocations.remove(&key) {
            self.by_handle.remove(&(key.0, allocation.handle));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Origin;

    impl Memory {
        fn call(&mut self, nr: u32, arg: &[u8]) {
            self.ioctl(&Ioctl {
                origin: Origin {
                    time_ns: 1,
                    pid: 7,
                    tid: 7,
                },
                exit_ns: 2,
                fd: 3,
                cmd: 0xc028_4b00 | nr,
                ret: Some(0),
                arg_in: Some(arg),
                arg_out: Some(arg),
            });
        }

        fn take(&mut self, start: u64, size: u64, flags: u32, handle: u64) {
            let mut arg = [0; 40];
            arg[0..8].copy_from_slice(&start.to_le_bytes());
            arg[8..16].copy_from_slice(&size.to_le_bytes());
            arg[16..24].copy_from_slice(&handle.to_le_bytes());
            arg[36..40].copy_from_slice(&flags.to_le_bytes());
            self.call(0x16, &arg);
        }
    }

    #[test]
    fn a_direction_needs_both_ends() {
        let mut memory = Memory::default();
        memory.take(0x1000, 0x1000, 0xd000_0002, 1);
        memory.take(0x8000, 0x1000, 0x8000_0001, 2);
        let (host, gpu) = ((0x1000, 0x1000), (0x8800, 0x800));
        assert_eq!(memory.direction(7, host, gpu), Some(Direction::H2d));
        assert_eq!(memory.direction(7, gpu, host), Some(Direction::D2h));
        assert_eq!(memory.direction(7, gpu, gpu), Some(Direction::D2d));
        assert_eq!(memory.direction(7, host, host), Some(Direction::H2h));
        assert_eq!(memory.direction(8, host, gpu), None, "another process");
        assert_eq!(memory.direction(7, (0x1000, 0x1001), gpu), None, "beyond the end");
        assert_eq!(memory.direction(7, (0, 1), gpu), None);
        memory.call(0x17, &1_u64.to_le_bytes());
        assert_eq!(memory.direction(7, host, gpu), None, "freed");
        // A doorbell page is not memory.
        memory.take(0x2000, 0x1000, 0x9400_0008, 3);
        assert_eq!(memory.direction(7, (0x2000, 1), gpu), None);
    }

    #[test]
    fn what_was_freed_unseen_makes_room() {
        let mut memory = Memory::default();
        for at in 0..4 {
            memory.take(0x1000 * at, 0x1000, 2, at);
        }
        memory.take(0x1800, 0x1000, 1, 9);
        assert_eq!(memory.direction(7, (0x1900, 1), (0x2700, 1)), Some(Direction::D2d));
        assert_eq!(memory.direction(7, (0x1000, 1), (0x1000, 1)), None);
        assert_eq!(memory.direction(7, (0, 1), (0x3000, 1)), Some(Direction::H2h));
        assert_eq!(memory.by_handle.len(), memory.allocations.len());
        memory.end_process(7);
        assert_eq!((memory.by_handle.len(), memory.allocations.len()), (0, 0));
    }
}
