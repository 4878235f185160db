//! The comparison with a profile.

use super::support::*;
use crate::profile::{Profile, Shape};
use crate::tables::Fact;
use crate::verify::{Context, Judge, Outcome, RuleVerdict};

/// Returns a profile with the dispatches of these facts.
fn profile(facts: &[Fact]) -> Profile {
    let mut profile = Profile::default();
    for fact in facts {
        let Fact::Dispatch(dispatch) = fact else { continue };
        let shape = Shape {
            pid: dispatch.pid,
            kernel_object: dispatch.kernel_object,
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
        };
        profile.processes.insert(dispatch.pid);
        *profile.dispatches.entry(shape).or_default() += 1;
    }
    profile
}

fn compared(profile: Profile, context: Context, facts: &[Fact]) -> RuleVerdict {
    let mut judge = Judge::new(&built_in("mes-bypass"), context).against(profile);
    facts.iter().for_each(|fact| judge.add(fact));
    pick("profile", judge.finish())
}

#[test]
fn the_same_dispatches_pass() {
    let facts = good(3);
    let found = compared(profile(&facts), context(), &facts);
    assert_eq!((found.outcome, found.counts["both"]), (Outcome::Pass, Some(3)));
}

#[test]
fn what_only_one_has_fails() {
    let facts = good(3);
    let few = compared(profile(&good(2)), context(), &facts);
    assert_eq!((few.outcome, few.counts["trace_only"]), (Outcome::Fail, Some(1)));
    let many = compared(profile(&good(4)), context(), &facts);
    assert_eq!((many.outcome, many.counts["profile_only"]), (Outcome::Fail, Some(1)));
}

/// A trace without everything cannot show that a dispatch of the profile is not there.
#[test]
fn what_a_trace_may_have_lost_is_open() {
    let facts = good(3);
    let open = |context: Context| compared(profile(&good(4)), context, &facts).outcome;
    let mut lossy = context();
    lossy.losses.insert("doorbell-ring".to_owned(), 1);
    let cut = Context {
        complete: false,
        ..context()
    };
    let attached = Context {
        command_began_ns: None,
        ..context()
    };
    for context in [lossy, cut, attached] {
        assert_eq!(open(context), Outcome::Inconclusive);
    }
}

#[test]
fn without_evidence_nothing_passes() {
    let facts = good(3);
    let outcome = |profile, facts: &[Fact]| compared(profile, context(), facts).outcome;
    // Nothing was profiled; another process was; the profile does not name its kernels; doorbells were not watched.
    assert_eq!(outcome(Profile::default(), &facts), Outcome::Inconclusive);
    assert_eq!(outcome(profile(&facts), &[]), Outcome::Inconclusive);
    let nameless = Profile {
        unknown: 1,
        ..profile(&facts)
    };
    assert_eq!(outcome(nameless, &facts), Outcome::Inconclusive);
    let blind = compared(profile(&facts), Context::default(), &facts);
    assert_eq!(blind.outcome, Outcome::Inconclusive);
}
