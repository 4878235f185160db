use super::*;

const ADD_1: ReserveOp = ReserveOp::Add { n: 1 };

fn reserve_times(trace: &Trace) -> Vec<(u64, Option<u64>)> {
    trace
        .dispatches()
        .iter()
        .map(|dispatch| (dispatch.index, dispatch.reserve_ns))
        .collect()
}

fn latencies(trace: &Trace) -> Vec<Option<u64>> {
    trace
        .doorbells()
        .iter()
        .map(|doorbell| doorbell.reserve_to_doorbell_ns)
        .collect()
}

#[test]
fn a_dispatch_has_the_time_of_its_reserve() {
    let mut trace = Trace::created();
    trace.reserve(90, TID, 0, ADD_1);
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.ring(doorbell(130, 0, 1..1, 0, 1), &[]);
    assert_eq!(
        (reserve_times(&trace), latencies(&trace)),
        (vec![(0, Some(90))], vec![Some(10), None])
    );
}

#[test]
fn a_batch_ends_at_the_doorbells_value_wherever_it_was_thought_to_begin() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ReserveOp::Add { n: 2 });
    // Another thread reserved in between, and its packet is already valid.
    trace.reserve(81, 71, 0, ADD_1);
    trace.ring(doorbell(100, 2, 0..3, 0, 3), &[dispatch(0), dispatch(1), dispatch(2)]);
    assert_eq!(reserve_times(&trace), [(0, None), (1, Some(80)), (2, Some(80))]);
    trace.ring(
        Doorbell {
            origin: by(120, 71),
            ..doorbell(120, 0, 3..3, 0, 3)
        },
        &[],
    );
    assert_eq!(latencies(&trace), [Some(20), Some(39)]);
}

#[test]
fn one_doorbell_can_be_for_several_reserves() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ADD_1);
    trace.reserve(85, TID, 1, ReserveOp::Add { n: 2 });
    trace.ring(doorbell(100, 2, 0..3, 0, 3), &[dispatch(0), dispatch(1), dispatch(2)]);
    assert_eq!(reserve_times(&trace), [(0, Some(80)), (1, Some(85)), (2, Some(85))]);
    assert_eq!(latencies(&trace), [Some(15)]);
}

#[test]
fn a_reserve_above_the_value_waits_for_its_own_doorbell() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ADD_1);
    trace.reserve(85, TID, 1, ADD_1);
    // The write index does not help, because another thread has reserved, too.
    trace.ring(doorbell(100, 0, 0..1, 0, 3), &[dispatch(0)]);
    trace.ring(doorbell(110, 1, 1..2, 0, 3), &[dispatch(1)]);
    assert_eq!(reserve_times(&trace), [(0, Some(80)), (1, Some(85))]);
    assert_eq!(latencies(&trace), [Some(20), Some(25)]);
}

#[test]
fn a_batch_can_be_rung_packet_by_packet() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ReserveOp::Add { n: 2 });
    trace.ring(doorbell(100, 0, 0..1, 0, 2), &[dispatch(0)]);
    trace.ring(doorbell(110, 1, 1..2, 0, 2), &[dispatch(1)]);
    assert_eq!(reserve_times(&trace), [(0, Some(80)), (1, Some(80))]);
}

#[test]
fn stores_and_exchanges_say_where_they_lie() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ReserveOp::Store { to: 2 });
    trace.ring(doorbell(100, 1, 0..2, 0, 2), &[dispatch(0), dispatch(1)]);
    trace.reserve(110, TID, 2, ReserveOp::Cas { from: 2, to: 3 });
    trace.ring(doorbell(120, 2, 2..3, 0, 3), &[dispatch(2)]);
    assert_eq!(reserve_times(&trace), [(0, Some(80)), (1, Some(80)), (2, Some(110))]);
}

#[test]
fn what_the_collector_reads_after_the_doorbell_does_not_wait_for_another() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ReserveOp::Add { n: 2 });
    let rung = doorbell(100, 1, 0..2, 0, 2);
    trace.ring(rung, &[dispatch(0)]);
    trace.reserve(105, TID, 2, ADD_1);
    trace.packets(Doorbell { first: 1, ..rung }, &[dispatch(1)]);
    assert_eq!(reserve_times(&trace), [(0, Some(80)), (1, Some(80))]);
}

#[test]
fn packets_whose_doorbell_was_lost_come_out_at_the_end() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ADD_1);
    trace.packets(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    assert!(trace.indexes().is_empty());
    assert_eq!(
        (trace.finish()[0].dispatches, reserve_times(&trace)),
        (1, vec![(0, None)])
    );
}

#[test]
fn a_reserve_can_come_before_its_queue_is_known() {
    let mut trace = Trace::new();
    trace.reserve(80, TID, 40, ADD_1);
    trace.ring(doorbell(100, 40, 40..41, 40, 41), &[dispatch(40)]);
    assert_eq!(reserve_times(&trace), [(40, Some(80))]);
}

#[test]
fn what_is_reserved_and_never_published_is_pending() {
    let mut trace = Trace::created();
    trace.reserve(80, TID, 0, ReserveOp::Add { n: 3 });
    trace.ring(doorbell(100, 0, 0..1, 0, 1), &[dispatch(0)]);
    assert_eq!(trace.finish()[0].pending, 2);
    let mut trace = Trace::created();
    trace.ring(doorbell(100, 0, 0..1, 0, 2), &[dispatch(0)]);
    assert_eq!(trace.finish()[0].pending, 1, "by the write index");
}
