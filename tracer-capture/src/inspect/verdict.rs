//! What `record` would capture, and why not more: conclusions from an inspection, without further reads.

use serde::Serialize;

use super::{Inspection, Library, driver::State};
use crate::target::pid_namespace;
use tracer_core::family::Family;

/// Whether something would be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It would be captured.
    Yes,
    /// It would not be captured.
    No,
    /// It depends on something that was not found here: a library that the command brings along.
    Unknown,
}

/// The verdict on one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capture {
    /// Whether it would be captured.
    pub captured: Answer,
    /// The reason: a sentence without a full stop.
    pub reason: String,
    /// What to do about it, with the command; `None` if nothing is wrong, or nothing helps.
    pub fix: Option<String>,
}

/// What `record` would capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Stores to AQL doorbells.
    pub doorbells: Capture,
    /// The packets that they publish.
    pub packets: Capture,
    /// Advances of write indexes (`--detail full`, or `--api` except `stats`).
    pub reserves: Capture,
    /// Stores to SDMA doorbells.
    pub sdma: Capture,
    /// Ioctls of /dev/kfd and /dev/dri.
    pub ioctls: Capture,
    /// Jobs on rings of the kernel driver.
    pub rings: Capture,
}

impl Verdict {
    /// Returns whether both paths of a submission would be captured.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.doorbells.captured == Answer::Yes && self.rings.captured == Answer::Yes
    }

    /// Returns each kind of thing with its name in the JSON, in order.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &Capture); 6] {
        [
            ("doorbells", &self.doorbells),
            ("packets", &self.packets),
            ("reserves", &self.reserves),
            ("sdma", &self.sdma),
            ("ioctls", &self.ioctls),
            ("rings", &self.rings),
        ]
    }
}

