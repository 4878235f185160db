//! KFD ioctls with their results, failures included.

use tracer_core::fact::Fact;
use tracer_e2e::{compare, scenario::Scenario};

/// ENOMEM of include/uapi/asm-generic/errno-base.h.
const ENOMEM: i64 = 12;

#[test]
fn a_refused_queue_is_an_ioctl_with_its_error_and_no_queue() {
    for suite in ["trixie", "sid"] {
        let mut scenario = Scenario::new(suite, "gfx942", &["compute-only", "-n", "5"]);
        scenario.sim = vec!["--fail", "CREATE_QUEUE:2:ENOMEM"];
        let run = scenario.record_any();
        assert!(!run.output.status.success(), "the dispatcher noticed nothing");
        compare::no_losses(&run);
        let results: Vec<Option<i64>> = run
            .facts
            .iter()
            .filter_map(|fact| {
                if let Fact::Ioctl(i) = fact {
                    (i.name == "CREATE_QUEUE").then_some(i.ret)
                } else {
                    None
                }
            })
            .collect();
        assert!(results.contains(&Some(-ENOMEM)), "{results:?}");
        let queues = run.facts.iter().filter(|fact| matches!(fact, Fact::Queue(_))).count();
        assert_eq!(queues, results.iter().filter(|ret| **ret == Some(0)).count());
        assert!(run.report["ioctls"]["by_name"]["CREATE_QUEUE"]["errors"].as_u64() >= Some(1));
    }
}

#[test]
fn queue_creation_has_a_latency() {
    let run = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "1"]).record();
    let stats = &run.report["ioctls"]["by_name"]["CREATE_QUEUE"]["ns"];
    println!("CREATE_QUEUE: {stats}");
    assert!(stats["min"].as_u64() > Some(0) && stats["max"].as_u64() >= stats["min"].as_u64());
}
