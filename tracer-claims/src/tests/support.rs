//! Hand-made recordings of every scenario, in which everything happens as the sources say.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{CLAIMS, ClaimVerdict, Evidence, Observer, Scenario, Standing, judge};
use tracer_core::sample;
use tracer_core::sample::recording::{self, good};
pub use tracer_core::sample::recording::{TAKE, job, loss};
use tracer_core::tables::{Copy, Fact, Ioctl};
use tracer_core::verify::{Context, Device, Scheduler};

/// Changes a recording.
pub type Change = fn(Scenario, &mut Context, &mut Vec<Fact>);

pub fn copy(number: u64) -> Fact {
    Fact::Copy(Copy {
        queue: Some(1),
        begin: 64 * number,
        end: 64 * (number + 1),
        ..sample::copy(2_000 + number)
    })
}

/// Returns an ioctl of 1000 ns about queue 0, by a thread other than the one that launches.
pub fn ioctl(name: &'static str) -> Fact {
    Fact::Ioctl(Ioctl {
        pid: 7,
        tid: 99,
        enter_ns: 1_600,
        exit_ns: 2_600,
        device: "kfd",
        fd: 3,
        cmd: 0,
        name: Cow::Borrowed(name),
        ret: Some(0),
        arg_in: Some(vec![0; 16]),
        arg_out: None,
        args: None,
    })
}

pub fn call(function: &str) -> Fact {
    Fact::DriverCall(sample::driver_call(function, (1_600, 1_700)))
}

pub fn facts(scenario: Scenario) -> Vec<Fact> {
    let asked = scenario.asked();
    let mut facts = good(asked.dispatches);
    facts.extend((0..asked.copies).map(copy));
    facts.push(ioctl("SVM"));
    match scenario {
        Scenario::Queues => {
            for _ in 0..asked.queues {
                facts.extend(["CREATE_QUEUE", "DESTROY_QUEUE"].map(ioctl));
                facts.extend(["add_queue_mes", "mes_v11_0_add_hw_queue"].map(call));
            }
        }
        Scenario::Cooperative => facts.push(ioctl("ALLOC_QUEUE_GWS")),
        Scenario::Streams => {
            for fact in &mut facts {
                if let Fact::Dispatch(dispatch) = fact {
                    dispatch.stream = Some(0x1000 + dispatch.index % 6);
                }
            }
        }
        _ => {}
    }
    facts
}

fn evidence(context: &Context, change: impl Fn(Scenario, &mut Context, &mut Vec<Fact>)) -> Evidence {
    let mut evidence = Evidence::default();
    for &scenario in Scenario::ALL {
        let (mut context, mut facts) = (context.clone(), facts(scenario));
        change(scenario, &mut context, &mut facts);
        let mut observer = Observer::new(context);
        facts.iter().for_each(|fact| observer.add(fact));
        evidence.runs.insert(scenario, observer.finish(Vec::new()));
    }
    evidence
}

/// Returns the evidence of a real GPU that the MES schedules.
pub fn mes(change: impl Fn(Scenario, &mut Context, &mut Vec<Fact>)) -> Evidence {
    evidence(&recording::context(), change)
}

/// Returns the evidence of a real MI300X.
pub fn hws(change: impl Fn(Scenario, &mut Context, &mut Vec<Fact>)) -> Evidence {
    let mut context = recording::context();
    context.devices = vec![Device {
        gpu_id: 5,
        name: "gfx942".to_owned(),
        gfx_target_version: 90_402,
        scheduler: Some(Scheduler::Hws),
        evidence: vec!["confirmed by 3 calls of pm_send_runlist".to_owned()],
    }];
    evidence(&context, change)
}

/// Adds a job of the traced process on a compute ring, in every scenario.
pub fn job_on_compute_ring(_: Scenario, _: &mut Context, facts: &mut Vec<Fact>) {
    facts.push(Fact::RingJob(job("comp_1.0.0", "comp", Some(true))));
}

pub fn all(evidence: &Evidence) -> Vec<ClaimVerdict> {
    CLAIMS.iter().map(|claim| judge(claim, evidence)).collect()
}

pub fn one(id: &str, evidence: &Evidence) -> ClaimVerdict {
    let claim = CLAIMS.iter().find(|claim| claim.id == id);
    judge(claim.expect("the claim"), evidence)
}

pub fn verdicts(evidence: &Evidence) -> BTreeMap<String, Standing> {
    let of = |claim: ClaimVerdict| (claim.id, claim.verdict);
    all(evidence).into_iter().map(of).collect()
}

/// Returns the ids of the claims with this verdict, in the order of their numbers.
pub fn with(standing: Standing, evidence: &Evidence) -> Vec<String> {
    let claims = all(evidence).into_iter();
    claims
        .filter(|claim| claim.verdict == standing)
        .map(|claim| claim.id)
        .collect()
}
