//! What the programs lost, read without disturbing them.
//!
//! While a system call for a map runs, the kernel runs no program of a trace event or of a kernel function on that
//! processor (`bpf_disable_instrumentation`, kernel/bpf/syscall.c), also if its caller has been preempted. So counters
//! are mapped, and nothing is looked up or removed while processes are traced.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use aya::maps::Map;
use tracer_common::record::LossSource;

use crate::{CaptureError, probes::twins, sys};

/// The programs' counters, and the kernel's.
pub struct Losses {
    /// The map LOSSES, shared with the kernel.
    counters: *const AtomicU64,
    counted: [u64; LossSource::ALL.len()],
    programs: Vec<(String, OwnedFd)>,
    missed: u64,
    /// What they had missed when tracing began and ended: what they miss before and after that is no loss.
    first: Option<u64>,
    last: Option<u64>,
}

// SAFETY: the mapping belongs to this value alone, and is read by atomic loads.
unsafe impl Send for Losses {}

const COUNTERS: usize = (LossSource::PROCESSORS * LossSource::STRIDE) as usize;
const BYTES: usize = COUNTERS * size_of::<u64>();
const _: () = assert!(LossSource::ALL.len() <= LossSource::STRIDE as usize);

impl Losses {
    /// Maps the counters; `programs` are those whose misses count.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map, programs: Vec<(String, OwnedFd)>) -> Result<Self, CaptureError> {
        let Map::Array(data) = map else {
            return Err(CaptureError::Missing("LOSSES"));
        };
        let fd = data.fd().as_fd().as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked below.
        let base = unsafe { libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(CaptureError::system("mapping counters", io::Error::last_os_error()));
        }
        Ok(Self {
            counters: base.cast(),
            counted: [0; LossSource::ALL.len()],
            programs,
            missed: 0,
            first: None,
            last: None,
        })
    }

    /// From now on there are traced processes.
    pub fn begin(&mut self) {
        if self.first.is_none() {
            self.first = Some(self.missed());
        }
    }

    /// From now on there are none.
    pub fn end(&mut self) {
        if self.last.is_none() {
            self.last = Some(self.missed());
        }
    }

    /// Hands over what was lost since the last call, by source.
    pub fn report(&mut self, mut lost: impl FnMut(&'static str, u64)) {
        for (at, (source, counted)) in LossSource::ALL.iter().zip(&mut self.counted).enumerate() {
            let of_processor = |processor: u32| {
                let at = (processor * LossSource::STRIDE) as usize + at;
                // SAFETY: inside the mapping, which lives as long as this value.
                unsafe { &*self.counters.add(at) }.load(Ordering::Relaxed)
            };
            let total = (0..LossSource::PROCESSORS).map(of_processor).sum();
            if total > *counted {
                lost(source.name(), total - *counted);
                *counted = total;
            }
        }
        let Some(first) = self.first else { return };
        let missed = self.last.unwrap_or_else(|| self.missed()).saturating_sub(first);
        if missed > self.missed {
            lost("missed", missed - self.missed);
            self.missed = missed;
        }
    }

    /// How often the kernel did not run a program, because the processor was inside another one or inside a system call
    /// for a map. It was perhaps no traced process's event. An event is missed if both of twins were passed over: at most
    /// as often as the one that was passed over less.
    fn missed(&self) -> u64 {
        let of = |(name, fd): &(String, OwnedFd)| match sys::program_misses(fd.as_fd()) {
            Ok(misses) => {
                if misses > 0 {
                    log::debug!("the kernel did not run {name} {misses} times since it was loaded");
                }
                misses
            }
            // Kernels before 5.12 do not tell.
            Err(_) => 0,
        };
        let misses: BTreeMap<&str, u64> = self
            .programs
            .iter()
            .map(|program| (program.0.as_str(), of(program)))
            .collect();
        let both = |(name, missed): (&&str, &u64)| match misses.get(format!("{name}{}", twins::SUFFIX).as_str()) {
            Some(twin) => *twin.min(missed),
            None => *missed,
        };
        misses
            .iter()
            .filter(|(name, _)| !name.ends_with(twins::SUFFIX))
            .map(both)
            .sum()
    }
}

impl Drop for Losses {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.counters.cast_mut().cast(), BYTES) };
    }
}
