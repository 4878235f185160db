//! Nested calls, phases, steps of launches, and copies.

use super::*;
use crate::tables::{CopiedBy, CopyOp, Doorbell, Progress};

fn driver(function: &str, enter_ns: u64, exit_ns: u64) -> Fact {
    Fact::DriverCall(sample::driver_call(function, (enter_ns, exit_ns)))
}

fn named(name: &'static str, enter_ns: u64, exit_ns: u64) -> Fact {
    Fact::Ioctl(sample::ioctl(name, (enter_ns, exit_ns)))
}

fn of(fact: Fact, change: impl FnOnce(&mut ApiCall)) -> Fact {
    let Fact::ApiCall(mut row) = fact else { unreachable!() };
    change(&mut row);
    Fact::ApiCall(row)
}

#[test]
fn calls_are_below_those_that_they_are_inside() {
    let found = answers([
        call(1, None, "hipStreamCreate", (100, Some(1_000))),
        call(2, Some(1), "hsa_queue_create", (200, Some(900))),
        named("CREATE_QUEUE", 300, 700),
        driver("kfd_ioctl_create_queue", 310, 690),
        driver("create_queue_cpsch", 320, 520),
        driver("add_queue_mes", 330, 430),
        driver("map_queues", 530, 540),
        named("CREATE_EVENT", 710, 720),
        // The same functions from another place have their own rows.
        call(3, None, "hsa_queue_create", (2_000, Some(2_100))),
        named("CREATE_QUEUE", 2_010, 2_030),
        // Of a thread that is in no ioctl.
        driver("create_queue_cpsch", 2_050, 2_060),
        named("CREATE_QUEUE", 3_000, 3_005),
    ]);
    let rows: Vec<_> = found
        .nesting
        .iter()
        .map(|row| (row.depth, &*row.layer, &*row.name, row.calls, row.total_ns, row.own_ns))
        .collect();
    let expected = [
        (0, "hip", "hipStreamCreate", 1, 900, 200),
        (1, "hsa", "hsa_queue_create", 1, 700, 290),
        (2, "ioctl", "CREATE_QUEUE", 1, 400, 20),
        (3, "driver", "kfd_ioctl_create_queue", 1, 380, 170),
        (4, "driver", "create_queue_cpsch", 1, 200, 100),
        (5, "driver", "add_queue_mes", 1, 100, 100),
        (4, "driver", "map_queues", 1, 10, 10),
        (2, "ioctl", "CREATE_EVENT", 1, 10, 10),
        (0, "hsa", "hsa_queue_create", 1, 100, 80),
        (1, "ioctl", "CREATE_QUEUE", 1, 20, 20),
        (0, "ioctl", "CREATE_QUEUE", 1, 5, 5),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn phases_are_those_of_each_process() {
    let launch = |time_ns| Fact::Dispatch(dispatch(0, time_ns, "k", None));
    let elsewhere = |fact: Fact| match fact {
        Fact::Ioctl(row) => Fact::Ioctl(Ioctl { pid: 9, ..row }),
        other => other,
    };
    let found = answers([
        named("GET_VERSION", 100, 110),
        call(1, None, "hipInit", (120, Some(220))),
        call(2, Some(1), "hsa_init", (130, Some(200))),
        named("CREATE_QUEUE", 150, 190),
        // Another process, which never launches.
        elsewhere(named("GET_VERSION", 300, 330)),
        launch(1_000),
        named("SET_EVENT", 1_500, 1_501),
        launch(3_000),
        named("SET_EVENT", 3_100, 3_102),
        named("DESTROY_QUEUE", 3_500, 3_600),
    ]);
    let counts = |ioctls, ioctl_ns, api_calls, api_ns, dispatches| PhaseCounts {
        ioctls,
        ioctl_ns,
        api_calls,
        api_ns,
        dispatches,
        copies: 0,
    };
    let names = |names: &[(&str, u64)]| names.iter().map(|&(name, n)| (name.to_owned(), n)).collect();
    let expected = [
        PhaseUse {
            phase: Phase::SetUp,
            ns: 900 + 30,
            counts: counts(3, 10 + 40 + 30, 1, 100, 0),
            by_ioctl: names(&[("CREATE_QUEUE", 1), ("GET_VERSION", 2)]),
        },
        PhaseUse {
            phase: Phase::Steady,
            ns: 2_000,
            counts: counts(1, 1, 0, 0, 2),
            by_ioctl: names(&[("SET_EVENT", 1)]),
        },
        PhaseUse {
            phase: Phase::End,
            ns: 600,
            counts: counts(2, 102, 0, 0, 0),
            by_ioctl: names(&[("DESTROY_QUEUE", 1), ("SET_EVENT", 1)]),
        },
    ];
    assert_eq!(found.phases, expected);
}

#[test]
fn steps_of_a_launch_have_their_times() {
    let launch = of(call(1, None, "hipModuleLaunchKernel", (100, Some(190))), |call| {
        call.dispatches = 1;
    });
    let packet = Dispatch {
        reserve_ns: Some(120),
        ..dispatch(0, 150, "k", Some(1))
    };
    let rung = |value, time_ns, read_index| {
        Fact::Doorbell(Doorbell {
            read_index,
            reserve_to_doorbell_ns: Some(30),
            ..sample::doorbell(value, time_ns)
        })
    };
    let sampled = |time_ns, read_index| {
        Fact::Progress(Progress {
            until_ns: time_ns + 4,
            ..sample::progress(time_ns, read_index, 2)
        })
    };
    let found = answers([
        launch,
        rung(0, 150, 0),
        Fact::Dispatch(packet),
        // Not taken at 160; taken by 184, and not before 160.
        sampled(160, 0),
        sampled(180, 1),
        // Taken between its doorbell and 304.
        rung(1, 200, 1),
        sampled(300, 2),
        named("GET_VERSION", 400, 1_400),
        // It waits, and says nothing of the cost of an ioctl.
        named("WAIT_EVENTS", 2_000, 9_000),
    ]);
    let times: Vec<_> = found
        .steps
        .iter()
        .map(|row| (row.step, row.count, row.ns.min, row.ns.max))
        .collect();
    let expected = [
        (Step::CallToReserve, 1, 20, 20),
        (Step::ReserveToDoorbell, 2, 30, 30),
        (Step::CallToDoorbell, 1, 50, 50),
        (Step::Call, 1, 90, 90),
        (Step::DoorbellToNotTaken, 2, 0, 10),
        (Step::DoorbellToTaken, 2, 34, 104),
        (Step::KfdIoctl, 1, 1_000, 1_000),
    ];
    assert_eq!(times, expected);
}

#[test]
fn copies_have_kinds_and_synchronous_ones_a_time() {
    let moved = |time_ns, bytes, direction| {
        Fact::Copy(Copy {
            bytes,
            direction,
            op: Some(CopyOp::Copy),
            ..sample::copy(time_ns)
        })
    };
    let sync = |number, function, time: (u64, u64), bytes| {
        of(call(number, None, function, (time.0, Some(time.1))), |call| {
            call.bytes = Some(bytes);
        })
    };
    let (up, down) = (Some(Direction::H2d), Some(Direction::D2h));
    let found = answers([
        sync(1, "hipMemcpy", (100, 300), 4_096),
        moved(150, Some(4_000), up),
        moved(160, Some(96), up),
        sync(2, "hipMemcpy", (400, 500), 64),
        moved(450, Some(64), down),
        // No submission: the processor copied.
        sync(3, "hipMemcpy", (600, 601), 8),
        // It returns before the bytes are there.
        sync(4, "hipMemcpyAsync", (700, 701), 1_000),
        moved(700, Some(1_000), up),
        moved(800, None, None),
        sync(5, "hipMemcpy", (850, 950), 5),
        Fact::Copy(Copy {
            by: Some(CopiedBy::Kernel),
            bytes: Some(5),
            ..sample::copy(900)
        }),
    ]);
    let kinds: Vec<_> = found
        .copies
        .iter()
        .map(|row| (row.by, row.direction, row.count, row.unknown, row.bytes))
        .collect();
    let sdma = Some(CopiedBy::Sdma);
    let expected = [
        (sdma, up, 3, 0, 5_096),
        (sdma, down, 1, 0, 64),
        (Some(CopiedBy::Kernel), None, 1, 0, 5),
        (sdma, None, 1, 1, 0),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found.copies[0].size, Some(Range { min: 96, max: 4_000 }));
    let sync: Vec<_> = found
        .sync_copies
        .iter()
        .map(|row| {
            let total = row.ns.map(|ns| ns.total);
            (row.submitted, row.direction, row.calls, row.bytes, total)
        })
        .collect();
    let expected = [
        (true, up, 1, 4_096, Some(200)),
        (true, down, 1, 64, Some(100)),
        (false, None, 1, 8, Some(1)),
        (true, None, 1, 5, Some(100)),
    ];
    assert_eq!(sync, expected);
}

#[test]
fn invented_engines_share_a_row_beyond_the_limit() {
    let copies = (0..1_030).map(|engine| {
        Fact::Copy(Copy {
            engine: Some(engine),
            bytes: Some(8),
            ..sample::copy(100)
        })
    });
    let rows = answers(copies).copies;
    assert_eq!(rows.len(), 1_025);
    let others = rows.iter().find(|row| row.path.is_none()).unwrap();
    assert_eq!((others.count, others.bytes, others.engine), (6, 48, None));
}
