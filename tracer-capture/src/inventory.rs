//! The inventory of a capture: the libraries found, the probes attached, and the failures. It becomes part of the trace's manifest.

use std::{collections::BTreeMap, fmt};

use tracer_core::family::Family;
use tracer_core::losses;

use crate::{api_choice::Api, kernel::devices::Devices, runtime::resolver::Confidence};

/// A library that a traced process mapped: an HSA runtime or a HIP runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Path as the process saw it.
    pub path: String,
    /// Device of its file, such as `fd:01`, as in /proc/PID/maps.
    pub device: String,
    /// Inode of its file.
    pub inode: u64,
    /// Build id in hexadecimal, if it has one.
    pub build_id: Option<String>,
    /// Its DT_SONAME, if it has one.
    pub soname: Option<String>,
    /// First process that tracer saw mapping it.
    pub first_pid: u32,
    /// Whether it is a library of HIP or OpenCL, which submits through an HSA runtime.
    pub client: bool,
    /// Whether its doorbell functions can call a driver function (hsaKmtQueueRingDoorbell) instead of storing.
    pub thunk: bool,
}

/// The [`Probe::step`] of a trace event whose program reads the event's arguments, which BTF describes, and not its record. Kernels
/// that run such a program count the runs that they skip.
pub const RAW: &str = "BTF";

/// A probe, attached or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Family: `api`, `doorbell`, `sdma`, `reserve`, `ioctl`, `process`, `mapping`, `code_object`, `hsa_queue`, `proxy`,
    /// `progress`, `ring`, `driver`, `driver_event`, `stops`.
    pub family: Family,
    /// Path of the library, or the trace event's name.
    pub target: String,
    /// The function's role or name, or the event, that the probe is attached to.
    pub role: String,
    /// Offset in the file (uprobes).
    pub file_offset: Option<u64>,
    /// Kind of the instruction it replaces (uprobes); `single-stepped` costs 3 to 12 times as much as the others.
    pub instruction: Option<String>,
    /// The resolver step that found it (uprobes); [`RAW`] for a trace event.
    pub step: Option<String>,
    /// The resolver's confidence in it.
    pub confidence: Option<Confidence>,
    /// Why it is not attached; `None` if it is.
    pub error: Option<String>,
}

impl Probe {
    /// Returns whether the probe is attached.
    #[must_use]
    pub fn attached(&self) -> bool {
        self.error.is_none()
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} probe for {}", self.family, self.role)?;
        if let Some(offset) = self.file_offset {
            write!(f, " at file offset {offset:#x}")?;
        }
        if let Some(instruction) = &self.instruction {
            write!(f, " ({instruction})")?;
        }
        if let Some(step) = &self.step {
            write!(f, ", found by {step}")?;
        }
        if let Some(confidence) = self.confidence {
            write!(f, ", confidence {confidence}")?;
        }
        match &self.error {
            Some(error) => write!(f, ", not attached: {error}"),
            None => Ok(()),
        }
    }
}

/// Most GPUs that are listed, over all topologies.
const MAX_GPUS: usize = 1024;

/// Everything that a session set up.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// HSA runtimes, in the order of discovery.
    pub libraries: Vec<Library>,
    /// Probes, in the order of attachment.
    pub probes: Vec<Probe>,
    /// GPUs, as the processes that use the KFD see them; `None` before the first such process.
    pub devices: Option<Devices>,
    /// What tracer does with calls of API functions.
    pub api: Api,
    /// What the trace will lack and why, one sentence each.
    pub warnings: Vec<String>,
    /// Number of processes that tracer paused to attach their probes.
    pub holds: u64,
    /// Longest pause, ns.
    pub longest_hold_ns: u64,
    /// Libraries that were not opened and probes that are not attached: a count for each source of losses.
    pub losses: BTreeMap<&'static str, u64>,
}

impl Inventory {
    /// Adds probes, and a warning for each that is not attached.
    pub fn add(&mut self, probes: Vec<Probe>) {
        for probe in probes {
            if let Some(error) = &probe.error {
                self.warnings.push(format!("cannot trace {}: {error}", probe.target));
            }
            self.probes.push(probe);
        }
    }

    /// Adds a library, unless it is listed: tracer finds a library again that no process used for a while.
    pub fn add_library(&mut self, library: Library) {
        let same = |listed: &Library| {
            let first_pid = library.first_pid;
            let listed = listed.clone();
            Library { first_pid, ..listed } == library
        };
        if !self.libraries.iter().any(same) {
            self.libraries.push(library);
        }
    }

    /// Adds the probes of a library that are not listed yet. Each probe that could not be attached counts as a loss; the first one
    /// becomes a warning.
    pub fn add_of_library(&mut self, path: &str, probes: &mut Vec<Probe>) {
        let failed = probes.iter().filter(|probe| !probe.attached());
        if let Some(first) = failed.clone().next() {
            let (missing, all) = (failed.clone().count(), probes.len());
            self.warnings
                .push(format!("{path}: {missing} of {all} probes are missing: {first}"));
        }
        for probe in failed {
            self.lose(losses::unattached(probe.family));
        }
        probes.retain(|probe| !self.probes.contains(probe));
        self.probes.append(probes);
    }

    /// Adds the GPUs that a process sees. Two containers can show different GPUs under the same id: both are listed.
    pub fn add_devices(&mut self, devices: Devices) {
        let all = self.devices.get_or_insert_default();
        for gpu in devices.gpus {
            if !all.gpus.contains(&gpu) && all.gpus.len() < MAX_GPUS {
                all.gpus.push(gpu);
            }
        }
        all.simulated = all.simulated.take().or(devices.simulated);
    }

    /// Counts a loss.
    pub fn lose(&mut self, source: &'static str) {
        *self.losses.entry(source).or_default() += 1;
    }

    /// Returns the sign that the GPU is simulated, if one was found.
    #[must_use]
    pub fn simulated(&self) -> Option<&str> {
        self.devices.as_ref()?.simulated.as_deref()
    }

    /// Returns whether any probe of the family is attached.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.probes
            .iter()
            .any(|probe| probe.family == family && probe.attached())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_is_missing_is_a_warning_and_a_loss() {
        let probe = |target: &str, family, error: Option<&str>| Probe {
            family,
            target: target.to_owned(),
            error: error.map(str::to_owned),
            ..Probe::default()
        };
        let mut inventory = Inventory::default();
        inventory.add_of_library("/a", &mut vec![probe("/a", Family::Doorbell, None)]);
        assert!(inventory.warnings.is_empty() && inventory.losses.is_empty());
        // The library is found again.
        inventory.add_of_library("/a", &mut vec![probe("/a", Family::Doorbell, None)]);
        assert_eq!(inventory.probes.len(), 1);
        let mut some = vec![
            probe("/b", Family::Doorbell, None),
            probe("/b", Family::Doorbell, Some("no file")),
            probe("/b", Family::Sdma, Some("no file")),
            probe("/b", Family::Doorbell, Some("no room")),
        ];
        inventory.add_of_library("/b", &mut some);
        assert_eq!((inventory.probes.len(), inventory.warnings.len()), (5, 1));
        assert!(inventory.warnings[0].starts_with("/b: 3 of 4 probes are missing"));
        let losses: Vec<_> = inventory.losses.into_iter().collect();
        assert_eq!(losses, [("unattached-doorbell", 2), ("unattached-sdma", 1)]);
    }
}
