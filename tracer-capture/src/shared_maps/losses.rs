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
use tracer_core::{family::Family, losses};

use crate::{
    CaptureError,
    probes::second_programs,
    shared_maps::words::{Access, SharedWords},
    sys,
};

/// The losses that were handed over, by source.
#[derive(Default)]
pub struct HandedOver(BTreeMap<&'static str, u64>);

impl HandedOver {
    /// Hands over the losses that make the total of a source `total`.
    pub fn up_to(&mut self, total: u64, source: &'static str, lost: &mut impl FnMut(&'static str, u64)) {
        let before = self.0.entry(source).or_default();
        if total > *before {
            lost(source, total - *before);
            *before = total;
        }
    }
}

/// The programs' counters, and the kernel's.
pub struct Losses {
    /// The map LOSSES, shared with the kernel.
    counters: SharedWords,
    programs: Vec<(String, OwnedFd)>,
    handed_over: HandedOver,
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
            programs,
            handed_over: HandedOver::default(),
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
        for source in LossSource::ALL {
            let of_processor = |processor: u32| {
                let at = processor * LossSource::STRIDE + source as u32;
                self.counters.word(at as usize).load(Ordering::Relaxed)
            };
            let total = (0..LossSource::PROCESSORS).map(of_processor).sum();
            self.handed_over.up_to(total, source.name(), &mut lost);
        }
        let Some(first) = &self.first else { return };
        let missed = self.last.clone().unwrap_or_else(|| self.missed());
        for (family, total) in missed {
            let total = total.saturating_sub(first.get(family).copied().unwrap_or(0));
            self.handed_over.up_to(total, family, &mut lost);
        }
    }

    /// Returns how often the kernel skipped programs, by family, because the processor was inside another program or inside a
    /// system call for a map. The event may have belonged to a process that is not traced. If two programs
    /// are for one event, it is missed only if both were skipped: at most as often as the one that was skipped less.
    fn missed(&self) -> BTreeMap<&'static str, u64> {
        // Kernels before 5.12 do not report misses.
        let of = |fd: &OwnedFd| sys::program_misses(fd.as_fd()).unwrap_or(0);
        // A program that is loaded in two ways, for links and for perf events, has one name.
        let mut misses: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, fd) in &self.programs {
            *misses.entry(name).or_default() += of(fd);
        }
        let mut by_family = BTreeMap::new();
        for (name, missed) in misses.iter().filter(|(name, _)| !second_programs::is(name)) {
            let twin = misses.get(format!("{name}{}", second_programs::SUFFIX).as_str());
            let both = twin.map_or(*missed, |twin| *twin.min(missed));
            *by_family.entry(losses::missed(family(name))).or_default() += both;
        }
        by_family
    }
}

/// Returns the family of a program.
fn family(program: &str) -> Family {
    let families = [
        ("api_", Family::Api),
        ("code_object", Family::CodeObject),
        ("doorbell", Family::Doorbell),
        ("driver_event_", Family::DriverEvent),
        ("driver_", Family::Driver),
        ("hsa_queue_", Family::HsaQueue),
        ("ioctl_", Family::Ioctl),
        ("mmap_", Family::Mapping),
        ("progress_", Family::Progress),
        ("reserve", Family::Reserve),
        ("ring_", Family::Ring),
        // It pauses a process, as the programs of mappings do.
        ("runtime_init", Family::Mapping),
        ("sdma_doorbell", Family::Sdma),
        ("stop_sent", Family::Stops),
        ("task_", Family::Process),
    ];
    let mut found = families.into_iter().filter(|(start, _)| program.starts_with(start));
    found.next().map_or(Family::Other, |(_, family)| family)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kernel::ebpf_object::Object;

    /// A lost doorbell must not be among events of an unknown kind.
    #[test]
    fn every_program_has_a_family() {
        assert_eq!(
            ["doorbell", "doorbell_by_signal", "sdma_doorbell", "reserve"].map(|name| losses::missed(family(name))),
            ["missed-doorbell", "missed-doorbell", "missed-sdma", "missed-reserve"]
        );
        let object = aya_obj::Object::parse(Object::Plain.bytes().unwrap()).unwrap();
        let others: BTreeSet<&str> = object
            .programs
            .keys()
            .filter(|name| family(name) == Family::Other)
            .map(String::as_str)
            .collect();
        // Probes of `doctor` only.
        assert_eq!(others, BTreeSet::from(["cost", "empty"]));
    }
}
