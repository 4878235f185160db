//! The rules that need little evidence: what passes, what fails and what is inconclusive.

use super::support::*;
use crate::losses::TOPOLOGY_UNREAD;
use crate::tables::Fact;
use crate::verify::{Context, Ended, Outcome, Scheduler};

#[test]
fn a_sound_trace_of_doorbells_passes() {
    let verdict = judge(&built_in("mes-bypass"), context(), &good(3));
    let names = [
        "sound-capture",
        "dispatches",
        "command",
        "scheduler",
        "coverage",
        "no-ring",
        "no-syscall",
    ];
    assert_eq!(outcomes(&verdict), names.map(|name| (name, Outcome::Pass)));
    assert_eq!(verdict.outcome, Outcome::Pass);
}

#[test]
fn of_nothing_known_nothing_passes() {
    let verdict = judge(&built_in("mes-bypass"), Context::default(), &[]);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    let passed: Vec<_> = outcomes(&verdict)
        .into_iter()
        .filter(|(_, of)| *of == Outcome::Pass)
        .collect();
    assert_eq!(passed, [("command", Outcome::Pass)], "there was no command");
}

#[test]
fn a_run_without_dispatches_never_passes() {
    for name in ["mes-bypass", "doorbell-bypass", "hws", "ring-submission"] {
        let verdict = judge(&built_in(name), context(), &good(0));
        assert!(verdict.outcome >= Outcome::Inconclusive, "{verdict:?}");
    }
    assert_eq!(rule("dispatches", context(), &good(0)).outcome, Outcome::Inconclusive);
}

#[test]
fn another_scheduler_fails_and_an_unknown_one_does_not() {
    let with = |change: fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        rule("scheduler", context, &good(1))
    };
    let other = with(|c| c.devices[0].scheduler = Some(Scheduler::Hws));
    assert_eq!((other.outcome, other.offenders[0].gpu_id), (Outcome::Fail, Some(5)));
    // Two containers show different GPUs under one id, and the queue may be on either.
    let shared = with(|c| {
        let mut other = c.devices[0].clone();
        other.scheduler = Some(Scheduler::Hws);
        c.devices.push(other);
    });
    assert_eq!((shared.outcome, shared.offenders.len()), (Outcome::Inconclusive, 2));
    let open: [fn(&mut Context); 6] = [
        |c| c.losses = [(TOPOLOGY_UNREAD.to_owned(), 1)].into(),
        |c| c.devices[0].scheduler = None,
        |c| c.devices[0].evidence.clear(),
        |c| c.devices[0].gfx_target_version = 90_402,
        |c| c.devices.clear(),
        |c| c.devices[0].gpu_id = 6,
    ];
    for change in open {
        assert_eq!(with(change).outcome, Outcome::Inconclusive);
    }
    // Another GPU that is not in use does not matter.
    let unused = with(|c| {
        let mut other = c.devices[0].clone();
        (other.gpu_id, other.scheduler) = (9, Some(Scheduler::Hws));
        c.devices.push(other);
    });
    assert_eq!(unused.outcome, Outcome::Pass);
}

#[test]
fn an_ioctl_of_the_thread_between_reserve_and_doorbell_fails() {
    let with = |fact: Fact| {
        let mut facts = good(3);
        facts.insert(1, fact);
        rule("no-syscall", context(), &facts)
    };
    // The dispatch at index 0 is reserved at 1950 and rung at 2000.
    let between = with(ioctl(1_960, 8));
    assert_eq!(between.outcome, Outcome::Fail);
    let offender = &between.offenders[0];
    assert_eq!(
        (offender.queue, offender.index, offender.tid),
        (Some(0), Some(0), Some(8))
    );
    assert_eq!(offender.what, "SVM 10 ns after the reserve of a dispatch");
    assert_eq!(with(ioctl(1_960, 9)).outcome, Outcome::Pass, "another thread's");
    assert_eq!(with(ioctl(1_900, 8)).outcome, Outcome::Pass, "before the reserve");
}

#[test]
fn an_unknown_reserve_leaves_open_whether_there_was_an_ioctl() {
    let mut facts = good(3);
    let Some(Fact::Dispatch(last)) = facts.last_mut() else {
        panic!()
    };
    last.reserve_ns = None;
    assert_eq!(rule("no-syscall", context(), &facts).outcome, Outcome::Inconclusive);
    let policy = crate::verify::Policy::parse("name = 'seen'\n[rules]\nno-syscall = 'seen'").unwrap();
    let seen = pick("no-syscall", judge(&policy, context(), &facts));
    assert_eq!(seen.outcome, Outcome::Pass);
    assert_eq!(seen.notes, ["not judged: 1 dispatch with unknown reserve"]);
    assert_eq!(seen.counts["dispatches_undecided"], Some(1));
    // If no reserve is known at all, the rule is inconclusive under every scope.
    facts.iter_mut().for_each(|fact| {
        if let Fact::Dispatch(dispatch) = fact {
            dispatch.reserve_ns = None;
        }
    });
    assert_eq!(
        pick("no-syscall", judge(&policy, context(), &facts)).outcome,
        Outcome::Inconclusive
    );
}

