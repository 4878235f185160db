//! HIP programs, on every release of HIP: dispatches, doorbells, copies and ioctls equal the simulator's truth field by field, and
//! launches equal the calls that the program reports.

use tracer_core::tables::{Copy, CopyOp, Dispatch, Fact, Ioctl};
use tracer_e2e::{
    compare::{self, Compared},
    dispatcher::Call,
    scenario::{RUNTIMES, Run, Scenario, each_release},
};

/// Records the workload on these releases of HIP, compares everything, and passes each run to a check.
fn on(
    runtimes: impl IntoIterator<Item = (&'static str, &'static str)>,
    workload: &[&'static str],
    check: impl Fn(&Run, &Compared),
) {
    let scenarios = runtimes
        .into_iter()
        .map(|(suite, asic)| Scenario::hip(suite, asic, workload));
    compare::each(scenarios, |run, compared| {
        assert_eq!(run.did()["api"], "hip");
        check(run, compared);
    });
}

fn calls(run: &Run, wanted: impl Fn(&Call) -> bool) -> Vec<&Call> {
    let log = run.log.as_ref().expect("the dispatcher's log");
    assert!(log.calls.iter().all(|call| call.result == 0), "{:?}", log.calls);
    log.calls.iter().filter(|call| wanted(call)).collect()
}

/// Returns the dispatches that a thread made during one of its calls.
fn within<'r>(run: &'r Run, call: &Call) -> Vec<&'r Dispatch> {
    let during = |d: &&Dispatch| d.tid == call.tid && (call.start_ns..=call.end_ns).contains(&d.time_ns);
    run.dispatches().filter(during).collect()
}

/// Returns the dispatches of the size that the call requests. The first launch of a kernel may also cause ROCr's own kernels.
fn of_size<'r>(run: &'r Run, launch: &Call) -> Vec<&'r Dispatch> {
    let sized = |d: &&Dispatch| {
        let workgroup = d.workgroup.map(u32::from);
        (Some(d.grid), Some(workgroup)) == (launch.grid, launch.workgroup)
    };
    within(run, launch).into_iter().filter(sized).collect()
}

/// Checks that every launch is a dispatch of its kernel and size, published during the call: by the calling thread's doorbell, or
/// by the doorbell of another thread that reserved a later packet of the same queue and was faster.
fn launches(run: &Run) -> usize {
    let launches = calls(run, |call| call.kernel.is_some());
    let mut by_others: Vec<&Call> = Vec::new();
    for launch in &launches {
        // The reserve of a packet is not known in another thread than the one that reserved it.
        let made: Vec<_> = of_size(run, launch)
            .into_iter()
            .filter(|d| d.reserve_ns.is_some())
            .collect();
        match made[..] {
            [] => by_others.push(launch),
            [own] => assert_eq!(own.kernel.as_deref(), launch.kernel.as_deref(), "{own:?}"),
            _ => panic!("{launch:?} made {made:?}"),
        }
    }
    let mut left: Vec<&Dispatch> = run.dispatches().filter(|d| d.reserve_ns.is_none()).collect();
    left.sort_by_key(|d| d.time_ns);
    // The call that returned first takes the first dispatch that fits, so that every call that can have one gets one.
    by_others.sort_by_key(|launch| launch.end_ns);
    for launch in by_others {
        let fits = |d: &&Dispatch| {
            d.tid != launch.tid
                && (launch.start_ns..=launch.end_ns).contains(&d.time_ns)
                && Some(d.grid) == launch.grid
                && Some(d.workgroup.map(u32::from)) == launch.workgroup
                && d.kernel.as_deref() == launch.kernel.as_deref()
        };
        let found = left.iter().position(fits);
        let found = found.unwrap_or_else(|| panic!("{launch:?} made nothing of {left:?}"));
        left.remove(found);
    }
    launches.len()
}

/// As the sources say: between two launches there are only the program's own stores.
#[test]
fn compute_only_has_no_ioctl_between_its_launches() {
    on(
        each_release(1),
        &["compute-only", "-n", "100", "--pipelined"],
        |run, _| {
            let made = calls(run, |call| call.kernel.is_some());
            assert_eq!(launches(run), 100);
            let (first, last) = (made.first().expect("the first"), made.last().expect("the last"));
            let of = |call: &Call| of_size(run, call).first().map(|d| d.time_ns).expect("a dispatch");
            let between = of(first)..of(last);
            let ioctls = run.facts.iter().filter_map(|fact| match fact {
                Fact::Ioctl(ioctl) if ioctl.tid == first.tid => Some(ioctl),
                _ => None,
            });
            let ioctls: Vec<&Ioctl> = ioctls.filter(|ioctl| between.contains(&ioctl.enter_ns)).collect();
            assert!(ioctls.is_empty(), "{ioctls:?}");
        },
    );
}

