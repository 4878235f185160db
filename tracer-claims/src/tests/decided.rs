//! Claims on which the evidence decides, either way.

use super::support::*;
use crate::{Scenario, Standing};
use tracer_core::tables::{Fact, Path};
use tracer_core::verify::{Context, Scheduler};

#[test]
fn under_the_mes() {
    let evidence = mes(|_, _, _| {});
    assert_eq!(with(Standing::Holds, &evidence), ["C1", "C4", "C5", "C6", "C7", "C9"]);
    assert_eq!(with(Standing::Contradicted, &evidence), ["C3", "C8", "C11"]);
    assert_eq!(with(Standing::NotTested, &evidence), ["C2", "C10", "C12"]);
}

#[test]
fn under_the_hws() {
    let evidence = hws(|_, _, _| {});
    assert_eq!(with(Standing::Holds, &evidence), ["C5", "C6", "C7", "C9"]);
    assert_eq!(
        with(Standing::Contradicted, &evidence),
        ["C2", "C3", "C8", "C11", "C12"]
    );
    assert_eq!(with(Standing::NotTested, &evidence), ["C1", "C4", "C10"]);
}

#[test]
fn a_job_on_a_compute_ring_contradicts_that_there_is_none() {
    let found = with(Standing::Contradicted, &mes(job_on_compute_ring));
    assert_eq!(found, ["C1", "C3", "C4", "C7", "C8", "C11"]);
}

#[test]
fn kernels_that_are_jobs_alone_make_it_true_that_they_are() {
    let evidence = hws(|_, _, facts| {
        facts.retain(|fact| !matches!(fact, Fact::Dispatch(_) | Fact::Doorbell(_)));
        facts.push(Fact::RingJob(job("comp_1.0.0", "comp", Some(true))));
    });
    assert_eq!(one("C2", &evidence).verdict, Standing::Holds);
    assert_eq!(one("C2", &evidence).as_sources_say, Some(false));
    let both = hws(job_on_compute_ring);
    assert_eq!(one("C2", &both).verdict, Standing::Contradicted, "a doorbell is enough");
}

/// Replaces SDMA doorbells by as many jobs on the ring of a copy engine as there are copies.
fn copies_as_jobs(scenario: Scenario, _: &mut Context, facts: &mut Vec<Fact>) {
    facts.retain(|fact| !matches!(fact, Fact::Copy(_)));
    for _ in 0..scenario.asked().copies {
        facts.push(Fact::RingJob(job("sdma0", "sdma", Some(true))));
    }
}

#[test]
fn copies_that_are_jobs_make_it_true_that_they_are() {
    let evidence = mes(copies_as_jobs);
    assert_eq!(one("C3", &evidence).verdict, Standing::Holds);
    let share = one("C8", &evidence);
    assert_eq!(share.verdict, Standing::Holds, "100 of 110 is about 90 %");
    assert!(share.checks[2].evidence.contains("90.9 %"), "{share:?}");
}

#[test]
fn jobs_of_the_driver_itself_are_no_copies_of_the_program() {
    let evidence = mes(|scenario, context, facts| {
        copies_as_jobs(scenario, context, facts);
        for fact in facts {
            if let Fact::RingJob(job) = fact {
                job.reason = Some("ttm-clear-buffer".to_owned());
            }
        }
    });
    assert_eq!(one("C3", &evidence).verdict, Standing::Inconclusive);
}

#[test]
fn copies_by_kernels_of_the_runtime_use_the_doorbell_too() {
    let evidence = mes(|scenario, _, facts| {
        facts.retain(|fact| {
            !matches!(
                fact,
                Fact::Copy(_) | Fact::Queue(_) | Fact::Dispatch(_) | Fact::Doorbell(_)
            )
        });
        let asked = scenario.asked();
        facts.extend(tracer_core::sample::recording::good(asked.dispatches + asked.copies));
    });
    for id in ["C3", "C8"] {
        assert_eq!(one(id, &evidence).verdict, Standing::Contradicted, "{id}");
    }
}

