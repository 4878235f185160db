//! Dispatches and doorbells that are recorded only as runs: the verdicts of rules on them.

use proptest::prelude::*;

use super::soundness::{any_facts, any_policy};
use super::support::*;
use crate::runs::Runs;
use crate::tables::{DispatchRun, DoorbellRun, Fact, Path, Queue};
use crate::verify::{Outcome, Policy, RuleVerdict};

/// Returns the same trace, recorded while the disk could not keep up with rows from the `at`-th fact on.
fn aggregate(facts: &[Fact], at: usize) -> Vec<Fact> {
    let (mut runs, mut all) = (Runs::new(), facts[..at].to_vec());
    for fact in &facts[at..] {
        if !runs.add(fact, &mut |run| all.push(run)) {
            all.push(fact.clone());
        }
    }
    runs.flush(&mut |run| all.push(run));
    all
}

/// Returns ten dispatches, of which the last seven are one run, and their doorbells, of which the last seven are one run, too.
fn facts() -> Vec<Fact> {
    let all = aggregate(&good(10), 7);
    assert_eq!(all.len(), 9, "{all:?}");
    all
}

/// Returns the run of the dispatches.
fn dispatch_run(facts: &mut [Fact]) -> &mut DispatchRun {
    let run = facts.iter_mut().find_map(|fact| match fact {
        Fact::DispatchRun(run) => Some(run),
        _ => None,
    });
    run.expect("a run of dispatches")
}

fn doorbell_run(facts: &mut [Fact]) -> &mut DoorbellRun {
    let run = facts.iter_mut().find_map(|fact| match fact {
        Fact::DoorbellRun(run) => Some(run),
        _ => None,
    });
    run.expect("a run of doorbells")
}

fn own(name: &str, text: &str, facts: &[Fact]) -> RuleVerdict {
    let policy = Policy::parse(&format!("name = 'own'\n{text}")).unwrap();
    pick(name, judge(&policy, context(), facts))
}

#[test]
fn they_count_as_what_they_are() {
    assert_eq!(rule("dispatches", context(), &facts()).counts["dispatches"], Some(10));
    let only = aggregate(&good(10), 0);
    let found = rule("dispatches", context(), &only);
    assert_eq!(
        (found.outcome, found.counts["dispatches"]),
        (Outcome::Pass, Some(10)),
        "{found:?}"
    );
    let share = own("doorbell-share", "[limits]\nmin-doorbell-share = 1.0", &facts());
    assert_eq!((share.outcome, share.counts["by_doorbell"]), (Outcome::Pass, Some(10)));
    let mut elsewhere = facts();
    dispatch_run(&mut elsewhere).path = Path::Thunk;
    let share = own("doorbell-share", "[limits]\nmin-doorbell-share = 0.5", &elsewhere);
    assert_eq!(
        (share.outcome, share.counts["by_doorbell"]),
        (Outcome::Fail, Some(3)),
        "{share:?}"
    );
    let jobs = pick(
        "ring-submission",
        judge(&built_in("ring-submission"), context(), &facts()),
    );
    assert_eq!(
        (jobs.outcome, jobs.counts["dispatches_otherwise"]),
        (Outcome::Fail, Some(10))
    );
    assert_eq!(jobs.offenders.len(), 4, "three rows and a run");
    assert_eq!(
        (jobs.offenders[3].index, jobs.offenders[3].count, jobs.more_offenders),
        (Some(3), Some(7), 0)
    );
}

#[test]
fn they_are_not_lost_and_a_sound_capture_says_how_many_they_are() {
    let found = rule("sound-capture", context(), &facts());
    assert_eq!((found.outcome, found.counts["losses"]), (Outcome::Pass, Some(0)));
    assert_eq!(found.counts["aggregated"], Some(14));
    assert_eq!(
        found.notes,
        ["aggregated, counted without a row each: 7 dispatches and 7 doorbells"]
    );
}

#[test]
fn coverage_takes_their_indexes() {
    let found = rule("coverage", context(), &facts());
    assert_eq!((found.outcome, found.counts["published"]), (Outcome::Pass, Some(10)));
    for (path, outcome) in [
        (Path::Ring, Outcome::Fail),
        (Path::Thunk, Outcome::Fail),
        (Path::Unseen, Outcome::Inconclusive),
    ] {
        let mut facts = facts();
        dispatch_run(&mut facts).path = path;
        let found = rule("coverage", context(), &facts);
        assert_eq!(found.outcome, outcome, "{path:?}");
        if outcome == Outcome::Fail {
            assert_eq!(found.sentence, "published without a doorbell: 7 packets");
            assert_eq!(found.offenders[0].count, Some(7));
        }
    }
}

/// No doorbell names the last seven, and the GPU took them.
#[test]
fn a_run_that_no_doorbell_names_fails() {
    let mut facts = facts();
    facts.retain(|fact| !matches!(fact, Fact::DoorbellRun(_)));
    dispatch_run(&mut facts).path = Path::Unseen;
    let found = rule("coverage", context(), &facts);
    assert_eq!((found.outcome, found.counts["unseen"]), (Outcome::Fail, Some(7)));
    assert_eq!((found.offenders[0].index, found.offenders[0].count), (Some(3), Some(7)));
}

