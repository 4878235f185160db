use super::*;
use crate::placement::Placement;
use crate::tables::Process;

fn processes(trace: &Trace) -> Vec<Process> {
    let each = trace.facts.iter();
    each.filter_map(|fact| {
        if let Fact::Process(process) = fact {
            Some(process.clone())
        } else {
            None
        }
    })
    .collect()
}

/// The report about a process overtakes its fork, while the process that had the id before lingers.
#[test]
fn a_report_about_a_process_is_not_about_the_one_before() {
    let mut trace = Trace::created();
    trace.apply(&Event::Exit(by(100, PID)));
    let placement = Placement {
        unit: Some("a.service".to_owned()),
        ..Placement::default()
    };
    trace.apply(&Event::Placed(by(150, PID), &placement));
    let parent = Origin {
        time_ns: 120,
        pid: 9,
        tid: 9,
    };
    trace.apply(&Event::Fork(parent, PID));
    trace.finish();
    let of_pid = processes(&trace).into_iter().filter(|process| process.pid == PID);
    let lives: Vec<_> = of_pid
        .map(|process| (process.exit_ns, process.parent, process.unit))
        .collect();
    assert_eq!(lives, [(Some(100), None, None), (None, Some(9), placement.unit)]);
}

/// Two programs of a process run one after the other. Both hand doorbells over, and the second one's report arrives before the
/// event of the first one's end.
#[test]
fn facts_of_the_next_program_stay_after_the_end_of_the_former() {
    let mut trace = Trace::created();
    trace.apply(&Event::Thunk(by(50, TID), Some(true)));
    trace.apply(&Event::Thunk(by(150, PID), Some(true)));
    trace.apply(&Event::Exec(by(100, PID), b"other"));
    let paths = [(90, 0), (120, 1), (160, 2)].map(|(time_ns, index)| {
        trace.ring(
            doorbell(time_ns, index, index..index + 1, 0, index + 1),
            &[dispatch(index)],
        );
        trace.dispatches().pop().map(|dispatch| dispatch.path)
    });
    let (thunk, doorbell) = (Some(tables::Path::Thunk), Some(tables::Path::Doorbell));
    assert_eq!(paths, [thunk, doorbell, thunk]);
}

/// A report about a runtime's doorbells applies to what the process publishes, until it runs another program.
#[test]
fn what_a_process_hands_over_goes_by_the_thunk() {
    let paths = |trace: &Trace| trace.dispatches().iter().map(|d| d.path).collect::<Vec<_>>();
    let mut trace = Trace::created();
    trace.apply(&Event::Thunk(by(50, TID), Some(false)));
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.apply(&Event::Thunk(by(150, TID), Some(true)));
    trace.ring(doorbell(200, 1, 1..2, 0, 2), &[dispatch(1)]);
    assert_eq!(paths(&trace), [tables::Path::Doorbell, tables::Path::Thunk]);
    // A repeated report, which overtakes records, is valid since the first report.
    trace.apply(&Event::Thunk(by(280, TID), Some(true)));
    trace.ring(doorbell(250, 2, 2..3, 0, 3), &[dispatch(2)]);
    assert_eq!(paths(&trace)[2], tables::Path::Thunk);
    // Another runtime was loaded, and behaves differently.
    trace.apply(&Event::Thunk(by(290, TID), None));
    trace.ring(doorbell(295, 3, 3..4, 0, 4), &[dispatch(3)]);
    assert_eq!(paths(&trace)[3], tables::Path::Doorbell);
    trace.apply(&Event::Exec(by(300, PID), b"other"));
    trace.finish();
    let told: Vec<_> = processes(&trace).iter().map(|process| process.thunk).collect();
    assert_eq!(told, [None]);
}

/// A report that arrives long after its process exited starts no process: nothing would end it.
#[test]
fn what_arrives_after_the_row_of_a_process_makes_no_other_one() {
    let mut trace = Trace::created();
    trace.apply(&Event::Exit(by(100, PID)));
    // Another process, long after that.
    let other = |time_ns| Origin {
        time_ns,
        pid: PID + 1,
        tid: PID + 1,
    };
    trace.apply(&Event::Fork(other(5_000_000_000), PID + 2));
    assert_eq!(processes(&trace).len(), 1);
    trace.apply(&Event::Thunk(by(90, TID), Some(true)));
    assert_eq!(trace.model.processes().filter(|process| process.pid == PID).count(), 0);
    // The id belongs to a new process.
    trace.apply(&Event::Fork(other(6_000_000_000), PID));
    trace.finish();
    let of_pid = processes(&trace).into_iter().filter(|process| process.pid == PID);
    let exits: Vec<_> = of_pid.map(|process| process.exit_ns).collect();
    assert_eq!(exits, [Some(100), None]);
}

/// A report about a process that got the id of one that just exited says nothing about that one.
#[test]
fn a_report_about_the_next_process_leaves_the_former_as_it_was() {
    let mut trace = Trace::created();
    trace.apply(&Event::Thunk(by(50, TID), Some(false)));
    trace.apply(&Event::Exit(by(100, PID)));
    trace.apply(&Event::Thunk(by(150, PID), Some(true)));
    trace.finish();
    let of_pid = processes(&trace).into_iter().filter(|process| process.pid == PID);
    let told: Vec<_> = of_pid.map(|process| (process.exit_ns, process.thunk)).collect();
    assert_eq!(told, [(Some(100), Some(false)), (None, Some(true))]);
}

