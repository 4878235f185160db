//! The inventory of a capture: the libraries found, the probes attached, and the failures. It becomes part of the trace's manifest.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt, mem,
};

use tracer_core::{backend::Backend, family::Family, losses, tables};

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

    /// Returns whether the probe is attached and sees everything: a probe with low confidence sees only a part.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.attached() && self.confidence != Some(Confidence::Low)
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
/// Most libraries that are listed although no process uses them any more.
const MAX_UNUSED: usize = 64;
/// Most probes that are listed although they were never attached, and their library is not listed any more.
const MAX_FAILED: usize = 256;
/// Most warnings that are listed.
const MAX_WARNINGS: usize = 1024;
/// The families of probes that a runtime gets.
const OF_RUNTIMES: [Family; 5] = [
    Family::Doorbell,
    Family::Sdma,
    Family::Reserve,
    Family::CodeObject,
    Family::HsaQueue,
];

/// What tracer keeps of libraries that no process uses any more.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Such libraries that are still listed, by device and inode; the first one is unused for longest.
    unused: VecDeque<(String, u64)>,
    /// Rows of libraries that were released since the last [`Inventory::take_released`].
    released: Vec<tables::Library>,
    /// Number of HSA runtimes that are not listed any more; the rest is about them and other such libraries.
    runtimes: u64,
    /// Families that had a probe.
    had: BTreeSet<Family>,
    /// Families of which a probe could not be attached.
    failed: BTreeSet<Family>,
    /// Families of which one of these runtimes had no probe that sees everything.
    uncovered: BTreeSet<Family>,
    /// Whether one of these runtimes had no doorbell probe at all.
    without_doorbells: bool,
    /// Whether doorbell functions of one of them could call a driver function.
    thunk: bool,
}