#[test]
fn runs_that_do_not_add_up_are_gaps() {
    type Change = fn(&mut [Fact]);
    let changes: [(&str, Change); 6] = [
        ("no dispatches", |facts| dispatch_run(facts).count = 0),
        ("one too few", |facts| dispatch_run(facts).first_index += 1),
        ("beyond the queue", |facts| {
            let run = dispatch_run(facts);
            (run.first_index, run.last_index) = (run.first_index + 1, run.last_index + 1);
        }),
        ("doorbells beyond the queue", |facts| {
            let run = doorbell_run(facts);
            (run.first_index, run.last_index) = (run.first_index.map(|n| n + 1), run.last_index.map(|n| n + 1));
        }),
        ("doorbells of nothing", |facts| {
            let run = doorbell_run(facts);
            (run.published, run.first_index, run.last_index) = (0, None, None);
        }),
        ("backwards", |facts| {
            let run = dispatch_run(facts);
            std::mem::swap(&mut run.first_index, &mut run.last_index);
        }),
    ];
    for (name, change) in changes {
        let mut facts = facts();
        change(&mut facts);
        let found = rule("coverage", context(), &facts);
        assert_eq!(found.outcome, Outcome::Inconclusive, "{name}");
        assert_eq!(found.sentence, "the rows of 1 queue have gaps", "{name}");
    }
    for gone in [7, 8] {
        let mut facts = facts();
        facts.remove(gone);
        assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Inconclusive);
    }
}

#[test]
fn doorbells_of_unknown_effect_leave_coverage_open() {
    let changes: [fn(&mut DoorbellRun); 2] = [|run| run.queue = None, |run| run.beyond = true];
    for change in changes {
        let mut facts = facts();
        let mut more = doorbell_run(&mut facts).clone();
        (more.published, more.first_index, more.last_index) = (0, None, None);
        change(&mut more);
        facts.push(Fact::DoorbellRun(more));
        let found = rule("coverage", context(), &facts);
        assert_eq!(found.outcome, Outcome::Inconclusive);
        assert_eq!(found.sentence, "unknown packets were published by 7 doorbells");
    }
}

/// Aggregated dispatches have neither threads nor reserves.
#[test]
fn whether_there_was_an_ioctl_is_open_under_every_scope() {
    let (missing, sentence) = (
        "a row for each",
        "aggregated, with unknown times of reserves: 7 dispatches",
    );
    for scope in ["every", "seen"] {
        let text = format!("[rules]\nno-syscall = '{scope}'");
        let found = own("no-syscall", &text, &facts());
        assert_eq!(
            (found.outcome, found.sentence.as_str()),
            (Outcome::Inconclusive, sentence),
            "{scope}"
        );
        assert_eq!(found.missing[0].source, missing);
        assert_eq!(found.counts["dispatches_aggregated"], Some(7));
        assert_eq!((found.offenders[0].index, found.offenders[0].count), (Some(3), Some(7)));
        // Evidence in rows still counts: index 0 is reserved at 1950 and rung at 2000.
        let mut broken = facts();
        broken.insert(1, ioctl(1_960, 8));
        assert_eq!(own("no-syscall", &text, &broken).outcome, Outcome::Fail);
    }
}

#[test]
fn how_long_doorbells_took_is_open_but_for_the_longest() {
    let limit = |what: &str, ns: u64| {
        let text = format!("[limits.max-reserve-to-doorbell-ns]\n{what} = {ns}");
        own("reserve-to-doorbell", &text, &facts())
    };
    for (what, ns, outcome) in [
        ("p50", 50, Outcome::Inconclusive),
        ("p50", 49, Outcome::Inconclusive),
        ("p99", 49, Outcome::Inconclusive),
        ("max", 50, Outcome::Inconclusive),
        ("max", 49, Outcome::Fail),
    ] {
        assert_eq!(limit(what, ns).outcome, outcome, "{what} {ns}");
    }
    let found = limit("p99", 50);
    assert_eq!(found.missing[0].source, "a row for each");
    assert_eq!(found.sentence, "aggregated, with unknown times: 7 doorbells");
}

/// These rules use rows of queues, ioctls and jobs, which are never aggregated.
#[test]
fn other_rules_do_not_change() {
    let text = "[rules]\nscheduler = 'mes'\ncommand = true\nno-ring = true\n[limits]\nmax-queue-depth = 3\n\
        [limits.max-ioctl-p99-ns]\nSVM = 50\n[warnings]\nqueues-per-gpu = 1";
    let policy = Policy::parse(&format!("name = 'own'\n{text}")).unwrap();
    let mut whole = good(10);
    whole.insert(1, ioctl(1_900, 8));
    let found = judge(&policy, context(), &whole);
    let others = |verdict: crate::verify::Verdict| -> Vec<RuleVerdict> {
        let rules = verdict.rules.into_iter();
        rules.filter(|rule| rule.rule != "sound-capture").collect()
    };
    assert_eq!(found.outcome, Outcome::Pass, "{found:?}");
    assert_eq!(others(found), others(judge(&policy, context(), &aggregate(&whole, 0))));
}

#[test]
fn a_queue_without_a_row_is_a_gap() {
    let mut facts = facts();
    dispatch_run(&mut facts).queue = 9;
    assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Inconclusive);
    let mut facts = self::facts();
    facts[0] = Fact::Queue(Queue {
        dispatches: 11,
        ..queue(11)
    });
    assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Inconclusive);
}

proptest! {
    /// Runs are less evidence than rows: every rule that passes or fails on runs would do the same on rows.
    #[test]
    fn runs_never_decide_what_rows_would_not(
        policy in any_policy(),
        facts in any_facts(),
        at in any::<prop::sample::Index>(),
    ) {
        let rows = judge(&policy, context(), &facts);
        let runs = judge(&policy, context(), &aggregate(&facts, at.index(facts.len())));
        for (rows, runs) in rows.rules.iter().zip(&runs.rules) {
            let open = runs.outcome == Outcome::Inconclusive;
            prop_assert!(open || rows.outcome == runs.outcome, "{rows:?} became {runs:?}");
        }
    }
}