#[test]
fn an_ioctl_between_reserve_and_doorbell_contradicts() {
    let evidence = mes(|_, _, facts| {
        // Before the dispatches, as in a stored trace. The first dispatch is reserved at 1950 and rung at 2000.
        facts.insert(0, tracer_core::sample::recording::ioctl(1_960, 8));
    });
    let found = one("C5", &evidence);
    assert_eq!(
        (found.verdict, found.as_sources_say),
        (Standing::Contradicted, Some(false))
    );
    assert_eq!(found.checks[0].counts["dispatches_with_ioctl"], Some(1));
}

#[test]
fn a_second_call_for_the_same_queue_contradicts_one_per_queue() {
    let evidence = mes(|scenario, _, facts| {
        if scenario == Scenario::Cooperative {
            facts.push(ioctl("ALLOC_QUEUE_GWS"));
        }
    });
    assert_eq!(one("C6", &evidence).verdict, Standing::Contradicted);
}

#[test]
fn queues_without_ioctls_contradict_that_the_kfd_makes_them() {
    let evidence = mes(|_, _, facts| facts.retain(|fact| !matches!(fact, Fact::Ioctl(_))));
    assert_eq!(one("C4", &evidence).verdict, Standing::Contradicted);
}

#[test]
fn an_mi300x_whose_queues_the_mes_adds_makes_it_true() {
    let with = |words: &str| {
        hws(|_, context, _| {
            context.devices[0].scheduler = Some(Scheduler::Mes);
            context.devices[0].evidence = vec![words.to_owned()];
        })
    };
    let evidence = with("not hws as the topology suggests: 3 calls of add_queue_mes");
    assert_eq!(one("C12", &evidence).verdict, Standing::Holds);
    let evidence = with("somebody said so");
    assert_eq!(one("C12", &evidence).verdict, Standing::Inconclusive);
}

#[test]
fn a_packet_by_another_way_contradicts_that_all_go_by_doorbell() {
    let evidence = mes(|_, _, facts| {
        for fact in facts {
            if let Fact::Dispatch(dispatch) = fact
                && dispatch.index == 1
            {
                dispatch.path = Path::Thunk;
            }
        }
    });
    for id in ["C1", "C6"] {
        assert_eq!(one(id, &evidence).verdict, Standing::Contradicted, "{id}");
    }
}

#[test]
fn an_ioctl_that_is_faster_than_claimed_contradicts_and_a_slow_one_may_be_the_probes_fault() {
    for (ns, expected) in [
        (400, Standing::Contradicted),
        (1_000, Standing::Holds),
        (9_000, Standing::Inconclusive),
    ] {
        let evidence = mes(|_, _, facts| {
            for fact in facts {
                if let Fact::Ioctl(ioctl) = fact {
                    ioctl.exit_ns = ioctl.enter_ns + ns;
                }
            }
        });
        assert_eq!(one("C9", &evidence).verdict, expected, "{ns}");
    }
}

#[test]
fn streams_with_a_queue_each_make_it_true_that_they_have() {
    let apart = |scenario, _: &mut Context, facts: &mut Vec<Fact>| {
        if scenario != Scenario::Streams {
            return;
        }
        for queue in 1..6 {
            facts.push(Fact::Queue(tracer_core::tables::Queue {
                queue,
                ..tracer_core::sample::queue(20)
            }));
        }
        for fact in facts {
            if let Fact::Dispatch(dispatch) = fact {
                dispatch.queue = (dispatch.index % 6) as u32;
            }
        }
    };
    let found = one("C11", &mes(apart));
    assert_eq!(found.verdict, Standing::Holds, "{found:?}");
    assert_eq!(found.checks[0].counts["queues"], Some(6));
    let found = one("C11", &mes(|_, _, _| {}));
    assert_eq!(
        (found.checks[0].counts["streams"], found.checks[0].counts["queues"]),
        (Some(6), Some(1))
    );
}
