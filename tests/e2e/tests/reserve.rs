//! Reserves of packets: at `--detail full`, every dispatch of the program has the time of its reserve.

use tracer_core::tables::{Fact, Queue};
use tracer_e2e::scenario::{Scenario, each_release};

#[test]
fn every_dispatch_of_the_program_has_its_reserve() {
    for (suite, asic) in each_release(1) {
        let run = Scenario::new(suite, asic, &["compute-only", "-n", "50"]).record();
        let log = run.log.as_ref().expect("the dispatcher's log");
        let own = |queue: &Queue| log.submissions.iter().any(|s| s.queue == queue.handle);
        let queues: Vec<u32> = run.queues().filter(|q| own(q)).map(|q| q.queue).collect();
        let mut count = 0;
        for d in run.dispatches().filter(|d| queues.contains(&d.queue)) {
            let reserve = d.reserve_ns.unwrap_or_else(|| panic!("{d:?} has no reserve"));
            assert!(reserve < d.time_ns, "{d:?}");
            count += 1;
        }
        assert_eq!(count, 50);
        assert!(run.report["doorbells"]["reserve_to_doorbell_ns"]["p50"].as_u64() > Some(0));
    }
}

#[test]
fn without_them_their_numbers_are_unknown() {
    let mut scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "5"]);
    scenario.detail = "dispatch";
    let run = scenario.record();
    assert!(
        run.facts
            .iter()
            .all(|fact| !matches!(fact, Fact::Dispatch(d) if d.reserve_ns.is_some()))
    );
    assert!(run.report["doorbells"]["reserve_to_doorbell_ns"].is_null());
}
