//! The losses that the programs count, read without disturbing the programs.
//!
//! While a system call for a map runs, the kernel runs no program of a trace event or of a kernel function on that processor
//! (`bpf_disable_instrumentation`, kernel/bpf/syscall.c), even if the caller has been preempted. The counters are therefore mapped,
//! and tracer looks up and removes nothing while processes are traced.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
};

use aya::maps::Map;
use tracer_common::record::LossSource;

use crate::{
    CaptureError,
    probes::second_programs,
    shared_maps::words::{Access, SharedWords},
    sys,
};

/// The programs' counters, and the kernel's.
pub struct Losses {
    /// The map LOSSES, shared with the kernel.
    counters: SharedWords,
    counted: [u64; LossSource::ALL.len()],
    programs: Vec<(String, OwnedFd)>,
    /// The misses reported so far, by family.
    missed: BTreeMap<&'static str, u64>,
    /// The misses when tracing began, and when it ended: misses before and after that are not losses.
    first: Option<BTreeMap<&'static str, u64>>,
    last: Option<BTreeMap<&'static str, u64>>,
}

const COUNTERS: usize = (LossSource::PROCESSORS * LossSource::STRIDE) as usize;
const BYTES: usize = COUNTERS * size_of::<u64>();
const _: () = assert!(LossSource::ALL.len() <= LossSource::STRIDE as usize);

impl Losses {
    /// Maps the counters; `programs` are those whose misses count.
    ///
    /// # Errors
    /// Returns the error of the mapping.
    pub fn new(map: &Map, programs: Vec<(String, OwnedFd)>) -> Result<Self, CaptureError> {
        Ok(Self {
            counters: SharedWords::new(map, "LOSSES", BYTES, Access::Read)?,
            counted: [0; LossSource::ALL.len()],
            programs,
            missed: BTreeMap::new(),
            first: None,
            last: None,
        })
    }

    /// Marks the moment from which there are traced processes.
    pub fn begin(&mut self) {
        if self.first.is_none() {
            self.first = Some(self.missed());
        }
    }

    /// Marks the moment from which there are none.
    pub fn end(&mut self) {
        if self.last.is_none() {
            self.last = Some(self.missed());
        }
    }

    /// Hands over the losses since the last call, by source.
    pub fn report(&mut self, mut lost: impl FnMut(&'static str, u64)) {
        for (at, (source, counted)) in LossSource::ALL.iter().zip(&mut self.counted).enumerate() {
            let of_processor = |processor: u32| {
                let at = (processor * LossSource::STRIDE) as usize + at;
                self.counters.word(at).load(Ordering::Relaxed)
            };
            let total = (0..LossSource::PROCESSORS).map(of_processor).sum();
            if total > *counted {
                lost(source.name(), total - *counted);
                *counted = total;
            }
        }
        let Some(first) = &self.first else { return };
        let missed = self.last.clone().unwrap_or_else(|| self.missed());
        for (family, total) in missed {
            let total = total.saturating_sub(first.get(family).copied().unwrap_or(0));
            let counted = self.missed.entry(family).or_default();
            if total > *counted {
                lost(family, total - *counted);
                *counted = total;
            }
        }
    }

    /// Returns how often the kernel skipped programs, by family, because the processor was inside another program or inside a
    /// system call for a map. The event may have belonged to a process that is not traced. If two programs
    /// are for one event, it is missed only if both were skipped: at most as often as the one that was skipped less.
    fn missed(&self) -> BTreeMap<&'static str, u64> {
        // Kernels before 5.12 do not report misses.
        let of = |fd: &OwnedFd| sys::program_misses(fd.as_fd()).unwrap_or(0);
        let misses: BTreeMap<&str, u64> = self.programs.iter().map(|(name, fd)| (name.as_str(), of(fd))).collect();
        let mut by_family = BTreeMap::new();
        for (name, missed) in misses
            .iter()
            .filter(|(name, _)| !name.ends_with(second_programs::SUFFIX))
        {
            let twin = misses.get(format!("{name}{}", second_programs::SUFFIX).as_str());
            let both = twin.map_or(*missed, |twin| *twin.min(missed));
            *by_family.entry(family(name)).or_default() += both;
        }
        by_family
    }
}

/// Returns the source of losses that a program's misses count for.
fn family(program: &str) -> &'static str {
    let families = [
        ("api_", "missed-api"),
        ("hsa_queue_", "missed-hsa-queue"),
        ("ioctl_", "missed-ioctl"),
        ("mmap_", "missed-mapping"),
        ("task_", "missed-process"),
        ("progress_", "missed-progress"),
        ("ring_", "missed-ring"),
        ("driver_event_", "missed-driver-event"),
        ("driver_", "missed-driver"),
    ];
    families
        .into_iter()
        .find(|(start, _)| program.starts_with(start))
        .map_or("missed-other", |(_, source)| source)
}
