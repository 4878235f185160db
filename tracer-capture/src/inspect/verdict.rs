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
        let mut doorbells = self.in_libraries("doorbells", &["doorbell"], |l| l.doorbells.len());
        if self.libraries.iter().any(|l| !l.last_resort.is_empty()) {
            doorbells.reason += "; those that a program rings by hsa_signal_store_* would be seen, as a last resort";
        }
        let mut packets = doorbells.clone();
        if packets.captured == Answer::Yes {
            "the program that sees a doorbell copies its packets".clone_into(&mut packets.reason);
        }
        let mut reserves = self.in_libraries("reserve functions", &["reserve", "runtime_init"], |l| l.reserves.len());
        if reserves.captured == Answer::Yes {
            reserves.reason += "; only with --detail full, or --api hip, hsa or all";
        }
        Verdict {
            doorbells,
            packets,
            reserves,
            sdma: self.in_libraries("SDMA doorbells", &["sdma_doorbell"], |l| l.sdma.len()),
            ioctls: self.ioctls(),
            rings: self.rings(),
        }
    }

    /// Returns the verdict if nothing at all can be recorded.
    fn blocked(&self) -> Option<Capture> {
        if self.rights.own_pid_namespace {
            return Some(no(
                pid_namespace::REASON.to_owned(),
                Some(pid_namespace::FIX.to_owned()),
            ));
        }
        // The families that `record` needs: without them it does not begin, or misses its processes.
        let needed = [Family::Process, Family::Mapping].map(|family| self.programs.unattached(family));
        // `record` fails at the first program that is refused, whichever it is.
        let refused = self.programs.programs.iter().find_map(|p| p.error.clone());
        let error = self.programs.error.clone().or(refused);
        let reason = error.or_else(|| needed.into_iter().flatten().next())?;
        Some(no(reason, self.fix_of_loading()))
    }

    fn fix_of_loading(&self) -> Option<String> {
        if self.programs.not_permitted && self.rights.euid != 0 {
            Some("run it as root: sudo tracer doctor, and sudo tracer record".to_owned())
        } else if self.programs.not_permitted {
            Some(
                "root lacks capabilities here, as in a container: docker run --privileged --pid=host, \
                 or run tracer on the host"
                    .to_owned(),
            )
        } else if self.kernel.lockdown.as_deref() == Some("confidentiality") {
            Some("boot without lockdown=confidentiality, which prevents eBPF programs from reading memory".to_owned())
        } else if !self.programs.features.missing().is_empty() {
            let missing = self.programs.features.missing().join(", ");
            Some(format!("run Linux 5.17 or later: this kernel lacks {missing}"))
        } else if !self.kernel.btf {
            Some("run a kernel with CONFIG_DEBUG_INFO_BTF=y, such as the kernel of a distribution".to_owned())
        } else {
            None
        }
    }

    fn in_libraries(&self, what: &str, programs: &[&str], count: impl Fn(&Library) -> usize) -> Capture {
        if let Some(blocked) = self.blocked() {
            return blocked;
        }
        if let Some(error) = programs.iter().find_map(|program| self.programs.refused(program)) {
            return no(error, None);
        }
        if !self.uprobe_cost.works() {
            let kinds = self.uprobe_cost.kinds.iter().find_map(|k| k.error.clone());
            let error = self.uprobe_cost.error.clone().or(kinds);
            return no(
                format!("uprobes do not work here: {}", error.unwrap_or_default()),
                (!self.kernel.uprobes).then(|| "run a kernel with CONFIG_UPROBE_EVENTS=y".to_owned()),
            );
        }
        let Some(first) = self.libraries.first() else {
            return Capture {
                captured: Answer::Unknown,
                reason: format!("no HSA runtime was found, so its {what} are unknown"),
                fix: Some(
                    "install one (apt install libhsa-runtime64-1), or name that of your program: \
                     sudo tracer doctor --library FILE"
                        .to_owned(),
                ),
            };
        };
        let lacking: Vec<&Library> = self
            .libraries
            .iter()
            .filter(|l| count(l) == 0 || !l.recognised)
            .collect();
        if let Some(library) = lacking.first() {
            let why = match &library.error {
                Some(error) => error.clone(),
                None if !library.recognised => format!("{} does not name hsa_init among its strings", library.path),
                None => format!("no {what} were found in {}: {}", library.path, library.notes.join("; ")),
            };
            let more = self.libraries.len() > lacking.len();
            return no(
                why,
                more.then(|| "if your program uses another one, name it: sudo tracer doctor --library FILE".to_owned()),
            );
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
        if let Some(blocked) = self.blocked() {
            return blocked;
        }
        match self.programs.unattached(Family::Ioctl) {
            None => yes("the trace events of the system call ioctl are attached".to_owned()),
            Some(error) => no(error, Some("run a kernel with CONFIG_FTRACE_SYSCALLS=y".to_owned())),
        }
    }

    fn rings(&self) -> Capture {
        if let Some(blocked) = self.blocked() {
            return blocked;
        }
        let driver = &self.driver;
        if let Some(error) = &driver.events.error {
            return match driver.state {
                State::NotLoaded => no(
                    "amdgpu is not loaded, and rings of a driver that is loaded later are not watched".to_owned(),
                    Some("load it before recording: sudo modprobe amdgpu".to_owned()),
                ),
                State::NotInstalled => no(
                    format!("amdgpu is not loaded, and not installed for kernel {}: {error}", self.kernel.release),
                    Some(
                        "install the driver (apt install linux-image-amd64, on Ubuntu linux-modules-extra-$(uname -r), \
                         or amdgpu-dkms), then sudo modprobe amdgpu"
                            .to_owned(),
                    ),
                ),
                State::NoModules => no(
                    format!("this kernel has no DRM scheduler and loads no modules: {error}"),
                    Some(
                        "boot a kernel that has amdgpu (apt install linux-image-amd64), then sudo modprobe amdgpu"
                            .to_owned(),
                    ),
                ),
                State::Loaded if self.gpus.simulated.is_some() => no(
                    format!("the GPU is simulated, without a kernel driver: {error}"),
                    None,
                ),
                State::Loaded => no(
                    format!("amdgpu is loaded, but its scheduler's events can't be used: {error}"),
                    Some("send the output of: sudo tracer doctor --json".to_owned()),
                ),
            };
        }
        match self.programs.unattached(Family::Ring) {
            // The scheduler is present for another driver. amdgpu will use the same one, unless it is a DKMS build.
            None if driver.state != State::Loaded => Capture {
                captured: Answer::Unknown,
                reason: "the DRM scheduler has its events, but amdgpu is not loaded and may use a scheduler of its own"
                    .to_owned(),
                fix: Some("load it before recording: sudo modprobe amdgpu".to_owned()),
            },
            None => yes(format!("the events {} are attached", driver.events.names.join(", "))),
            Some(error) => no(error, None),
        }
    }
}

fn yes(reason: String) -> Capture {
    Capture {
        captured: Answer::Yes,
        reason,
        fix: None,
    }
}

fn no(reason: String, fix: Option<String>) -> Capture {
    Capture {
        captured: Answer::No,
        reason,
        fix,
    }
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