/// Thread 8 rings index 2 at 2200. The index was not reserved at 2150, and no probe saw when it was reserved.
#[test]
fn without_an_ioctl_since_before_the_reserve_the_reserve_need_not_be_known() {
    let with = |capability: bool, fact: Option<Fact>| {
        let mut facts = good(3);
        let Some(Fact::Dispatch(last)) = facts.last_mut() else {
            panic!()
        };
        (last.reserve_ns, last.unreserved_ns) = (None, Some(2_150));
        facts.splice(facts.len() - 1..facts.len() - 1, fact);
        let mut context = context();
        context.capabilities.reserves = capability;
        rule("no-syscall", context, &facts)
    };
    assert_eq!(with(true, None).outcome, Outcome::Pass);
    assert_eq!(
        with(false, None).outcome,
        Outcome::Pass,
        "no reserve probe is needed then"
    );
    assert_eq!(with(true, Some(ioctl(2_150, 9))).outcome, Outcome::Pass);
    // Any thread may have made the reserve.
    let open = with(true, Some(ioctl(2_151, 9)));
    assert_eq!(
        (open.outcome, open.offenders[0].index),
        (Outcome::Inconclusive, Some(2))
    );
    assert!(open.missing.is_empty());
    assert_eq!(with(false, Some(ioctl(2_151, 9))).missing[0].source, "reserve probes");
}

#[test]
fn a_command_that_fails_is_its_own_rule() {
    for (ended, outcome) in [
        (Some(Ended::Code(0)), Outcome::Pass),
        (Some(Ended::Code(3)), Outcome::Fail),
        (Some(Ended::Signal(11)), Outcome::Fail),
        (Some(Ended::Unknown), Outcome::Inconclusive),
        (None, Outcome::Pass),
    ] {
        let context = Context {
            command: ended,
            ..context()
        };
        assert_eq!(rule("command", context, &good(1)).outcome, outcome, "{ended:?}");
    }
}

#[test]
fn the_worst_rule_decides() {
    let fails = Context {
        command: Some(Ended::Code(1)),
        complete: false,
        ..context()
    };
    assert_eq!(judge(&built_in("mes-bypass"), fails, &good(1)).outcome, Outcome::Fail);
    let open = Context {
        complete: false,
        ..context()
    };
    assert_eq!(
        judge(&built_in("mes-bypass"), open, &good(1)).outcome,
        Outcome::Inconclusive
    );
}

#[test]
fn without_a_dispatch_the_reason_is_the_one_that_is_known() {
    let with = |facts: &[Fact], change: fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        let found = rule("dispatches", context, facts);
        assert_eq!(found.outcome, Outcome::Inconclusive, "{}", found.sentence);
        (found.sentence, found.counts["dispatches"])
    };
    let sentence = |facts: &[Fact], change| with(facts, change).0;
    let kfd = [ioctl(1_900, 8)];
    let idle = [ioctl(1_900, 8), Fact::Queue(queue(0))];
    assert!(sentence(&[], |_| ()).starts_with("no process made an ioctl of /dev/kfd"));
    assert!(sentence(&kfd, |_| ()).starts_with("no process created a queue"));
    assert!(sentence(&idle, |_| ()).starts_with("no kernel was dispatched"));
    // Without a runtime there are no doorbell probes; the reason is the same.
    let none = with(&[], |context| {
        context.libraries.clear();
        context.capabilities = crate::summary::Capabilities {
            ioctls: true,
            ..Default::default()
        };
    });
    assert!(
        none.0.starts_with("no process made an ioctl of /dev/kfd") && none.1.is_none(),
        "{none:?}"
    );
    let blind = sentence(&[], |context| {
        context.libraries.clear();
        context.capabilities = Default::default();
    });
    assert!(blind.starts_with("doorbells were not watched"), "{blind}");
    let lossy = sentence(&[], |context| context.losses = [("missed-ioctl".to_owned(), 1)].into());
    assert!(lossy.starts_with("no kernel was dispatched"), "{lossy}");
    // A damaged table proves no absence.
    let damaged = with(&[], |context| {
        context.unread = [crate::tables::Table::Dispatches].into();
    });
    assert!(damaged.0.contains("damaged") && damaged.1.is_none(), "{damaged:?}");
}
