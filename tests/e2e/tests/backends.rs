//! The backends without eBPF: what they capture equals the simulator's truth field by field.

use tracer_core::{
    backend::Backend,
    losses::{FTRACE_RING, PERF_RING},
    tables::{Dispatch, Fact},
};
use tracer_e2e::{
    compare,
    running::{Program, Recorder, descendants, signal, wait_for},
    scenario::{Scenario, each_release},
};

/// Microseconds between two submissions: at most 1,000 dispatches per second.
const PACE: [&str; 2] = ["--pace", "1000"];

#[test]
fn paced_workloads_by_perf_equal_the_truth() {
    paced_workloads_equal_the_truth(Backend::Perf);
}

#[test]
fn paced_workloads_by_ftrace_equal_the_truth() {
    paced_workloads_equal_the_truth(Backend::Ftrace);
}

fn paced_workloads_equal_the_truth(backend: Backend) {
    let workloads: [&[&str]; 8] = [
        &["compute-only", "-n", "300"],
        &["mixed"],
        &["multi-queue", "--queues", "4", "-n", "50"],
        &["multi-thread", "--threads", "4", "-n", "200"],
        &["barriers"],
        &["batch", "--packets", "10", "-n", "40"],
        &["wrap"],
        &["churn", "--queues", "8"],
    ];
    for (turn, workload) in workloads.into_iter().enumerate() {
        let workload = [workload, &PACE].concat();
        for (suite, asic) in each_release(turn) {
            let run = Scenario::new(suite, asic, &workload)
                .without_ebpf(backend.into())
                .record();
            let compared = compare::without_ebpf(&run, backend);
            println!("{backend} {suite} {asic} {workload:?}: {compared:?}");
            let own = run.did()["dispatches"].as_u64().expect("a number");
            assert!(
                own > 0 && compared.dispatches as u64 >= own && compared.named > 0,
                "{own} of {compared:?}"
            );
        }
    }
}

/// As many doorbells as possible: each one is there, and each packet with its fields, unless the recorder got no processor in time.
#[test]
fn bursts_equal_the_truth() {
    let each = [Backend::Perf, Backend::Ftrace].into_iter();
    for (backend, (suite, asic)) in each.flat_map(|backend| each_release(0).map(move |release| (backend, release))) {
        let run = Scenario::new(suite, asic, &["burst", "-n", "100000"])
            .without_ebpf(backend.into())
            .record();
        let compared = compare::burst_without_ebpf(&run, backend);
        println!("{backend} {suite} {asic}: {compared:?}");
        assert!(compared.dispatches >= 100_000);
    }
}

/// The recorder stops the program after a change of its code objects. No dispatch has the name of another time: it has its own, or,
/// if the program was faster than its stop and changed them again, none, and that is counted.
#[test]
fn an_address_that_is_used_again_has_the_name_of_its_time() {
    reload(Backend::Perf);
    reload(Backend::Ftrace);
}

fn reload(backend: Backend) {
    let mut named = 0;
    // Without a pace, the next change comes at once.
    let workloads: [&[&str]; 2] = [&["reload", "-n", "8"], &["reload", "-n", "8", "--pace", "10000"]];
    for (workload, (suite, asic)) in workloads
        .into_iter()
        .cycle()
        .zip(each_release(1).chain(each_release(0)))
    {
        let run = Scenario::new(suite, asic, workload)
            .without_ebpf(backend.into())
            .record();
        let did = run.did();
        let hex = |value: &serde_json::Value| {
            let text = value.as_str().expect("an address");
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
        };
        let launches = did["launches"].as_array().expect("launches");
        assert_eq!(launches.len(), 8);
        let mut nameless = 0;
        for launch in launches {
            let queue = run.queues().find(|queue| queue.handle == hex(&launch["queue"]));
            let queue = queue.expect("the queue").queue;
            let is_it = |d: &&Dispatch| d.queue == queue && Some(d.index) == launch["index"].as_u64();
            let found = run.dispatches().find(is_it).expect("the dispatch");
            assert_eq!(found.kernel_object, hex(&launch["kernel_object"]));
            match &found.kernel {
                Some(name) => assert_eq!(Some(&**name), launch["kernel"].as_str(), "{found:?}"),
                None => nameless += 1,
            }
        }
        let losses = &run.trace.manifest().losses;
        let unread = losses.get("code-object-list").copied().unwrap_or(0);
        println!("{backend} {suite} {asic}: {nameless} of 8 without a name, losses {losses:?}");
        assert_eq!(losses.len(), usize::from(unread > 0), "{losses:?}");
        // The trace says why: a list was unread, or the memory of a code object was gone.
        let gone: Vec<_> = run.code_objects().filter(|object| object.unread.is_some()).collect();
        assert!(
            nameless == 0 || unread > 0 || !gone.is_empty(),
            "{nameless} without a name: {:?}, {:?}",
            run.code_objects().collect::<Vec<_>>(),
            run.dispatches().collect::<Vec<_>>()
        );
        named += 8 - nameless;
    }
    assert!(named > 0);
}

/// A recorder that cannot keep up counts what it lost: no doorbell is missing that is not counted.
#[test]
fn what_has_no_room_is_counted() {
    for goes_on in [true, false] {
        no_room(Backend::Perf, PERF_RING, goes_on);
        no_room(Backend::Ftrace, FTRACE_RING, goes_on);
    }
}

/// `goes_on`: whether the program still runs when the recorder does again.
fn no_room(backend: Backend, source: &str, goes_on: bool) {
    let program = Program::steady("trixie", "gfx1100", &["--round=1024", "--pause=0"]);
    program.goes_on(100);
    let trace = program.dir.path().join("t.trace");
    let options = ["--backend", backend.into(), "--buffer", "1"];
    let recorder = Recorder::attach(&trace, &[program.pid()], &options);
    program.goes_on(5_000);
    // More doorbells than the buffers have room for.
    signal(recorder.pid(), libc::SIGSTOP);
    program.goes_on(100_000);
    if !goes_on {
        program.stop();
        wait_for("the program's end", || {
            descendants(program.simulator(), "hsa-dispatch")
                .is_empty()
                .then_some(())
        });
    }
    signal(recorder.pid(), libc::SIGCONT);
    if goes_on {
        program.goes_on(5_000);
        program.stop();
    }
    let run = program.read(recorder.wait().expect_success());
    let began = run
        .doorbells()
        .map(|doorbell| doorbell.time_ns)
        .min()
        .expect("a doorbell");
    let log = run.log.as_ref().expect("the dispatcher's log");
    let rang = log
        .submissions
        .iter()
        .filter(|submission| submission.reserve_ns > began)
        .count() as u64;
    let losses = run.facts.iter().filter_map(|fact| match fact {
        Fact::Loss(loss) if loss.source == source => Some(loss.count),
        _ => None,
    });
    // Also those without a row each.
    let seen = run.report["doorbells"]["total"].as_u64().expect("a number");
    let lost: u64 = losses.sum();
    println!("{backend}, goes on {goes_on}: {seen} of {rang} doorbells, {lost} records lost");
    assert!(
        lost > 10_000 && seen + lost >= rang,
        "{seen} seen and {lost} lost of {rang}"
    );
}
