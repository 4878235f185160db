//! What the kernel accepts: every program is loaded and attached to its trace events as `record` does it. No process is traced in
//! between, so the programs skip every event.

use aya::{Ebpf, EbpfLoader};
use serde::Serialize;

use super::{
    driver::Events,
    features::{self, Features},
};
use crate::{
    CaptureError,
    api_choice::Api,
    cost::Hits,
    kernel::{btf::Btf, ebpf_object::Object, kallsyms::Kallsyms},
    probes::{
        LoadedProgram, Prober, driver, driver_event, ioctl, mapping, multi::Multi, process, raw_programs::Raw, ring,
    },
    session::{self, Loading},
};
use tracer_core::family::Family;

/// What the kernel accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Programs {
    /// Why not even the object could be loaded; `None` if it could. If set, the lists below are empty.
    pub error: Option<String>,
    /// Whether `error` is due to a lack of rights.
    pub not_permitted: bool,
    /// Abilities of the kernel that the programs need.
    pub features: Features,
    /// Every program of the object.
    pub programs: Vec<Program>,
    /// Every trace event, and every function of the driver, that tracer tried to attach to.
    pub events: Vec<Event>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier examined; reported by kernels since 5.16.
    pub verified_instructions: Option<u32>,
    /// Why the kernel refused it, with the end of the verifier's log; `None` if it did not.
    pub error: Option<String>,
}

/// A trace event, or a function of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Family of probes: `ioctl`, `process`, `mapping`, `ring`, `driver_event`, `driver`.
    pub family: Family,
    /// Group and name of the event; for a function, the exact name that a kprobe takes.
    pub event: String,
    /// Why it is not attached; `None` if it is.
    pub error: Option<String>,
}

impl Programs {
    /// Returns why a program is not loaded; `None` if it is.
    #[must_use]
    pub fn refused(&self, name: &str) -> Option<String> {
        match (&self.error, self.programs.iter().find(|p| p.name == name)) {
            (Some(error), _) => Some(error.clone()),
            (None, Some(program)) => program.error.clone(),
            (None, None) => Some(CaptureError::NoObject.to_string()),
        }
    }

    /// Returns why a family's events are not attached; `None` if all are.
    #[must_use]
    pub fn unattached(&self, family: Family) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        let mut events = self.events.iter().filter(|e| e.family == family).peekable();
        if events.peek().is_none() {
            return Some(format!("no event of the family {family} was attached"));
        }
        events.find_map(|e| e.error.as_ref().map(|error| format!("{}: {error}", e.event)))
    }
}

/// Everything that is loaded; dropping it removes it from the kernel.
pub struct Loaded {
    /// The programs and attachments.
    pub prober: Prober,
    /// The counter of the program `cost`.
    pub hits: Option<Hits>,
}

/// Loads and attaches the programs. Must run on a thread that may get a mount namespace of its own.
pub fn load() -> (Programs, Events, Option<Loaded>) {
    if let Err(error) = session::see_tracefs() {
        let events = Events::of(Err(format!("they can't be looked for: {error}")));
        return (failed(&error), events, None);
    }
    let btf = Btf::of_kernel(&ring::MODULES);
    let plan = ring::Plan::read(btf.as_ref());
    let driver_events = driver_event::Plan::read();
    let events = Events::of(plan.as_ref().map_err(no_events));
    let layout = process::Layout::read();
    let tasks = mapping::tasks(btf.as_ref());
    let opened = layout.and_then(|layout| {
        let loading = Loading {
            object: Object::Plain,
            follow: true,
            system: true,
            // With this setting, the verifier has more of the programs to check.
            api: Api::ALL,
            stacks: 1,
            buffer_bytes: None,
            layout: &layout,
            tasks: &tasks,
            rings: plan.as_ref().ok(),
            driver_events: &driver_events,
        };
        loading.open(EbpfLoader::new())
    });
    let (programs, loaded) = match opened {
        Ok(ebpf) => attach(
            ebpf,
            plan.as_ref().ok(),
            &driver_events,
            Raw::new(btf.as_ref(), &tasks.0, false),
        ),
        Err(error) => (failed(&error), None),
    };
    (programs, events, loaded)
}