#[test]
fn a_process_is_known_from_its_first_event() {
    let mut trace = Trace::new();
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.apply(&Event::Exec(by(90, PID), b"app\0\0"));
    trace.finish();
    let expected = Process {
        pid: PID,
        parent: None,
        comm: "app".to_owned(),
        first_ns: 90,
        exit_ns: None,
        thunk: None,
        unit: None,
        container: None,
        pod: None,
    };
    assert_eq!(processes(&trace), [expected]);
}

#[test]
fn a_process_runs_where_its_last_cgroup_said() {
    let mut trace = Trace::created();
    let unit = |name: &str| Placement {
        unit: Some(name.to_owned()),
        ..Placement::default()
    };
    let in_pod = Placement {
        pod: Some("1".to_owned()),
        container: Some("2".to_owned()),
        unit: None,
    };
    trace.apply(&Event::Placed(by(10, PID), &unit("a.service")));
    trace.apply(&Event::Exec(by(20, PID), b"other"));
    trace.apply(&Event::Placed(by(30, PID), &in_pod));
    trace.apply(&Event::Exit(by(100, PID)));
    trace.apply(&Event::Exit(Origin {
        time_ns: 100 + LINGER_NS,
        pid: 9,
        tid: 9,
    }));
    // It was reported: this starts no process.
    trace.apply(&Event::Placed(by(90, PID), &unit("b.service")));
    trace.finish();
    let of_pid = processes(&trace).into_iter().filter(|process| process.pid == PID);
    let places: Vec<_> = of_pid
        .map(|process| (process.unit, process.container, process.pod))
        .collect();
    assert_eq!(places, [(None, in_pod.container, in_pod.pod)]);
}

#[test]
fn a_child_has_a_parent_and_its_program_but_none_of_its_queues() {
    let mut trace = Trace::created();
    trace.apply(&Event::Exec(by(5, PID), b"app"));
    trace.apply(&Event::Fork(by(50, TID), 8));
    let child = Doorbell {
        origin: Origin {
            time_ns: 60,
            pid: 8,
            tid: 8,
        },
        ..doorbell(60, 0, 0..1, 0, 1)
    };
    trace.ring(child, &[dispatch(0)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|queue| (queue.pid, queue.dispatches))
        .collect();
    assert_eq!(queues, [(PID, 0), (8, 1)]);
    let child = processes(&trace).pop().unwrap();
    assert_eq!(
        (child.pid, child.parent, child.comm.as_str(), child.first_ns),
        (8, Some(PID), "app", 50)
    );
}

#[test]
fn an_exit_ends_queues_then_the_process_and_late_doorbells_count() {
    let mut trace = Trace::created();
    trace.apply(&Event::Exit(by(500, PID)));
    trace.ring(doorbell(400, 0, 0..1, 0, 1), &[dispatch(0)]);
    // Threads other than the first may ring for a moment longer.
    trace.ring(doorbell(510, 1, 1..2, 0, 2), &[dispatch(1)]);
    assert_eq!((trace.queues().len(), processes(&trace).len()), (0, 0));
    trace.apply(&Event::Exit(Origin {
        time_ns: 500 + LINGER_NS,
        pid: 9,
        tid: 9,
    }));
    let ends: Vec<_> = trace.facts.iter().rev().take(2).collect();
    let [Fact::Process(process), Fact::Queue(queue)] = ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!((process.pid, process.exit_ns), (PID, Some(500)));
    assert_eq!((queue.dispatches, queue.destroyed_ns), (2, Some(500)));
    // Much later, the event can only belong to another process with that id.
    trace.ring(doorbell(9 * LINGER_NS, 1, 1..2, 0, 2), &[dispatch(1)]);
    assert_eq!(trace.finish().len(), 2);
}

#[test]
fn a_new_program_has_none_of_the_old_ones_queues() {
    let mut trace = Trace::created();
    trace.apply(&Event::Exec(by(500, PID), b"next"));
    trace.ring(doorbell(600, 0, 0..1, 0, 1), &[dispatch(0)]);
    let queues: Vec<_> = trace
        .finish()
        .iter()
        .map(|queue| (queue.dispatches, queue.destroyed_ns))
        .collect();
    assert_eq!(queues, [(0, Some(500)), (1, None)]);
}

#[test]
fn an_id_can_be_used_again() {
    let mut trace = Trace::new();
    trace.apply(&Event::Exit(Origin {
        time_ns: 100,
        pid: 8,
        tid: 8,
    }));
    trace.apply(&Event::Fork(by(200, TID), 8));
    trace.finish();
    let lives: Vec<_> = processes(&trace)
        .iter()
        .map(|p| (p.pid, p.parent, p.first_ns, p.exit_ns))
        .collect();
    assert_eq!(
        lives,
        [
            (8, None, 100, Some(100)),
            (PID, None, 200, None),
            (8, Some(PID), 200, None)
        ]
    );
}
