//! A tool between a program and its queues, as rocprofiler is: the program writes to proxies in memory, and rings signals
//! that are no doorbells; there the runtime hands packets to the tool, which publishes them on the real queues.

use std::collections::BTreeSet;

use tracer_core::fact::Dispatch;
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, each_release, folder},
};

const DISPATCHES: usize = 20;

fn intercepted(suite: &'static str, asic: &'static str) -> Run {
    let dir = folder();
    let mut command = Scenario::new(suite, asic, &["compute-only", "-n", "20"]).command(&dir);
    command.env("HSA_TOOLS_LIB", place::programs().join("libhsa_intercept.so"));
    let output = command.output().expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Run::read(dir, output)
}

#[test]
fn what_is_published_is_that_of_the_real_queue() {
    for (suite, asic) in each_release(1) {
        let run = intercepted(suite, asic);
        let compared = compare::device(&run);
        let did = run.did();
        println!("{} of {suite}, {asic}: {compared:?}", did["runtime"]["version"]);
        assert_eq!(did["results"], "ok");
        let of_program: Vec<&Dispatch> = run.dispatches().filter(|d| d.kernel.is_some()).collect();
        assert_eq!(of_program.len(), DISPATCHES);
        // In the thread that rang the proxy, here the only one. What it had reserved was the proxy's.
        assert!(of_program.iter().all(|d| d.tid == d.pid && d.reserve_ns.is_none()));
        // No queue of the GPU is the program's.
        let log = run.log.as_ref().expect("the dispatcher's log");
        let proxies: BTreeSet<u64> = log.submissions.iter().map(|s| s.queue).collect();
        assert_eq!((proxies.len(), log.submissions.len()), (1, DISPATCHES));
        for queue in run.queues() {
            assert!(!proxies.contains(&queue.handle), "{queue:?}");
            // Nobody knows which of the queues stands behind the program's.
            assert_eq!(queue.internal, None, "{queue:?}");
        }
        assert!(run.report["dispatches"]["internal"].is_null());
    }
}
