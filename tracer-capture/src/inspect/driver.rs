//! The kernel driver: whether it is present, whether its scheduler has events, and which of its functions can be probed.

use std::{fs, path::Path, slice};

use serde::Serialize;

use crate::{
    kernel::kallsyms::{self, Kallsyms, Presence},
    probes::{driver::FUNCTIONS, ring},
};

/// The state of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Loaded.
    Loaded,
    /// Installed for this kernel, but not loaded: `modprobe` loads it.
    NotLoaded,
    /// Not installed for this kernel.
    #[default]
    NotInstalled,
    /// Absent, and this kernel loads no modules.
    NoModules,
}

/// The kernel driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// The state of amdgpu.
    pub state: State,
    /// The driver's modules in /sys/module: loaded, or built in with parameters.
    pub modules: Vec<String>,
    /// The scheduler's events.
    pub events: Events,
    /// Functions of the kernel side of queues, as base names and patterns.
    pub functions: Vec<Function>,
    /// Why the functions are not known; `None` if they are.
    pub functions_error: Option<String>,
}

/// The events of the DRM scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Events {
    /// `new` (Linux 6.17 and backports), `old`, or `None`.
    pub set: Option<&'static str>,
    /// Names of the submit, run and done events.
    pub names: Vec<&'static str>,
    /// Whether they are taken raw, by the structures that BTF describes.
    pub raw: bool,
    /// Why they cannot be used.
    pub error: Option<String>,
}

/// A function, or one of a family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Name in the source, or the pattern that matches no function.
    pub name: String,
    /// Whether it can be probed.
    pub presence: &'static str,
    /// The exact names, as a kprobe takes them.
    pub symbols: Vec<String>,
    /// The module of the first symbol; `None` for the kernel itself, or if the function is absent.
    pub module: Option<String>,
}

/// Examines the modules and functions of this kernel. The events are known only where tracefs is: see [`Events::of`].
#[must_use]
pub fn read(release: &str) -> Driver {
    let modules = super::modules_in(Path::new("/sys/module"));
    let folder = Path::new("/lib/modules").join(release);
    let list = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let kallsyms = Kallsyms::read(&FUNCTIONS);
    Driver {
        state: state(
            modules.iter().any(|m| m == "amdgpu"),
            Path::new("/proc/modules").exists(),
            &[list("modules.dep"), list("modules.builtin")],
        ),
        modules,
        events: Events::default(),
        functions_error: match &kallsyms {
            Ok(all) if all.total() == 0 => Some("the kernel hides its symbols from this process".to_owned()),
            Ok(_) => None,
            Err(error) => Some(format!("/proc/kallsyms can't be read: {error}")),
        },
        functions: kallsyms.as_ref().map(functions).unwrap_or_default(),
    }
}

/// Returns the state, from whether the driver is loaded, whether the kernel takes modules at all, and depmod's lists.
fn state(loaded: bool, takes_modules: bool, lists: &[String]) -> State {
    // Lines are like `kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.xz: ...`, or in updates/dkms.
    let is_driver = |line: &str| {
        let file = line.split(':').next().and_then(|path| path.rsplit('/').next());
        file.is_some_and(|file| file.starts_with("amdgpu.ko"))
    };
    if loaded {
        State::Loaded
    } else if !takes_modules {
        State::NoModules
    } else if lists.iter().any(|list| list.lines().any(is_driver)) {
        State::NotLoaded
    } else {
        State::NotInstalled
    }
}

impl Events {
    /// Describes the events that the ring probes would use.
    pub(crate) fn of(plan: Result<&ring::Plan, String>) -> Self {
        match plan {
            Ok(plan) => Self {
                set: Some(if plan.set.old { "old" } else { "new" }),
                names: plan.set.names.to_vec(),
                raw: plan.raw,
                error: None,
            },
            Err(error) => Self {
                error: Some(error),
                ..Self::default()
            },
        }
    }
}

/// Returns the useful functions among all symbols.
fn functions(kallsyms: &Kallsyms) -> Vec<Function> {
    let mut found = Vec::new();
    for pattern in FUNCTIONS {
        let mut fitting = kallsyms.matching(pattern).peekable();
        if fitting.peek().is_none() {
            found.push(function(pattern, &[]));
        }
        found.extend(fitting.map(|(name, symbols)| function(name, symbols)));
    }
    found
}

fn function(name: &str, symbols: &[kallsyms::Symbol]) -> Function {
    let (presence, probed) = match kallsyms::presence(symbols) {
        Presence::Absent => ("absent", symbols),
        Presence::One(one) => ("present", slice::from_ref(one)),
        Presence::Ambiguous(all) => ("ambiguous", all),
    };
    Function {
        name: name.to_owned(),
        presence,
        symbols: probed.iter().map(|s| s.name.clone()).collect(),
        module: symbols.first().and_then(|s| s.module.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_driver_can_be_loaded() {
        let dep = "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.xz: kernel/drivers/gpu/drm/scheduler/gpu-sched.ko.xz\n";
        let lists = [dep.to_owned(), String::new()];
        assert_eq!(state(false, true, &lists), State::NotLoaded);
        assert_eq!(state(true, true, &lists), State::Loaded);
        assert_eq!(state(false, false, &lists), State::NoModules);
        // A module that only depends on amdgpu.
        let other = ["extra/x.ko: kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko\n".to_owned()];
        assert_eq!(state(false, true, &other), State::NotInstalled);
    }

    #[test]
    fn families_are_listed_one_by_one_and_absent_ones_by_their_pattern() {
        let kallsyms = Kallsyms::parse(
            &FUNCTIONS,
            "ffffffffc0000001 t mes_v11_0_add_hw_queue\t[amdgpu]\n\
             ffffffffc0000002 t mes_v12_0_add_hw_queue\t[amdgpu]\n\
             ffffffffc0000003 t remove_queue_mes_on_reset_option.constprop.0\t[amdgpu]\n\
             ffffffffc0000004 t pm_send_runlist\t[amdgpu]\n\
             ffffffffc0000005 t pm_send_runlist\t[amdgpu]\n",
        );
        let all = functions(&kallsyms);
        let by_name = |name: &str| all.iter().find(|f| f.name == name).unwrap();
        assert_eq!(by_name("mes_v12_0_add_hw_queue").presence, "present");
        assert_eq!(by_name("mes_v*_remove_hw_queue").presence, "absent");
        assert_eq!(by_name("pm_send_runlist").presence, "ambiguous");
        let clone = by_name("remove_queue_mes_on_reset_option");
        assert_eq!(clone.symbols, ["remove_queue_mes_on_reset_option.constprop.0"]);
        assert_eq!(clone.module.as_deref(), Some("amdgpu"));
    }

    #[test]
    fn no_events_are_an_error_of_their_own() {
        let events = Events::of(Err("no such event".to_owned()));
        assert_eq!((events.set, events.error.as_deref()), (None, Some("no such event")));
    }
}