/// Describes the error. The events are absent for want of a driver, not of a kernel option.
fn no_events(error: &CaptureError) -> String {
    match error {
        CaptureError::NoEvent(event) => format!("there is no trace event {event}"),
        other => other.to_string(),
    }
}

fn failed(error: &CaptureError) -> Programs {
    Programs {
        error: Some(error.to_string()),
        not_permitted: matches!(error, CaptureError::NotPermitted(_)),
        features: features::read(),
        ..Programs::default()
    }
}

fn attach(
    mut ebpf: Ebpf,
    rings: Option<&ring::Plan>,
    driver_events: &driver_event::Plan,
    raw: Raw,
) -> (Programs, Option<Loaded>) {
    let hits = ebpf.take_map("COST_HITS");
    let hits = hits.and_then(|map| Hits::try_from(map).ok());
    let (mut prober, loaded) = Prober::load_each(ebpf, Multi::default());
    // Also attaches the programs that only some kernels need.
    let mut probes = ioctl::attach(&mut prober, true);
    for raw in [raw, raw.other()] {
        probes.extend(process::attach(&mut prober, raw));
    }
    probes.extend(mapping::attach(&mut prober, true));
    probes.extend(rings.map(|plan| plan.attach(&mut prober)).unwrap_or_default());
    probes.extend(driver_events.attach(&mut prober));
    // `Driver` reports the symbols that the kernel hides or does not have.
    if let Ok(symbols) = Kallsyms::read(&driver::FUNCTIONS) {
        probes.extend(driver::attach(&mut prober, &symbols, None).1);
    }
    let event = |probe: crate::inventory::Probe| Event {
        family: probe.family,
        event: probe.target,
        error: probe.error,
    };
    let mut programs: Vec<Program> = loaded.into_iter().map(program).collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    let programs = Programs {
        programs,
        events: probes.into_iter().map(event).collect(),
        features: features::read(),
        ..Programs::default()
    };
    (programs, Some(Loaded { prober, hits }))
}

fn program(loaded: LoadedProgram) -> Program {
    Program {
        name: loaded.name,
        verified_instructions: loaded.verified,
        error: loaded.refused.map(|error| last_words(&error.to_string())),
    }
}

/// Lines of the verifier's log that are kept: the reason is at the end, after thousands of lines of states.
const KEPT: usize = 12;

/// Returns a text's first line, and its last ones.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.split_first() {
        Some((first, rest)) if rest.len() > KEPT => {
            format!("{first}\n...\n{}", rest[rest.len() - KEPT..].join("\n"))
        }
        _ => text.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_log_the_end_is_kept() {
        let log: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let kept = last_words(&log.join("\n"));
        assert!(
            kept.starts_with("line 0\n...\nline 88\n") && kept.ends_with("line 99"),
            "{kept}"
        );
        assert_eq!(last_words("one\ntwo\n"), "one\ntwo");
    }

    #[test]
    fn a_family_is_attached_if_all_of_it_is() {
        let event = |family, error: Option<&str>| Event {
            family,
            event: "group:name".to_owned(),
            error: error.map(str::to_owned),
        };
        let programs = Programs {
            events: vec![
                event(Family::Ioctl, None),
                event(Family::Ioctl, Some("no")),
                event(Family::Process, None),
            ],
            ..Programs::default()
        };
        assert_eq!(programs.unattached(Family::Ioctl).as_deref(), Some("group:name: no"));
        assert_eq!(programs.unattached(Family::Process), None);
        assert!(programs.unattached(Family::Ring).is_some());
        assert!(programs.refused("doorbell").is_some());
    }
}
