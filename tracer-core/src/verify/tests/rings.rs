//! The rules about jobs on rings of the kernel driver.

use super::support::*;
use crate::tables::{Fact, RingJob};
use crate::verify::{Context, Outcome, RuleVerdict};

fn with(job: RingJob) -> RuleVerdict {
    let mut facts = good(3);
    facts.push(Fact::RingJob(job));
    rule("no-ring", context(), &facts)
}

#[test]
fn a_job_of_a_traced_process_on_a_compute_or_graphics_ring_fails() {
    for (ring, class) in [("comp_1.0.0", "comp"), ("gfx_0.0.0", "gfx")] {
        let found = with(job(ring, class, Some(true)));
        assert_eq!(found.outcome, Outcome::Fail);
        assert_eq!(
            (found.offenders[0].ring.as_deref(), found.offenders[0].pid),
            (Some(ring), Some(7))
        );
    }
}

#[test]
fn imported_text_does_not_show_whose_a_job_is() {
    let imported = || Context {
        imported: true,
        ..context()
    };
    let found = rule(
        "no-ring",
        imported(),
        &[Fact::RingJob(job("gfx_0.0.0", "gfx", Some(true)))],
    );
    assert_eq!((found.outcome, found.offenders.len()), (Outcome::Inconclusive, 1));
    let other = rule(
        "no-ring",
        imported(),
        &[Fact::RingJob(job("sdma0", "sdma", Some(true)))],
    );
    assert_eq!(other.outcome, Outcome::Pass);
    let none = rule(
        "no-ring",
        Context {
            capabilities: Default::default(),
            ..imported()
        },
        &[],
    );
    assert_eq!(none.outcome, Outcome::Inconclusive, "without events of the scheduler");
}

#[test]
fn other_jobs_are_counted_and_never_decide() {
    let mut own = job("gfx_0.0.0", "gfx", Some(true));
    own.reason = Some("cleaner-shader".to_owned());
    for job in [
        own,
        job("comp_1.0.0", "comp", Some(false)),
        job("sdma0", "sdma", Some(true)),
        job("sdma0", "sdma", None),
        job("page0", "page", Some(false)),
    ] {
        let found = with(job.clone());
        assert_eq!(found.outcome, Outcome::Pass, "{job:?}");
        assert_eq!(found.counts["jobs"], Some(1));
        assert!(found.notes.iter().any(|note| note.contains("not judged")), "{found:?}");
    }
}

#[test]
fn a_job_that_may_be_a_traced_processs_leaves_it_open() {
    let mut nameless = job("", "other", None);
    nameless.ring = None;
    for job in [
        job("comp_1.0.0", "comp", None),
        job("gfx_0.0.0", "gfx", None),
        job("new_1", "other", Some(true)),
        nameless,
    ] {
        assert_eq!(with(job.clone()).outcome, Outcome::Inconclusive, "{job:?}");
    }
}

#[test]
fn a_job_seen_before_the_command_began_is_not_the_commands() {
    let mut early = job("comp_1.0.0", "comp", None);
    early.time_ns = BEGAN - 1;
    assert_eq!(with(early.clone()).outcome, Outcome::Pass);
    let attached = Context {
        command_began_ns: None,
        ..context()
    };
    let mut facts = good(1);
    facts.push(Fact::RingJob(early));
    assert_eq!(rule("no-ring", attached, &facts).outcome, Outcome::Inconclusive);
}

/// Changes a context.
type Change = fn(&mut Context);

/// A submit counts as earlier than the recording only if the driver itself reports that no submit was passed over, in a complete
/// recording of a command.
#[test]
fn a_submit_that_is_neither_seen_nor_lost_came_before_the_recording() {
    let counted = || Context {
        submits_counted: true,
        ..context()
    };
    let mut facts = good(3);
    facts.push(Fact::RingJob(job("comp_1.0.0", "comp", None)));
    let found = rule("no-ring", counted(), &facts);
    assert_eq!((found.outcome, found.counts["jobs"]), (Outcome::Pass, Some(1)));
    assert_eq!(found.notes, ["not judged: 1 job from before the recording"]);
    let changes: [(&str, Change); 5] = [
        ("not counted", |c| c.submits_counted = false),
        ("attached", |c| c.command_began_ns = None),
        ("not complete", |c| c.complete = false),
        ("damaged", |c| c.damage.push("a part".to_owned())),
        ("lossy", |c| c.losses = [("missed-ring".to_owned(), 1)].into()),
    ];
    for (name, change) in changes {
        let mut worse = counted();
        change(&mut worse);
        assert_eq!(rule("no-ring", worse, &facts).outcome, Outcome::Inconclusive, "{name}");
    }
    facts.push(loss(1));
    assert_eq!(rule("no-ring", counted(), &facts).outcome, Outcome::Inconclusive);
    facts.push(Fact::RingJob(job("comp_1.0.0", "comp", Some(true))));
    assert_eq!(rule("no-ring", counted(), &facts).outcome, Outcome::Fail);
}

#[test]
fn rings_that_were_not_watched_are_named_with_the_way_to_watch_them() {
    let mut blind = context();
    blind.capabilities.kernel_rings = false;
    let found = rule("no-ring", blind, &good(3));
    assert_eq!((found.outcome, found.counts["jobs"]), (Outcome::Inconclusive, None));
    assert_eq!(found.missing[0].source, "gpu_scheduler events");
    assert!(found.missing[0].fix.contains("sudo tracer verify"), "{found:?}");
}

#[test]
fn submission_by_rings_is_the_opposite() {
    let policy = built_in("ring-submission");
    let jobs = [Fact::RingJob(job("comp_1.0.0", "comp", Some(true)))];
    assert_eq!(judge(&policy, context(), &jobs).outcome, Outcome::Pass);
    assert_eq!(judge(&policy, context(), &good(2)).outcome, Outcome::Fail);
    let mut both = good(2);
    both.extend(jobs.clone());
    assert_eq!(judge(&policy, context(), &both).outcome, Outcome::Fail);
    for take in [
        |c: &mut Context| c.capabilities.packets = false,
        |c: &mut Context| c.capabilities.kernel_rings = false,
    ] {
        let mut blind = context();
        take(&mut blind);
        assert_eq!(judge(&policy, blind.clone(), &jobs).outcome, Outcome::Inconclusive);
        assert_eq!(
            judge(&policy, blind, &good(2)).outcome,
            Outcome::Fail,
            "what was seen suffices"
        );
    }
}