impl Inspection {
    /// Draws the conclusions.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let blocked = self.blocked();
        let unless_blocked = |capture: Capture| blocked.clone().unwrap_or(capture);
        let mut doorbells = unless_blocked(self.in_libraries("doorbells", &["doorbell"], |l| l.doorbells.len()));
        if self.libraries.iter().any(|l| !l.last_resort.is_empty()) {
            doorbells.reason += "; those that a program rings by hsa_signal_store_* would be seen, as a last resort";
        }
        let mut packets = doorbells.clone();
        if packets.captured == Answer::Yes {
            "the program that sees a doorbell copies its packets".clone_into(&mut packets.reason);
        }
        let reserves = self.in_libraries("reserve functions", &["reserve", "runtime_init"], |l| l.reserves.len());
        let mut reserves = unless_blocked(reserves);
        if reserves.captured == Answer::Yes {
            reserves.reason += "; only with --detail full, or with --api other than stats";
        }
        Verdict {
            doorbells,
            packets,
            reserves,
            sdma: unless_blocked(self.in_libraries("SDMA doorbells", &["sdma_doorbell"], |l| l.sdma.len())),
            ioctls: unless_blocked(self.ioctls()),
            rings: unless_blocked(self.rings()),
        }
    }

    /// Returns the verdict if nothing at all can be recorded.
    fn blocked(&self) -> Option<Capture> {
        if self.rights.own_pid_namespace {
            return Some(no(pid_namespace::REASON, Some(pid_namespace::FIX)));
        }
        // The families that `record` needs: without them it does not begin, or misses its processes.
        let needed = [Family::Process, Family::Mapping].map(|family| self.programs.unattached(family));
        // `record` fails at the first program that is refused, whichever it is.
        let refused = self.programs.programs.iter().find_map(|p| p.error.clone());
        let error = self.programs.error.clone().or(refused);
        let reason = error.or_else(|| needed.into_iter().flatten().next())?;
        Some(no(reason, self.fix_of_loading().as_deref()))
    }

    fn fix_of_loading(&self) -> Option<String> {
        let missing = self.programs.features.missing().join(", ");
        let fix = if self.programs.not_permitted && self.rights.euid != 0 {
            "run it as root: sudo tracer doctor, and sudo tracer record"
        } else if self.programs.not_permitted {
            "root lacks capabilities here, as in a container: docker run --privileged --pid=host, \
             or run tracer on the host"
        } else if self.kernel.lockdown.as_deref() == Some("confidentiality") {
            "boot without lockdown=confidentiality, which prevents eBPF programs from reading memory"
        } else if !missing.is_empty() {
            return Some(format!("run Linux 5.17 or later: this kernel lacks {missing}"));
        } else if !self.kernel.btf {
            "run a kernel with CONFIG_DEBUG_INFO_BTF=y, such as the kernel of a distribution"
        } else {
            return None;
        };
        Some(fix.to_owned())
    }

    fn in_libraries(&self, what: &str, programs: &[&str], count: impl Fn(&Library) -> usize) -> Capture {
        if let Some(error) = programs.iter().find_map(|program| self.programs.refused(program)) {
            return no(error, None);
        }
        if !self.uprobe_cost.works() {
            let kinds = self.uprobe_cost.kinds.iter().find_map(|k| k.error.clone());
            let error = self.uprobe_cost.error.clone().or(kinds).unwrap_or_default();
            let fix = (!self.kernel.uprobes).then_some("run a kernel with CONFIG_UPROBE_EVENTS=y");
            return no(format!("uprobes do not work here: {error}"), fix);
        }
        let Some(first) = self.libraries.first() else {
            let fix = "install one (apt install libhsa-runtime64-1), or name that of your program: \
                       sudo tracer doctor --library FILE";
            let reason = format!("no HSA runtime was found, so its {what} are unknown");
            return capture(Answer::Unknown, reason, Some(fix));
        };
        let is_lacking = |l: &&Library| count(l) == 0 || !l.recognised;
        let lacking: Vec<&Library> = self.libraries.iter().filter(is_lacking).collect();
        if let Some(library) = lacking.first() {
            let why = match &library.error {
                Some(error) => error.clone(),
                None if !library.recognised => format!("{} does not name hsa_init among its strings", library.path),
                None => format!("no {what} were found in {}: {}", library.path, library.notes.join("; ")),
            };
            let more = self.libraries.len() > lacking.len();
            let fix = "if your program uses another one, name it: sudo tracer doctor --library FILE";
            return no(why, more.then_some(fix));
        }
        let sites: usize = self.libraries.iter().map(&count).sum();
        let where_ = match self.libraries.len() {
            1 => first.path.clone(),
            n => format!("{n} libraries"),
        };
        yes(format!(
            "{sites} {} in {where_}",
            if sites == 1 { "site" } else { "sites" }
        ))
    }

    fn ioctls(&self) -> Capture {
        match self.programs.unattached(Family::Ioctl) {
            None => yes("the trace events of the system call ioctl are attached"),
            Some(error) => no(error, Some("run a kernel with CONFIG_FTRACE_SYSCALLS=y")),
        }
    }

    fn rings(&self) -> Capture {
        let driver = &self.driver;
        let release = &self.kernel.release;
        let load = "load it before recording: sudo modprobe amdgpu";
        if let Some(error) = &driver.events.error {
            let (reason, fix) = match driver.state {
                State::NotLoaded => (
                    "amdgpu is not loaded, and rings of a driver that is loaded later are not watched".to_owned(),
                    Some(load),
                ),
                State::NotInstalled => (
                    format!("amdgpu is not loaded, and not installed for kernel {release}: {error}"),
                    Some(
                        "install the driver (apt install linux-image-amd64, on Ubuntu linux-modules-extra-$(uname -r), \
                         or amdgpu-dkms), then sudo modprobe amdgpu",
                    ),
                ),
                State::NoModules => (
                    format!("this kernel has no DRM scheduler and loads no modules: {error}"),
                    Some("boot a kernel that has amdgpu (apt install linux-image-amd64), then sudo modprobe amdgpu"),
                ),
                State::Loaded if self.gpus.simulated.is_some() => {
                    (format!("the GPU is simulated, without a kernel driver: {error}"), None)
                }
                State::Loaded => (
                    format!("amdgpu is loaded, but its scheduler's events can't be used: {error}"),
                    Some("send the output of: sudo tracer doctor --json"),
                ),
            };
            return no(reason, fix);
        }
        match self.programs.unattached(Family::Ring) {
            // The scheduler is present for another driver. amdgpu will use the same one, unless it is a DKMS build.
            None if driver.state != State::Loaded => capture(
                Answer::Unknown,
                "the DRM scheduler has its events, but amdgpu is not loaded and may use a scheduler of its own",
                Some(load),
            ),
            None => yes(format!("the events {} are attached", driver.events.names.join(", "))),
            Some(error) => no(error, None),
        }
    }
}

fn capture(captured: Answer, reason: impl Into<String>, fix: Option<&str>) -> Capture {
    Capture {
        captured,
        reason: reason.into(),
        fix: fix.map(str::to_owned),
    }
}

fn yes(reason: impl Into<String>) -> Capture {
    capture(Answer::Yes, reason, None)
}

fn no(reason: impl Into<String>, fix: Option<&str>) -> Capture {
    capture(Answer::No, reason, fix)
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
