//! Times of dispatches by the GPU's clock, from their completion signals.

use std::cell::Cell;

use tracer_core::tables::Fact;
use tracer_e2e::{
    compare::{self, monotonic_ns},
    scenario::{Run, Scenario, each_release, report_text},
};

/// Counts the dispatches that wrote their times to a signal.
fn timed_by_device(run: &Run) -> usize {
    let of = |queue: &tracer_e2e::truth::Queue| {
        let packets = queue.packets.iter();
        packets
            .filter(|packet| packet.kind == "kernel_dispatch" && queue.times.contains_key(&packet.index))
            .count()
    };
    run.truth.queues.iter().map(of).sum()
}

/// Returns the largest error of a time that the runtime computes, in ns. The time is between two of the runtime's readings of the
/// GPU's clock, and each reading reads the two clocks one after the other.
fn runtimes_error_ns(run: &Run) -> u64 {
    // `gpu_id` of `struct kfd_ioctl_get_clock_counters_args`; 0: the host's clock only.
    const GPU_ID: usize = 32;
    let of_gpu = |arg: &[u8]| arg.get(GPU_ID..GPU_ID + 4).is_some_and(|id| id != [0; 4]);
    let readings = run.facts.iter().filter_map(|fact| match fact {
        Fact::Ioctl(ioctl) if ioctl.name == "GET_CLOCK_COUNTERS" && ioctl.arg_in.as_deref().is_some_and(of_gpu) => {
            Some(ioctl.exit_ns - ioctl.enter_ns)
        }
        _ => None,
    });
    2 * readings.max().expect("the runtime reads the clock")
}

/// A program that waits for each dispatch and reads its times, as a program with HIP's events does. It reuses one signal, and the
/// last time is found before the queue is destroyed.
#[test]
fn each_dispatch_of_a_program_that_asks_has_the_times_that_it_gets() {
    let scenarios =
        each_release(0).map(|(suite, asic)| Scenario::new(suite, asic, &["compute-only", "-n", "40", "--profile"]));
    compare::each(scenarios, |run, compared| {
        assert_eq!((compared.timed, compared.dated), (40, 40));
        assert_eq!(timed_by_device(run), 40);
        let asked = run.did()["gpu_times"].clone();
        let asked: Vec<[u64; 2]> = serde_json::from_value(asked).expect("pairs of ns");
        let mut recorded: Vec<_> = run.gpu_times().collect();
        recorded.sort_by_key(|time| time.index);
        assert_eq!(recorded.len(), asked.len());
        let runtimes_error_ns = runtimes_error_ns(run);
        for (time, [start, end]) in recorded.iter().zip(asked) {
            let error = time.clock_error_ns.expect("dated") + runtimes_error_ns + 20_000;
            for (recorded, asked) in [(time.start_ns, start), (time.end_ns, end)] {
                let off = recorded.expect("dated").abs_diff(monotonic_ns(asked));
                assert!(off <= error, "off by {off} ns: {time:?}");
            }
        }
        let kernels = run.report["kernels"].as_array().expect("kernels");
        let sums = kernels.iter().find(|kernel| kernel["timed"] == 40).expect("the kernel");
        let total: u64 = recorded
            .iter()
            .map(|time| time.end_ns.unwrap_or(0) - time.start_ns.unwrap_or(0))
            .sum();
        assert_eq!((&sums["count"], &sums["gpu_ns"]["count"]), (&40.into(), &40.into()));
        assert_eq!(sums["gpu_ns"]["total"], total);
        let text = report_text(run.trace.dir());
        let shown = tracer_core::units::duration(total);
        let mut lines = text.lines().filter(|line| line.contains(&shown));
        assert!(
            lines.any(|line| line.split_whitespace().any(|word| word == "40")),
            "{shown}: {text}"
        );
    });
}

/// Threads ring for each other's packets. A packet whose signal was read too late has no time, and none has a wrong one.
#[test]
fn with_several_producers_no_time_is_anothers() {
    for workload in [["multi-thread", "--profile"], ["multi-queue", "--profile"]] {
        let scenarios = each_release(1).map(|(suite, asic)| Scenario::new(suite, asic, &workload));
        compare::each(scenarios, |run, compared| {
            println!("{} of {} timed", compared.timed, timed_by_device(run));
            assert!(compared.timed > 0);
        });
    }
}

/// The program requests no times, so the runtime reads the GPU's clock when it likes, in some releases only once. Only the last
/// packet has a signal.
#[test]
fn without_a_second_reading_of_the_clock_there_are_ticks() {
    let once = Cell::new(0);
    let scenarios = each_release(1)
        .map(|(suite, asic)| Scenario::new(suite, asic, &["batch", "--packets", "20", "-n", "90", "--profile"]));
    compare::each(scenarios, |run, compared| {
        assert_eq!((compared.timed, timed_by_device(run)), (1, 1));
        let read = |ioctl: &&tracer_e2e::truth::Ioctl| {
            // Calls for the host's clock have no GPU id at byte 32.
            ioctl.name.as_deref() == Some("GET_CLOCK_COUNTERS") && ioctl.arg_in[64..72] != *"00000000"
        };
        let readings = run.truth.ioctls.iter().filter(read).count();
        println!("{readings} readings");
        assert!(readings > 0 && (readings > 1 || compared.dated == 0));
        if readings == 1 {
            once.set(once.get() + 1);
            let kernels = run.report["answers"]["kernels"].as_array().expect("kernels");
            let timed: Vec<_> = kernels.iter().filter(|kernel| kernel["timed"] == 1).collect();
            assert!(timed.len() == 1 && timed[0]["gpu_ns"].is_null(), "{kernels:?}");
        }
    });
    assert!(once.get() > 0);
}

#[test]
fn queues_that_are_not_profiled_have_no_times() {
    let scenarios = each_release(0).map(|(suite, asic)| Scenario::new(suite, asic, &["compute-only", "-n", "5"]));
    compare::each(scenarios, |run, compared| {
        assert_eq!((compared.timed, timed_by_device(run)), (0, 0));
    });
}

/// HIP profiles its queues, and takes its signals from a pool.
#[test]
fn dispatches_through_hip_have_times() {
    for workload in [
        &["compute-only", "-n", "30"][..],
        &["launches", "-n", "2"],
        &["streams", "--streams", "3", "-n", "20"],
    ] {
        let scenarios = each_release(1).map(|(suite, asic)| Scenario::hip(suite, asic, workload));
        compare::each(scenarios, |run, compared| {
            println!(
                "{} of {} timed, {} dated",
                compared.timed,
                timed_by_device(run),
                compared.dated
            );
            assert_eq!(compared.timed, timed_by_device(run));
            // HIP assigns signals to packets that events refer to. This workload uses events.
            assert!(compared.timed > 0 || workload[0] != "launches");
        });
    }
}

/// A process exits without releasing anything. tracer reads the times during the exit.
#[test]
fn the_last_times_of_a_process_that_just_ends_are_known() {
    for leave in ["exit", "kill"] {
        let workload = ["compute-only", "-n", "3", "--profile", "--leave", leave];
        let scenario = Scenario::new("sid", "gfx942", &workload);
        let run = if leave == "exit" {
            scenario.record()
        } else {
            scenario.record_any()
        };
        let compared = compare::device(&run);
        assert_eq!((compared.timed, timed_by_device(&run)), (3, 3));
    }
}