/// Everything that a session set up.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// HSA runtimes and libraries that use one, in the order of discovery: those in use, and the last ones that were in use.
    pub libraries: Vec<Library>,
    /// What is kept of libraries that no process uses any more.
    pub past: Past,
    /// Probes, in the order of attachment. Those of libraries that are not listed any more are left out.
    pub probes: Vec<Probe>,
    /// GPUs, as the processes that use the KFD see them; `None` before the first such process.
    pub devices: Option<Devices>,
    /// How it is captured.
    pub backend: Backend,
    /// What tracer does with calls of API functions.
    pub api: Api,
    /// What the trace will lack and why, one sentence each.
    pub warnings: Vec<String>,
    /// ns that a hit of a probe costs here by itself, by the kind of its instruction; measured after the probes were removed from
    /// use, with a program that only counts. Empty before, and where it cannot be measured.
    pub hit_ns: BTreeMap<String, u64>,
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
                self.warn(format!("cannot trace {}: {error}", probe.target));
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
        self.past
            .unused
            .retain(|(device, inode)| (device, inode) != (&library.device, &library.inode));
        if !self.libraries.iter().any(same) {
            self.libraries.push(library);
        }
    }

    /// Notes that a library has no probes any more, because no process uses its file. Only the last such libraries stay listed.
    pub fn release(&mut self, device: &str, inode: u64, time_ns: u64) {
        let is_it = |library: &&Library| (library.device.as_str(), library.inode) == (device, inode);
        let Some(library) = self.libraries.iter().rfind(is_it) else {
            return;
        };
        let probes = self.probes.iter().filter(|probe| probe.target == library.path);
        let (attached, missing): (Vec<&Probe>, Vec<&Probe>) = probes.partition(|probe| probe.attached());
        self.past.released.push(tables::Library {
            time_ns,
            path: library.path.clone(),
            device: library.device.clone(),
            inode,
            build_id: library.build_id.clone(),
            soname: library.soname.clone(),
            first_pid: library.first_pid,
            probes: u32::try_from(attached.len()).unwrap_or(u32::MAX),
            missing: u32::try_from(missing.len()).unwrap_or(u32::MAX),
        });
        self.past.unused.push_back((device.to_owned(), inode));
        if self.past.unused.len() > MAX_UNUSED
            && let Some((device, inode)) = self.past.unused.pop_front()
        {
            self.unlist(&device, inode);
        }
    }

    /// Forgets an unused library and its probes, except what the capabilities of the whole recording depend on.
    fn unlist(&mut self, device: &str, inode: u64) {
        let is_it = |library: &mut Library| (library.device.as_str(), library.inode) == (device, inode);
        let forgotten: Vec<Library> = self.libraries.extract_if(.., is_it).collect();
        for library in forgotten {
            let of_it = self.probes.iter().filter(|probe| probe.target == library.path);
            for probe in of_it.clone() {
                let families = if probe.attached() {
                    &mut self.past.had
                } else {
                    &mut self.past.failed
                };
                families.insert(probe.family);
            }
            if !library.client {
                let lacks = |family: &Family| !of_it.clone().any(|probe| probe.family == *family && probe.is_sure());
                self.past.uncovered.extend(OF_RUNTIMES.into_iter().filter(lacks));
                let is_doorbell = |probe: &Probe| probe.family == Family::Doorbell && probe.attached();
                self.past.without_doorbells |= !of_it.clone().any(is_doorbell);
                self.past.runtimes += 1;
                self.past.thunk |= library.thunk;
            }
            // Files of other containers have the same path.
            if !self.libraries.iter().any(|other| other.path == library.path) {
                let failed = self.probes.iter().filter(|probe| !probe.attached()).count();
                self.probes
                    .retain(|probe| probe.target != library.path || !probe.attached() && failed <= MAX_FAILED);
            }
        }
    }

    /// Takes the rows of the libraries that were released since the last call.
    pub fn take_released(&mut self) -> Vec<tables::Library> {
        mem::take(&mut self.past.released)
    }

    /// Adds a warning, unless it is listed, or too many are.
    pub fn warn(&mut self, warning: String) {
        if self.warnings.contains(&warning) || self.warnings.len() > MAX_WARNINGS {
            return;
        }
        self.warnings.push(if self.warnings.len() == MAX_WARNINGS {
            "further warnings are not listed".to_owned()
        } else {
            warning
        });
    }

    /// Adds the probes of a library that are not listed yet. Each probe that could not be attached counts as a loss; the first one
    /// becomes a warning.
    pub fn add_of_library(&mut self, path: &str, probes: &mut Vec<Probe>) {
        let failed = probes.iter().filter(|probe| !probe.attached());
        if let Some(first) = failed.clone().next() {
            let (missing, all) = (failed.clone().count(), probes.len());
            self.warn(format!("{path}: {missing} of {all} probes are missing: {first}"));
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
            // Processes can have different lists of products.
            let has_room = all.gpus.len() < MAX_GPUS;
            match all.gpus.iter_mut().find(|known| known.is_same(&gpu)) {
                Some(known) => known.product = known.product.take().or(gpu.product),
                None if has_room => all.gpus.push(gpu),
                None => {}
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

    /// Returns whether any probe of the family is attached, or was.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.past.had.contains(&family)
            || self
                .probes
                .iter()
                .any(|probe| probe.family == family && probe.attached())
    }

    /// Returns whether a probe of the family could not be attached.
    #[must_use]
    pub fn lacks(&self, family: Family) -> bool {
        self.past.failed.contains(&family)
            || self
                .probes
                .iter()
                .any(|probe| probe.family == family && !probe.attached())
    }

    /// Returns whether an HSA runtime was found.
    #[must_use]
    pub fn has_runtime(&self) -> bool {
        self.past.runtimes > 0 || self.libraries.iter().any(|library| !library.client)
    }

    /// Returns whether doorbell functions of a runtime can call a driver function instead of storing.
    #[must_use]
    pub fn may_hand_over(&self) -> bool {
        self.past.thunk || self.libraries.iter().any(|library| library.thunk)
    }

    /// Returns whether each runtime that was found has a probe of the family that sees everything.
    #[must_use]
    pub fn covers_runtimes(&self, family: Family) -> bool {
        !self.past.uncovered.contains(&family) && self.all_runtimes_have(family, Probe::is_sure)
    }

    /// Returns whether each runtime that was found has a doorbell probe.
    #[must_use]
    pub fn runtimes_have_doorbells(&self) -> bool {
        !self.past.without_doorbells && self.all_runtimes_have(Family::Doorbell, Probe::attached)
    }

    fn all_runtimes_have(&self, family: Family, is_so: fn(&Probe) -> bool) -> bool {
        // There may be hundreds of copies of a runtime, each with its probes.
        let probes = self
            .probes
            .iter()
            .filter(|probe| probe.family == family && is_so(probe));
        let paths: BTreeSet<&str> = probes.map(|probe| probe.target.as_str()).collect();
        let mut runtimes = self.libraries.iter().filter(|library| !library.client);
        runtimes.all(|library| paths.contains(library.path.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::devices::Gpu;

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

    #[test]
    fn processes_with_different_lists_of_products_have_the_same_gpus() {
        let gpu = |gpu_id, gfx: &str, product: Option<&str>| Gpu {
            gpu_id,
            node: 1,
            gfx_target_version: 90402,
            gfx: gfx.to_owned(),
            scheduler: "hws",
            scheduler_evidence: String::new(),
            drm_render_minor: None,
            compute_units: None,
            compute_queues: None,
            product: product.map(str::to_owned),
        };
        let mut inventory = Inventory::default();
        let seen = [
            gpu(1, "gfx942", None),
            gpu(1, "gfx942", Some("first")),
            gpu(1, "gfx942", Some("second")),
            gpu(1, "gfx1100", None),
        ];
        for gpu in seen {
            let gpus = vec![gpu];
            inventory.add_devices(Devices {
                gpus,
                ..Devices::default()
            });
        }
        let all = inventory.devices.unwrap().gpus;
        assert_eq!(all, [gpu(1, "gfx942", Some("first")), gpu(1, "gfx1100", None)]);
    }

    fn library(inode: u64, path: &str) -> Library {
        Library {
            path: path.to_owned(),
            device: "00:1f".to_owned(),
            inode,
            ..Library::default()
        }
    }

    fn doorbell(path: &str, error: Option<&str>) -> Probe {
        Probe {
            family: Family::Doorbell,
            target: path.to_owned(),
            error: error.map(str::to_owned),
            ..Probe::default()
        }
    }

    /// Containers come and go for days: what is listed stays bounded, each library has its row, and what was missing stays known.
    #[test]
    fn libraries_that_are_gone_are_not_kept() {
        let mut inventory = Inventory::default();
        let mut rows = Vec::new();
        for inode in 0..10_000 {
            let path = format!("/containers/{inode}/runtime");
            inventory.add_of_library(&path, &mut vec![doorbell(&path, None)]);
            inventory.add_library(library(inode, &path));
            inventory.release("00:1f", inode, inode);
            rows.append(&mut inventory.take_released());
            assert!(inventory.libraries.len() <= MAX_UNUSED && inventory.probes.len() <= MAX_UNUSED);
        }
        assert_eq!(rows.len(), 10_000);
        assert!(rows.iter().all(|row| (row.probes, row.missing) == (1, 0)));
        assert!(inventory.has(Family::Doorbell) && inventory.has_runtime());
        assert!(inventory.covers_runtimes(Family::Doorbell) && !inventory.covers_runtimes(Family::Sdma));
    }

    #[test]
    fn a_missing_probe_of_a_library_that_is_gone_stays_known() {
        let mut inventory = Inventory::default();
        inventory.add_of_library("/bad", &mut vec![doorbell("/bad", Some("no room"))]);
        inventory.add_library(library(0, "/bad"));
        inventory.release("00:1f", 0, 0);
        for inode in 1..1000 {
            // The same path in each container.
            inventory.add_of_library("/lib", &mut vec![doorbell("/lib", None)]);
            inventory.add_library(library(inode, "/lib"));
            inventory.release("00:1f", inode, inode);
        }
        assert!(!inventory.libraries.iter().any(|library| library.path == "/bad"));
        assert!(!inventory.covers_runtimes(Family::Doorbell) && !inventory.runtimes_have_doorbells());
        assert!(inventory.probes.iter().any(|probe| !probe.attached()));
        assert_eq!(inventory.probes.len(), 2);
    }

    #[test]
    fn a_library_that_comes_again_is_in_use() {
        let mut inventory = Inventory::default();
        for inode in 0..MAX_UNUSED as u64 {
            inventory.add_library(library(inode, "/lib"));
            inventory.release("00:1f", inode, 1);
        }
        inventory.add_library(library(0, "/lib"));
        inventory.add_library(library(1000, "/lib"));
        inventory.release("00:1f", 1000, 2);
        assert!(inventory.libraries.iter().any(|library| library.inode == 0));
        assert_eq!(inventory.libraries.len(), MAX_UNUSED + 1);
    }

    #[test]
    fn warnings_are_bounded_and_not_repeated() {
        let mut inventory = Inventory::default();
        for number in 0..5000 {
            inventory.warn(format!("warning {}", number % 3));
            inventory.warn(format!("warning {number}"));
        }
        assert_eq!(inventory.warnings.len(), MAX_WARNINGS + 1);
    }
}
