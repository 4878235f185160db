use crate::event::{Event, JobKey, Origin, RingJob as Step, RingStep};
use crate::model::Model;
use crate::tables::{Fact, RingJob};

const NEW: JobKey = JobKey::Seqno { context: 3, seqno: 1 };
const OLD: JobKey = JobKey::Fence(0xffff_8880_1234_5678);

fn step(time_ns: u64, step: RingStep, key: JobKey) -> Step<'static> {
    let told = step != RingStep::Done;
    Step {
        origin: Origin {
            time_ns,
            pid: 7,
            tid: 70,
        },
        step,
        key,
        ring: told.then_some(b"comp_1.0.0"),
        device: None,
        client_id: None,
        job_id: None,
        queued: told.then_some(2),
        traced: step == RingStep::Submit,
    }
}

fn jobs(steps: &[Step<'_>]) -> Vec<RingJob> {
    let mut model = Model::new();
    let mut jobs = Vec::new();
    let mut out = |fact| {
        if let Fact::RingJob(job) = fact {
            jobs.push(job);
        }
    };
    for step in steps {
        model.apply(&Event::RingJob(*step), &mut out);
    }
    model.finish(1000, &mut out);
    jobs
}

#[test]
fn submit_run_and_done_are_one_job_under_either_key() {
    for key in [NEW, OLD] {
        let [job] = &jobs(&[
            step(10, RingStep::Submit, key),
            step(20, RingStep::Run, key),
            step(50, RingStep::Done, key),
        ])[..] else {
            panic!("not one job");
        };
        assert_eq!((job.submit_ns, job.run_ns, job.done_ns), (Some(10), Some(20), Some(50)));
        assert_eq!((job.queued_ns(), job.running_ns()), (Some(10), Some(30)));
        assert_eq!((job.pid, job.tid, job.traced), (Some(7), Some(70), Some(true)));
        assert_eq!((job.ring.as_deref(), job.class.as_str()), (Some("comp_1.0.0"), "comp"));
        assert_eq!(job.context, (key == NEW).then_some(3));
        assert_eq!(job.queued, Some(2));
    }
}

#[test]
fn a_run_makes_nobody_the_submitter() {
    let jobs = jobs(&[step(20, RingStep::Run, NEW), step(50, RingStep::Done, NEW)]);
    assert_eq!((jobs[0].pid, jobs[0].traced, jobs[0].submit_ns), (None, None, None));
    assert_eq!(jobs[0].queued, None, "told of the moment of its submit only");
}

#[test]
fn a_done_alone_is_a_job_of_which_nothing_else_is_known() {
    let jobs = jobs(&[step(50, RingStep::Done, OLD)]);
    assert_eq!((jobs[0].ring.as_deref(), jobs[0].class.as_str()), (None, "other"));
    assert_eq!((jobs[0].done_ns, jobs[0].time_ns), (Some(50), 50));
}

#[test]
fn a_fence_address_that_comes_again_is_another_job() {
    let jobs = jobs(&[
        step(10, RingStep::Submit, OLD),
        step(20, RingStep::Run, OLD),
        // Its done event was lost.
        step(30, RingStep::Submit, OLD),
        step(40, RingStep::Done, OLD),
    ]);
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].submit_ns, jobs[0].done_ns), (Some(10), None));
    assert_eq!(
        (jobs[1].submit_ns, jobs[1].run_ns, jobs[1].done_ns),
        (Some(30), None, Some(40))
    );
}

#[test]
fn jobs_under_way_at_the_end_have_no_end() {
    let jobs = jobs(&[step(10, RingStep::Submit, NEW)]);
    assert_eq!((jobs[0].run_ns, jobs[0].done_ns), (None, None));
}

#[test]
fn a_client_id_of_the_driver_is_its_reason() {
    let mut submit = step(10, RingStep::Submit, NEW);
    submit.client_id = Some(u64::MAX - 9);
    assert_eq!(jobs(&[submit])[0].reason.as_deref(), Some("ttm-clear-buffer"));
    submit.client_id = Some(4242);
    assert_eq!(
        (jobs(&[submit])[0].reason.clone(), jobs(&[submit])[0].client_id),
        (None, Some(4242))
    );
}

#[test]
fn jobs_beyond_what_is_kept_are_counted() {
    let mut model = Model::new();
    let mut lost = 0;
    for seqno in 0..70_000 {
        let submit = step(10, RingStep::Submit, JobKey::Seqno { context: 1, seqno });
        model.apply(&Event::RingJob(submit), &mut |fact| {
            if let Fact::Loss(loss) = fact {
                assert_eq!(loss.source, "model-ring-jobs");
                lost += loss.count;
            }
        });
    }
    assert_eq!(lost, 70_000 - 65_536);
}

/// The end of a job was lost. The job is reported long before the trace ends, and room for others is left.
#[test]
fn a_job_whose_end_was_lost_ages_out() {
    const LATE: u64 = 700_000_000_000;
    let mut model = Model::new();
    let mut rows = Vec::new();
    let mut apply = |step: Step<'_>| model.apply(&Event::RingJob(step), &mut |fact| rows.push(fact));
    for seqno in 0..65_536 {
        apply(step(10, RingStep::Submit, JobKey::Seqno { context: 1, seqno }));
    }
    // This one began to run later.
    apply(step(LATE / 2, RingStep::Run, JobKey::Seqno { context: 1, seqno: 7 }));
    apply(step(LATE, RingStep::Submit, JobKey::Seqno { context: 2, seqno: 0 }));
    let done = |fact: &Fact| match fact {
        Fact::RingJob(job) => job.done_ns.is_some(),
        other => panic!("{other:?}"),
    };
    assert_eq!((rows.len(), rows.iter().filter(|row| done(row)).count()), (65_535, 0));
    let mut left = 0;
    model.finish(LATE, &mut |_| left += 1);
    assert_eq!(left, 2);
}
