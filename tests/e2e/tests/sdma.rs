//! Copies by SDMA: source, destination and size of each submission equal what the device did.

use tracer_core::tables::{Copy, CopyOp, Direction};
use tracer_e2e::{
    compare,
    scenario::{RUNTIMES, Scenario, each_release, report_text},
};

/// The program in the documents that only copies: every copy is a doorbell of an SDMA queue, with its bytes.
#[test]
fn copies_are_seen_as_sdma_doorbells_with_the_right_bytes() {
    for (suite, asic) in RUNTIMES {
        let run = Scenario::new(suite, asic, &["copy-only", "-n", "4", "--bytes", "1000000"]).record();
        let compared = compare::all(&run);
        assert_eq!(run.did()["results"], "ok");
        let copies: Vec<&Copy> = run.copies().collect();
        for (direction, name) in [(Direction::H2d, "h2d"), (Direction::D2h, "d2h")] {
            let moved: Vec<_> = copies.iter().filter(|copy| copy.direction == Some(direction)).collect();
            let bytes: u64 = moved.iter().filter_map(|copy| copy.bytes).sum();
            assert_eq!(
                (moved.len(), bytes),
                (4, 4_000_000),
                "{suite} {asic} {name}: {copies:?}"
            );
            assert_eq!(run.report["copies"]["by_direction"][name]["bytes"], 4_000_000);
            assert!(moved.iter().all(|copy| copy.op == Some(CopyOp::Copy)));
        }
        // With chosen engines, each direction has its own.
        let engines = |direction: Direction| {
            let of = copies.iter().filter(move |copy| copy.direction == Some(direction));
            of.map(|copy| copy.engine).collect::<std::collections::BTreeSet<_>>()
        };
        let by_engine = run.truth.queues.iter().any(|queue| queue.kind == 4);
        println!(
            "{suite} {asic}: {compared:?}, engines {:?} and {:?}",
            engines(Direction::H2d),
            engines(Direction::D2h)
        );
        assert_eq!(copies.iter().any(|copy| copy.engine.is_some()), by_engine, "{copies:?}");
        assert_eq!(run.report["copies"]["unread"], 0);
        assert_eq!(
            run.report["copies"]["bytes"].as_u64(),
            run.did()["copied_bytes"].as_u64()
        );
    }
}

/// A copy has more commands than the eBPF program reads. The recorder reads the rest from the ring.
#[test]
fn a_long_copy_is_read_whole() {
    for (suite, asic) in each_release(0) {
        let run = Scenario::new(suite, asic, &["copy-only", "-n", "1", "--bytes", "100000000"]).record();
        compare::all(&run);
        let copies: Vec<&Copy> = run.copies().collect();
        let long: Vec<_> = copies.iter().filter(|copy| copy.bytes == Some(100_000_000)).collect();
        println!(
            "{suite} {asic}: {:?} commands",
            long.iter().map(|copy| copy.commands).collect::<Vec<_>>()
        );
        assert_eq!(long.len(), 2, "{copies:?}");
        assert_eq!(
            long.iter().map(|copy| copy.direction).collect::<Vec<_>>(),
            [Some(Direction::H2d), Some(Direction::D2h)]
        );
    }
}

#[test]
fn the_report_tells_what_was_moved() {
    let run = Scenario::new("trixie", "gfx942", &["copy-only", "-n", "2", "--bytes", "1048576"]).record();
    let text = report_text(run.trace.dir());
    let line = text
        .lines()
        .find(|line| line.contains("h2d"))
        .expect("a line of the report");
    assert_eq!(line.trim(), "d2h 2.0 MiB in 2, h2d 2.0 MiB in 2");
}

/// HIP copies ordinary memory in even rounds, without an allocation from the KFD where the runtime registers it as shared virtual
/// memory. The direction of every byte is known all the same, because each process was watched from its start.
#[test]
fn ordinary_memory_is_the_hosts() {
    for (suite, asic) in each_release(0) {
        let run = Scenario::hip(suite, asic, &["copy-only", "-n", "2", "--bytes", "8000000"]).record();
        compare::all(&run);
        let by_direction = run.report["copies"]["by_direction"].as_object().expect("directions");
        println!("{suite} {asic}: {by_direction:?}");
        let unknown: Vec<&Copy> = run
            .copies()
            .filter(|copy| copy.op == Some(CopyOp::Copy) && copy.direction.is_none())
            .collect();
        assert!(unknown.is_empty(), "{suite} {asic}: {unknown:x?}");
        for direction in ["h2d", "d2h"] {
            let bytes = by_direction[direction]["bytes"].as_u64().expect("a number");
            assert!(bytes >= 16_000_000, "{suite} {asic} {direction}: {by_direction:?}");
        }
    }
}
