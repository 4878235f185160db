//! Attaching to programs that submit through HIP: the trace has the calls from the attach on, each linked to what it submits.

use std::collections::BTreeMap;

use tracer_core::tables::{ApiCall, Dispatch, QueueOrigin};
use tracer_e2e::{
    compare,
    dispatcher::Call,
    running::Program,
    scenario::{Run, Scenario, folder},
};

/// Checks adopted queues: every packet from the first claimed one on equals the device's, with the name of its kernel. Returns the
/// dispatches that the program launched.
fn dispatches(run: &Run) -> Vec<&Dispatch> {
    let mut own = Vec::new();
    for queue in run
        .queues()
        .filter(|queue| queue.origin == QueueOrigin::Adopted && queue.is_aql())
    {
        let truth = run.truth_of(queue);
        let first = queue.first_index.expect("something was rung");
        let claimed: BTreeMap<u64, &Dispatch> = run
            .dispatches()
            .filter(|dispatch| dispatch.queue == queue.queue)
            .map(|dispatch| (dispatch.index, dispatch))
            .collect();
        for packet in truth.packets.iter().filter(|packet| packet.index >= first) {
            if packet.kind == "kernel_dispatch" {
                let dispatch = claimed
                    .get(&packet.index)
                    .unwrap_or_else(|| panic!("{packet:?} is missing"));
                compare::dispatch_fields(packet, dispatch);
            }
        }
        let last = truth.packets.iter().map(|packet| packet.index).max();
        assert_eq!((queue.last_index, queue.unread), (last, 0), "{queue:?}");
        assert_eq!(
            last.map(|last| last - first + 1),
            Some(queue.published),
            "a gap in {queue:?}"
        );
        own.extend(claimed.into_values());
    }
    own
}

/// Checks that each call of the program that was entered when all probes were in place has its row, in order.
fn calls(run: &Run) -> Vec<(&Call, &ApiCall)> {
    let mut rows: Vec<&ApiCall> = run.api_calls().filter(|call| call.parent.is_none()).collect();
    rows.sort_by_key(|row| row.enter_ns);
    let first = rows.first().expect("calls").enter_ns;
    let log = &run.log.as_ref().expect("the dispatcher's log").calls;
    let mut made: Vec<&Call> = log.iter().filter(|call| call.end_ns > first).collect();
    made.sort_by_key(|call| call.start_ns);
    let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        names(made.iter().map(|call| call.call.as_str()).collect()),
        names(rows.iter().map(|row| row.function.as_ref()).collect())
    );
    made.into_iter().zip(rows).collect()
}

#[test]
fn calls_and_what_they_submit_are_linked_from_the_attach_on() {
    for (suite, asic) in [("trixie", "gfx1100"), ("experimental", "gfx942")] {
        let scenario = Scenario::hip(suite, asic, &["steady", "--round=64", "--pause=0"]);
        let run = Program::of(folder(), &scenario).to_the_end(&["--api", "hip"]);
        compare::no_losses(&run);
        let (dispatches, calls) = (dispatches(&run), calls(&run));
        let of_call: BTreeMap<u64, &Dispatch> = dispatches
            .iter()
            .filter_map(|dispatch| Some((dispatch.api_call?, *dispatch)))
            .collect();
        let launches: Vec<_> = calls.iter().filter(|(made, _)| made.kernel.is_some()).collect();
        println!("{suite}: {} calls, {} of them launches", calls.len(), launches.len());
        assert!(launches.len() >= 1000, "{suite}");
        for (made, row) in launches {
            assert_eq!(row.ret, Some(i64::from(made.result)), "{made:?}");
            let dispatch = of_call
                .get(&row.call)
                .unwrap_or_else(|| panic!("{made:?} has no dispatch"));
            assert_eq!(dispatch.kernel.as_deref(), made.kernel.as_deref(), "{made:?}");
            assert_eq!((Some(dispatch.grid), row.dispatches), (made.grid, 1), "{made:?}");
            assert_eq!(dispatch.stream, row.stream, "{made:?}");
        }
    }
}
