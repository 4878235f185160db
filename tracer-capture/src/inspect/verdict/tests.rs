use super::*;
use crate::inspect::{Cost, Driver, Event, Events, Kind, Program, Programs, Rights, Site};
use crate::runtime::resolver::{Confidence, ResolverStep};

/// A machine on which everything works.
fn good() -> Inspection {
    let program = |name: &str| Program {
        name: name.to_owned(),
        verified_instructions: None,
        error: None,
    };
    let event = |family| Event {
        family,
        event: format!("group:{family}"),
        error: None,
    };
    Inspection {
        programs: Programs {
            programs: ["doorbell", "reserve", "runtime_init", "sdma_doorbell"]
                .map(program)
                .into(),
            events: [Family::Ioctl, Family::Process, Family::Mapping, Family::Ring]
                .map(event)
                .into(),
            ..Programs::default()
        },
        driver: Driver {
            state: State::Loaded,
            events: Events {
                set: Some("new"),
                names: vec!["a", "b", "c"],
                ..Events::default()
            },
            ..Driver::default()
        },
        libraries: vec![library("/lib/a.so")],
        uprobe_cost: Cost {
            kinds: vec![Kind {
                instruction: "push",
                emulated: true,
                ns: Some(800),
                error: None,
            }],
            ..Cost::default()
        },
        ..Inspection::default()
    }
}

fn library(path: &str) -> Library {
    Library {
        path: path.to_owned(),
        recognised: true,
        doorbells: vec![site()],
        sdma: vec![site()],
        reserves: vec![site()],
        ..Library::default()
    }
}

#[test]
fn where_all_works_all_is_captured() {
    let verdict = good().verdict();
    assert!(verdict.is_whole());
    for (name, capture) in verdict.all() {
        assert_eq!((capture.captured, &capture.fix), (Answer::Yes, &None), "{name}");
    }
}

#[test]
fn without_rights_nothing_is_and_sudo_helps() {
    let mut inspection = good();
    inspection.rights = Rights {
        euid: 1000,
        ..Rights::default()
    };
    inspection.programs = Programs {
        error: Some("refused".to_owned()),
        not_permitted: true,
        ..Programs::default()
    };
    for (name, capture) in inspection.verdict().all() {
        assert_eq!(capture.captured, Answer::No, "{name}");
        assert!(capture.fix.as_ref().unwrap().contains("sudo"), "{name}");
    }
    // Root without capabilities is in a container: sudo would not help.
    inspection.rights.euid = 0;
    assert!(!inspection.verdict().rings.fix.unwrap().contains("sudo"));
}

#[test]
fn in_a_pid_namespace_nothing_is() {
    let mut inspection = good();
    inspection.rights.own_pid_namespace = true;
    for (name, capture) in inspection.verdict().all() {
        assert_eq!(capture.captured, Answer::No, "{name}");
        assert_eq!(
            capture.fix.as_deref(),
            Some(crate::target::pid_namespace::FIX),
            "{name}"
        );
    }
}

#[test]
fn one_refused_program_stops_a_recording() {
    let mut inspection = good();
    inspection.programs.programs[1].error = Some("too complex".to_owned());
    let verdict = inspection.verdict();
    assert_eq!(verdict.doorbells.captured, Answer::No);
    assert_eq!(verdict.ioctls.reason, "too complex");
}

#[test]
fn rings_need_the_driver_and_the_fix_fits_its_state() {
    let mut inspection = good();
    inspection.driver.events = Events {
        error: Some("no events".to_owned()),
        ..Events::default()
    };
    for (state, word) in [
        (State::NotLoaded, "modprobe amdgpu"),
        (State::NotInstalled, "install"),
        (State::NoModules, "boot a kernel"),
        (State::Loaded, "doctor --json"),
    ] {
        inspection.driver.state = state;
        let verdict = inspection.verdict();
        assert_eq!(verdict.doorbells.captured, Answer::Yes);
        assert_eq!(verdict.rings.captured, Answer::No);
        assert!(verdict.rings.fix.as_ref().unwrap().contains(word), "{verdict:?}");
        assert!(!verdict.is_whole());
    }
}

#[test]
fn events_of_another_drivers_scheduler_may_not_be_of_amdgpu() {
    let mut inspection = good();
    inspection.driver.state = State::NotLoaded;
    assert_eq!(inspection.verdict().rings.captured, Answer::Unknown);
}

#[test]
fn without_a_library_nothing_is_known_of_doorbells() {
    let mut inspection = good();
    inspection.libraries.clear();
    let verdict = inspection.verdict();
    assert_eq!(verdict.doorbells.captured, Answer::Unknown);
    assert_eq!(verdict.rings.captured, Answer::Yes);
    assert!(!verdict.is_whole());
    assert!(verdict.doorbells.fix.unwrap().contains("--library"));
}

#[test]
fn one_library_without_sites_makes_it_no() {
    let mut inspection = good();
    let mut other = library("/lib/b.so");
    other.doorbells.clear();
    other.notes.push("no vtable".to_owned());
    inspection.libraries.push(other);
    let verdict = inspection.verdict();
    assert_eq!(verdict.doorbells.captured, Answer::No);
    assert!(verdict.doorbells.reason.contains("/lib/b.so") && verdict.doorbells.reason.contains("no vtable"));
    assert_eq!(verdict.sdma.captured, Answer::Yes);
}

#[test]
fn uprobes_that_see_nothing_are_no_uprobes() {
    let mut inspection = good();
    inspection.uprobe_cost.kinds[0].ns = None;
    inspection.uprobe_cost.kinds[0].error = Some("the probe saw 0 of 20000 calls".to_owned());
    let verdict = inspection.verdict();
    assert_eq!(verdict.doorbells.captured, Answer::No);
    assert!(verdict.doorbells.reason.contains("saw 0 of 20000"));
    assert_eq!(verdict.ioctls.captured, Answer::Yes);
}

#[test]
fn a_simulated_gpu_has_no_driver_to_mend() {
    let mut inspection = good();
    inspection.gpus.simulated = Some("kfd-sim".to_owned());
    inspection.driver.events.error = Some("no events".to_owned());
    let rings = inspection.verdict().rings;
    assert_eq!((rings.captured, rings.fix), (Answer::No, None));
    assert!(rings.reason.contains("simulated"));
}

fn site() -> Site {
    Site {
        role: String::new(),
        step: ResolverStep::VtableShape,
        confidence: Confidence::Medium,
        function: 0,
        address: 0,
        file_offset: 0,
        instruction: String::new(),
        emulated: true,
        ns: None,
        details: Vec::new(),
    }
}
