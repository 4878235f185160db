//! The comparison of programs of others in parts: it finds nothing in a run that is equal, and each difference in its part.

use std::collections::BTreeSet;

use tracer_e2e::{
    compare::apart,
    scenario::{Run, Scenario},
};

/// Returns the parts that differ.
fn differing(run: &Run) -> BTreeSet<&'static str> {
    let parts = apart(run).into_iter();
    parts
        .filter(|(_, found)| found.is_err())
        .map(|(part, _)| part)
        .collect()
}

#[test]
fn each_difference_is_found_in_its_part() {
    let mut run = Scenario {
        api: "all",
        ..Scenario::hip("sid", "gfx942", &["mixed"])
    }
    .record();
    assert_eq!(differing(&run), BTreeSet::new(), "{:?}", apart(&run));
    let counts: Vec<_> = apart(&run);
    for part in ["ioctls", "queues", "dispatches", "doorbells", "copies", "calls"] {
        let (_, found) = counts.iter().find(|(name, _)| *name == part).expect("the part");
        assert!(*found > Ok(0), "{part}: {found:?}");
    }

    let truth = run.truth.clone();
    let aql = truth
        .queues
        .iter()
        .position(|queue| queue.is_aql() && !queue.packets.is_empty());
    let aql = aql.expect("a queue with packets");
    let sdma = truth
        .queues
        .iter()
        .position(|queue| !queue.is_aql() && !queue.commands.is_empty());
    let sdma = sdma.expect("a copy engine");

    run.truth.queues[aql].packets.pop();
    assert_eq!(differing(&run), ["dispatches"].into());

    run.truth = truth.clone();
    run.truth.queues[aql].doorbells.push(u64::MAX >> 1);
    assert_eq!(differing(&run), ["doorbells"].into());

    run.truth = truth.clone();
    run.truth.queues[sdma].commands.retain(|command| command.op != "copy");
    assert_eq!(differing(&run), ["copies"].into());

    run.truth = truth.clone();
    run.truth.ioctls.pop();
    assert_eq!(differing(&run), ["ioctls"].into());

    run.truth = truth;
    run.truth.queues.remove(sdma);
    let found = differing(&run);
    assert!(
        found.is_superset(&["queues", "dispatches", "doorbells", "copies"].into()),
        "{found:?}"
    );
}