/// Every byte is copied by SDMA: no kernel is launched during copies.
#[test]
fn copy_only_goes_by_sdma() {
    on(
        each_release(0),
        &["copy-only", "-n", "4", "--bytes", "1000000"],
        |run, _| {
            let copies = calls(run, |call| call.direction.is_some());
            assert_eq!(copies.len(), 8);
            let (first, last) = (copies.first().expect("the first"), copies.last().expect("the last"));
            let during = first.start_ns..=last.end_ns;
            assert!(run.dispatches().all(|d| !during.contains(&d.time_ns)));
            let submitted = run.facts.iter().filter_map(|fact| match fact {
                Fact::Copy(copy) if during.contains(&copy.time_ns) => Some(copy),
                _ => None,
            });
            let submitted: Vec<&Copy> = submitted.collect();
            assert!(submitted.len() >= copies.len(), "{submitted:?}");
            // The device copied in these queues what the program requested.
            let asked: u64 = copies.iter().filter_map(|call| call.bytes).sum();
            assert_eq!(run.did()["copied_bytes"].as_u64(), Some(asked));
            assert_eq!(run.truth.copied(), asked);
        },
    );
}

/// The copies and fills that HIP makes by its own kernels are dispatches too.
#[test]
fn mixed() {
    on(RUNTIMES, &["mixed"], |run, compared| {
        assert_eq!(launches(run), 3);
        assert!(compared.copies >= 4, "{compared:?}");
        assert!(compared.named_by_device >= 2, "{compared:?}");
        for (function, kernel) in [
            ("hipMemsetAsync", "__amd_rocclr_fillBufferAligned"),
            ("hipMemcpyAsync", "__amd_rocclr_copyBuffer"),
        ] {
            let own = |call: &&Call| {
                call.call == function && call.direction.as_deref().is_none_or(|way| way == "device-to-device")
            };
            let calls = calls(run, |call| own(&call));
            assert_eq!(calls.len(), 1, "{function}");
            let made = within(run, calls[0]);
            let names: Vec<_> = made.iter().map(|d| d.kernel.as_deref()).collect();
            assert_eq!(names, [Some(kernel)], "{function}: {made:?}");
            assert_eq!(run.truth.kernel_name(made[0].pid, made[0].kernel_object), Some(kernel));
            // It is a row of copies, too, whose bytes only its call would show.
            let dispatch = made[0];
            let is_it = |copy: &&Copy| (copy.queue, copy.begin) == (Some(dispatch.queue), 64 * dispatch.index);
            let copies: Vec<&Copy> = run.copies().filter(is_it).collect();
            assert_eq!(copies.len(), 1, "{function}");
            let op = if function == "hipMemcpyAsync" {
                CopyOp::Copy
            } else {
                CopyOp::Fill
            };
            assert!(copies[0].is_kernel(), "{copies:?}");
            assert_eq!(
                (copies[0].op, copies[0].bytes, copies[0].time_ns),
                (Some(op), None, dispatch.time_ns)
            );
        }
    });
}

#[test]
fn every_function_that_launches() {
    on(each_release(0), &["launches"], |run, _| {
        for function in [
            "hipModuleLaunchKernel",
            "hipLaunchKernel",
            "hipExtModuleLaunchKernel",
            "hipExtLaunchKernel",
            "hipLaunchCooperativeKernel",
        ] {
            assert_eq!(calls(run, |call| call.call == function).len(), 4, "{function}");
        }
        assert_eq!(launches(run), 20);
    });
}

#[test]
fn graphs() {
    on(each_release(1), &["graph", "-n", "5", "--nodes", "20"], |run, _| {
        for graph in calls(run, |call| call.call == "hipGraphLaunch") {
            let made = within(run, graph);
            assert_eq!(Some(made.len() as u32), graph.kernels, "{graph:?}");
            assert!(
                made.iter().all(|d| d.kernel.as_deref() == Some("vector_add")),
                "{made:?}"
            );
        }
        // Captured launches, which do not run.
        let captured = calls(run, |call| call.kernel.is_some());
        assert_eq!(captured.len(), 20);
        assert!(captured.iter().all(|call| of_size(run, call).is_empty()));
    });
}

#[test]
fn streams_with_a_thread_each() {
    on(
        each_release(0),
        &["streams", "--streams", "8", "-n", "100"],
        |run, _| {
            assert_eq!(launches(run), 801);
        },
    );
}
