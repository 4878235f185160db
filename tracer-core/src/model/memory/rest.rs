//! Memory outside of every allocation from the KFD, which is the host's if nothing can have put it on a GPU.
//!
//! The driver can move such memory to a GPU: if the process says so (attributes of shared virtual memory), and, on GPUs that retry
//! page faults (XNACK), by itself. Buffers of other processes and of DRM come without an allocation.

use std::collections::HashMap;

use tracer_common::kfd::{self, svm as layout};

use super::super::ioctls::{u32_at, u64_at};
use crate::event::Ioctl;
use crate::losses;

/// Largest number of ranges kept for a process. Runtimes prefetch a few.
const MAX_RANGES: usize = 4096;

/// What is known of one process.
#[derive(Debug, Default)]
struct Process {
    /// Memory may have come from elsewhere, or unseen.
    unsure: bool,
    /// Whether its GPUs retry page faults; `None` if it has not asked or chosen.
    retries: Option<bool>,
    /// First addresses, and those one past the last, of what may be on a GPU.
    moved: Vec<(u64, u64)>,
}

/// What is known of all processes.
#[derive(Debug, Default)]
pub(super) struct Rest {
    processes: HashMap<u32, Process>,
    lost: bool,
}

impl Rest {
    /// Returns whether a range of addresses that is in no allocation is memory of the host.
    pub(super) fn is_host(&self, pid: u32, start: u64, end: u64) -> bool {
        let known = self.processes.get(&pid).filter(|_| !self.lost);
        known.is_some_and(|process| {
            let stays = process.moved.iter().all(|&(first, last)| last <= start || end <= first);
            !process.unsure && process.retries == Some(false) && stays
        })
    }

    /// Notes that a process may have memory that was not seen.
    pub(super) fn unsure(&mut self, pid: u32) {
        self.processes.entry(pid).or_default().unsure = true;
    }

    /// Notes lost events.
    pub(super) fn lost(&mut self, source: &str) {
        self.lost |= losses::hide_memory(source);
    }

    /// Forgets a process whose address space is gone.
    pub(super) fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Takes an ioctl on a device. An ioctl that failed may have done a part of its work.
    pub(super) fn ioctl(&mut self, event: &Ioctl<'_>) {
        let nr = kfd::ioc_nr(event.cmd);
        let is_kfd = kfd::ioc_type(event.cmd) == kfd::IOC_TYPE_KFD;
        let brings_memory = if is_kfd {
            matches!(nr, kfd::NR_IMPORT_DMABUF | kfd::NR_CRIU_OP) || nr >= kfd::FIRST_OF_DKMS
        } else {
            nr == kfd::NR_DRM_GEM_VA
        };
        if brings_memory {
            self.unsure(event.origin.pid);
        }
        if is_kfd && nr == kfd::NR_SVM {
            self.shared(event);
        } else if is_kfd && nr == kfd::NR_SET_XNACK_MODE && event.ret == Some(0) {
            let mode = event.arg_out.and_then(|arg| u32_at(arg, 0));
            self.processes.entry(event.origin.pid).or_default().retries = mode.map(|mode| mode != 0);
        }
    }

    /// Takes attributes of shared virtual memory.
    fn shared(&mut self, event: &Ioctl<'_>) {
        let process = self.processes.entry(event.origin.pid).or_default();
        match moved(event) {
            Some(None) => {}
            Some(Some(range)) if process.moved.len() < MAX_RANGES => {
                if !process.moved.contains(&range) {
                    process.moved.push(range);
                }
            }
            _ => process.unsure = true,
        }
    }
}

/// Returns the range that an SVM call may put on a GPU, `Some(None)` if it leaves all memory where it is, and `None` if the argument
/// could not be read.
fn moved(event: &Ioctl<'_>) -> Option<Option<(u64, u64)>> {
    let arg = event.arg_in?;
    if u32_at(arg, layout::OP)? != layout::SET_ATTRIBUTES {
        return Some(None);
    }
    let start = u64_at(arg, layout::START)?;
    let end = start.checked_add(u64_at(arg, layout::SIZE)?)?;
    for attribute in 0..u32_at(arg, layout::ATTRIBUTE_COUNT)? as usize {
        let at = layout::ATTRIBUTES.checked_add(attribute.checked_mul(layout::ATTRIBUTE_LEN)?)?;
        let (kind, value) = (u32_at(arg, at)?, u32_at(arg, at + 4)?);
        let is_place = matches!(kind, layout::PREFERRED_LOCATION | layout::PREFETCH_LOCATION);
        if is_place && !matches!(value, layout::HOST | layout::UNDEFINED) {
            return Some(Some((start, end)));
        }
    }
    Some(None)
}
