//! Claims that stay inconclusive. Less evidence decides nothing.

use super::support::*;
use crate::{Evidence, Observer, Scenario, Standing};
use tracer_core::tables::Fact;
use tracer_core::verify::{Context, Ended};

/// The evidence of a simulated GPU.
const SIGN: &str = "kfd-sim gfx1100";

fn simulated(_: Scenario, context: &mut Context, _: &mut Vec<Fact>) {
    context.simulated = Some(SIGN.to_owned());
}

#[test]
fn without_ring_events_nothing_is_said_of_rings() {
    let evidence = mes(|_, context, _| context.capabilities.kernel_rings = false);
    assert_eq!(with(Standing::Inconclusive, &evidence), ["C1", "C4", "C7"]);
    let open = one("C1", &evidence);
    let rings = open.checks.last().unwrap();
    assert_eq!(rings.missing[0].source, "gpu_scheduler events");
    assert_eq!(open.checks[0].verdict, Standing::Holds, "what was seen is still said");
}

#[test]
fn a_missing_capability_decides_nothing_otherwise() {
    for (gpu, whole) in [mes as fn(Change) -> Evidence, hws].map(|gpu| (gpu, verdicts(&gpu(|_, _, _| {})))) {
        for (name, take) in TAKE {
            let less = gpu_without(gpu, take);
            for (id, verdict) in verdicts(&less) {
                let same = verdict == whole[&id];
                assert!(
                    same || !verdict.decided(),
                    "{id} without {name}: {verdict:?}, was {:?}",
                    whole[&id]
                );
            }
        }
    }
}

fn gpu_without(gpu: fn(Change) -> Evidence, take: fn(&mut tracer_core::summary::Capabilities)) -> Evidence {
    let all = gpu(|_, _, _| {});
    let mut less = Evidence::default();
    for (scenario, run) in all.runs {
        let mut context = run.context.clone();
        take(&mut context.capabilities);
        let mut observer = Observer::new(context);
        facts(scenario).iter().for_each(|fact| observer.add(fact));
        less.runs.insert(scenario, observer.finish(Vec::new()));
    }
    less
}

