//! Less evidence never turns a verdict into a pass.

use proptest::prelude::*;

use super::support::*;
use crate::tables::{Fact, Path, Queue};
use crate::verify::{Context, Outcome, Policy};

#[test]
fn each_loss_and_each_missing_capability_keeps_it_from_passing() {
    let verdict = |context: Context, facts: &[Fact]| judge(&built_in("mes-bypass"), context, facts).outcome;
    for (name, take) in TAKE {
        let mut blind = context();
        take(&mut blind.capabilities);
        // The policy does not depend on copies. About the other two paths the rules only say that they were not watched. Reserves
        // matter only where an ioctl could have come after them.
        let matters = !["sdma_doorbells", "thunk", "reserves"].contains(&name);
        let expected = if matters { Outcome::Inconclusive } else { Outcome::Pass };
        assert_eq!(verdict(blind, &good(3)), expected, "{name}");
    }
    let mut lossy = good(3);
    lossy.push(loss(1));
    assert_eq!(verdict(context(), &lossy), Outcome::Inconclusive);
    let changes: [fn(&mut Context); 3] = [
        |c| c.complete = false,
        |c| c.losses = [("events".to_owned(), 1)].into(),
        |c| c.damage.push("a part".to_owned()),
    ];
    for change in changes {
        let mut worse = context();
        change(&mut worse);
        assert_eq!(verdict(worse, &good(3)), Outcome::Inconclusive);
    }
}

/// A larger buffer does not lengthen a pause.
#[test]
fn losses_name_the_option_that_avoids_them() {
    let cases: [(&[&str], &str); 3] = [
        (&["pause-limit"], "--pause-limit"),
        (&["doorbell-ring"], "--buffer"),
        (&["doorbell-ring", "pause-limit"], "--buffer"),
    ];
    for (sources, option) in cases {
        let mut lossy = context();
        lossy.losses = sources.iter().map(|source| ((*source).to_owned(), 1)).collect();
        let found = rule("sound-capture", lossy, &good(3));
        let fixes: Vec<bool> = found
            .missing
            .iter()
            .map(|missing| missing.fix.contains(option))
            .collect();
        assert_eq!(
            (found.outcome, fixes),
            (Outcome::Inconclusive, vec![true]),
            "{sources:?}"
        );
    }
}

/// Returns facts that may or may not satisfy a policy.
pub fn any_facts() -> impl Strategy<Value = Vec<Fact>> {
    let odd = prop_oneof![
        Just(ioctl(1_960, 8)),
        Just(ioctl(1_900, 8)),
        Just(unread(1, 2)),
        Just(Fact::RingJob(job("comp_1.0.0", "comp", Some(true)))),
        Just(Fact::RingJob(job("comp_1.0.0", "comp", None))),
        Just(Fact::RingJob(job("sdma0", "sdma", Some(true)))),
        (0_u64..3).prop_map(|index| {
            let mut dispatch = dispatch(index);
            dispatch.path = Path::Unseen;
            Fact::Dispatch(dispatch)
        }),
        (0_u64..2).prop_map(|pending| Fact::Queue(Queue { pending, ..queue(3) })),
    ];
    (0_u64..4, prop::collection::vec(odd, 0..3), any::<prop::sample::Index>()).prop_map(|(n, odd, at)| {
        let mut facts = good(n);
        let at = at.index(facts.len());
        facts.splice(at..at, odd);
        facts
    })
}

pub fn any_policy() -> impl Strategy<Value = Policy> {
    let own = "name = 'own'\n[rules]\nno-syscall = 'seen'\n[limits]\nmin-doorbell-share = 0.5\nmax-queue-depth = 3\n\
        [limits.max-ioctl-p99-ns]\nSVM = 50\n[limits.max-reserve-to-doorbell-ns]\np99 = 60\n[warnings]\nqueues-per-gpu = 1";
    let mut all: Vec<Policy> = Policy::names().map(built_in).collect();
    all.push(Policy::parse(own).unwrap());
    prop::sample::select(all)
}

proptest! {
    #[test]
    fn less_evidence_never_makes_a_pass(
        policy in any_policy(),
        facts in any_facts(),
        before in prop::collection::vec(0..TAKE.len(), 0..3),
        more in 0..TAKE.len(),
        lost in 0_u64..3,
        at in any::<prop::sample::Index>(),
    ) {
        let mut some = context();
        before.iter().for_each(|&take| TAKE[take].1(&mut some.capabilities));
        let first = judge(&policy, some.clone(), &facts);
        let mut less = some;
        TAKE[more].1(&mut less.capabilities);
        let mut lossy = facts.clone();
        if lost > 0 {
            lossy.insert(at.index(facts.len()), loss(lost));
        }
        let second = judge(&policy, less, &lossy);
        for (before, after) in first.rules.iter().zip(&second.rules) {
            let passed = |outcome| outcome <= Outcome::Warn;
            prop_assert!(passed(before.outcome) || !passed(after.outcome), "{before:?} became {after:?}");
        }
        prop_assert!(first.outcome == Outcome::Pass || second.outcome != Outcome::Pass);
        prop_assert!(lost == 0 || second.outcome != Outcome::Pass);
    }
}
