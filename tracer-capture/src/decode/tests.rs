use tracer_common::record::NAME_LEN;

use super::*;

/// A record of the event, with every field filled in; `has` says which of them count.
fn driver_event(which: u16, has: u32) -> record::DriverEvent {
    let mut ring = [0; NAME_LEN];
    ring[..5].copy_from_slice(b"sdma0");
    record::DriverEvent {
        header: Header {
            kind: kind::DRIVER_EVENT,
            flags: which,
            site: 0,
            time_ns: 5,
            tgid: 7,
            tid: 70,
        },
        context: 1,
        seqno: 2,
        job_id: 3,
        bytes: 4,
        has,
        ibs: 5,
        vmid: 6,
        old_placement: 2,
        new_placement: 1,
        pad: 0,
        ring,
    }
}

fn bytes(record: &record::DriverEvent) -> &[u8] {
    // SAFETY: `repr(C)` of integers and bytes without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of_val(record)) }
}

/// Returns whether the record is known, and how many events it produced; `look` receives each event.
fn decoded(bytes: &[u8], mut look: impl FnMut(&DriverEvent<'_>)) -> (bool, usize) {
    let mut count = 0;
    let known = record(bytes, &Functions::default(), &mut (), &mut |event| {
        let Event::DriverEvent(event) = event else {
            panic!("{event:?}")
        };
        look(event);
        count += 1;
    });
    (known, count)
}

/// A field that no bit names is not reported, whatever its bytes are.
#[test]
fn a_driver_event_tells_only_what_it_has() {
    let origin = Origin {
        time_ns: 5,
        pid: 7,
        tid: 70,
    };
    let nothing = DriverEvent {
        origin,
        kind: DriverEventKind::VmFlush,
        ring: None,
        context: None,
        seqno: None,
        job_id: None,
        ibs: None,
        vmid: None,
        bytes: None,
        old_placement: None,
        new_placement: None,
        traced: false,
    };
    let empty = driver_event(driver_event_kind::VM_FLUSH, 0);
    assert_eq!(decoded(bytes(&empty), |event| assert_eq!(*event, nothing)), (true, 1));

    let full = driver_event(driver_event_kind::BO_MOVE | driver_event_flags::TRACED, u32::MAX);
    let all = DriverEvent {
        origin,
        kind: DriverEventKind::BoMove,
        ring: Some(b"sdma0"),
        context: Some(1),
        seqno: Some(2),
        job_id: Some(3),
        ibs: Some(5),
        vmid: Some(6),
        bytes: Some(4),
        old_placement: Some(2),
        new_placement: Some(1),
        traced: true,
    };
    assert_eq!(decoded(bytes(&full), |event| assert_eq!(*event, all)), (true, 1));

    let moved = driver_event(driver_event_kind::BO_MOVE, driver_event_has::NEW_PLACEMENT);
    let one = DriverEvent {
        kind: DriverEventKind::BoMove,
        new_placement: Some(1),
        ..nothing
    };
    assert_eq!(decoded(bytes(&moved), |event| assert_eq!(*event, one)), (true, 1));
}

/// Such records count as not decoded.
#[test]
fn an_unknown_driver_event_and_a_short_record_are_no_events() {
    for which in [0, 6, driver_event_kind::MASK] {
        let odd = driver_event(which, u32::MAX);
        assert_eq!(decoded(bytes(&odd), |_| ()), (false, 0), "{which}");
    }
    let whole = driver_event(driver_event_kind::CS_IOCTL, 0);
    let short = bytes(&whole);
    assert_eq!(decoded(&short[..short.len() - 1], |_| ()), (false, 0));
}