#[test]
fn what_each_claim_rests_on() {
    let rests = |take: fn(&mut tracer_core::summary::Capabilities)| {
        let (whole, less) = (verdicts(&mes(|_, _, _| {})), verdicts(&gpu_without(mes, take)));
        let changed = whole.iter().filter(|(id, verdict)| less[*id] != **verdict);
        changed.map(|(id, _)| id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(rests(|c| c.sdma_doorbells = false), ["C3", "C8"]);
    // C5 needs no reserves: no thread made an ioctl after the write index was seen below the indexes that it launched.
    assert_eq!(rests(|c| c.reserves = false), ["C9"]);
    assert_eq!(rests(|c| c.driver = false), ["C4"]);
    assert_eq!(rests(|c| c.api = false), ["C11"]);
    assert_eq!(rests(|c| c.kernel_rings = false), ["C1", "C4", "C7"]);
    assert_eq!(rests(|c| c.ioctls = false), ["C4", "C5", "C6", "C9"]);
}

#[test]
fn a_simulated_gpu_says_nothing_of_the_driver_the_scheduler_and_times() {
    let evidence = mes(simulated);
    assert_eq!(with(Standing::Inconclusive, &evidence), ["C4", "C9"]);
    assert_eq!(with(Standing::Inconclusive, &hws(simulated)), ["C9", "C12"]);
    for claim in all(&evidence) {
        let said = claim.simulated.is_some_and(|words| words.starts_with(SIGN));
        assert_eq!(said, claim.scenario.is_some(), "{}", claim.id);
    }
    let real = all(&mes(|_, _, _| {}));
    assert!(real.iter().all(|claim| claim.simulated.is_none()));
}

#[test]
fn a_recording_that_is_not_whole_is_no_evidence() {
    let tested = ["C1", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C11"];
    let changes: [Change; 4] = [
        |_, _, facts| facts.push(loss(1)),
        |_, context, _| context.complete = false,
        |_, context, _| context.damage.push("a part".to_owned()),
        |_, context, _| context.command = Some(Ended::Code(1)),
    ];
    for change in changes {
        let evidence = mes(change);
        for id in tested {
            assert_eq!(one(id, &evidence).verdict, Standing::Inconclusive, "{id}");
        }
        assert_eq!(one("C12", &hws(change)).verdict, Standing::Inconclusive);
    }
    let mut observer = Observer::new(tracer_core::sample::recording::context());
    facts(Scenario::Copies).iter().for_each(|fact| observer.add(fact));
    let mut evidence = Evidence::default();
    let damaged = observer.finish(vec!["a part can't be read".to_owned()]);
    evidence.runs.insert(Scenario::Copies, damaged);
    assert_eq!(one("C3", &evidence).verdict, Standing::Inconclusive);
}

#[test]
fn a_failed_scenario_has_a_reason_and_one_that_was_not_run_is_not_tested() {
    let mut evidence = mes(|_, _, _| {});
    evidence.runs.remove(&Scenario::Cooperative);
    assert_eq!(one("C6", &evidence).verdict, Standing::NotTested);
    evidence
        .failed
        .insert(Scenario::Cooperative, "no such queue".to_owned());
    let found = one("C6", &evidence);
    assert_eq!(found.verdict, Standing::Inconclusive);
    assert!(found.checks[0].evidence.contains("no such queue"), "{found:?}");
    assert!(with(Standing::Holds, &Evidence::default()).is_empty());
    assert!(with(Standing::Contradicted, &Evidence::default()).is_empty());
}

#[test]
fn fewer_launches_or_copies_than_were_asked_for_prove_nothing() {
    let evidence = mes(|_, _, facts| {
        let asked = |fact: &Fact| {
            !matches!(
                fact,
                Fact::Dispatch(_) | Fact::Doorbell(_) | Fact::Queue(_) | Fact::Copy(_)
            )
        };
        facts.retain(asked);
        facts.extend(tracer_core::sample::recording::good(1));
        facts.push(copy(0));
    });
    for id in ["C1", "C3", "C5", "C6", "C7", "C8"] {
        assert_eq!(one(id, &evidence).verdict, Standing::Inconclusive, "{id}");
    }
}

/// Returns evidence with a control command that submitted these jobs.
fn controlled(jobs: &[Fact]) -> Evidence {
    let mut evidence = mes(|_, _, _| {});
    let mut observer = Observer::new(tracer_core::sample::recording::context());
    jobs.iter().for_each(|job| observer.add(job));
    evidence.control = Some(observer.finish(Vec::new()));
    evidence
}

#[test]
fn a_control_whose_jobs_were_not_seen_takes_the_worth_from_seeing_none() {
    let rings = ["C1", "C4", "C7"];
    assert_eq!(with(Standing::Inconclusive, &controlled(&[])), rings);
    let elsewhere = controlled(&[Fact::RingJob(job("sdma0", "sdma", Some(true)))]);
    assert_eq!(with(Standing::Inconclusive, &elsewhere), rings);
    let seen = controlled(&[Fact::RingJob(job("comp_1.0.0", "comp", Some(true)))]);
    for id in rings {
        let found = one(id, &seen);
        assert_eq!(found.verdict, Standing::Holds);
        assert_eq!(found.checks.last().unwrap().counts["control_jobs"], Some(1));
    }
    let without = one("C1", &mes(|_, _, _| {}));
    assert!(
        without.notes.iter().any(|note| note.contains("--control")),
        "{without:?}"
    );
}

#[test]
fn driver_functions_that_were_not_called_leave_it_open_where_queues_went() {
    let evidence = mes(|_, _, facts| facts.retain(|fact| !matches!(fact, Fact::DriverCall(_))));
    assert_eq!(one("C4", &evidence).verdict, Standing::Inconclusive);
}

/// Many machines have no HIP. The claim is not about that.
#[test]
fn without_hip_streams_are_not_tested() {
    let mut evidence = mes(|_, _, _| {});
    evidence.runs.remove(&Scenario::Streams);
    evidence
        .failed
        .insert(Scenario::Streams, "no libamdhip64.so".to_owned());
    for id in ["C10", "C11"] {
        assert_eq!(one(id, &evidence).verdict, Standing::NotTested, "{id}");
    }
    let found = one("C11", &evidence);
    assert!(found.checks[0].evidence.contains("no libamdhip64.so"), "{found:?}");
}
