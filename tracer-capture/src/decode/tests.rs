use tracer_common::record::{NAME_LEN, driver_event_flags, driver_event_has, driver_event_kind};
use tracer_core::tables::DriverEvent;

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
fn decoded(bytes: &[u8], mut inspect: impl FnMut(&DriverEvent)) -> (bool, usize) {
    let mut count = 0;
    let known = record(bytes, &Functions::default(), &mut (), &mut |event| {
        let Event::DriverEvent(event) = event else {
            panic!("{event:?}")
        };
        inspect(event);
        count += 1;
    });
    (known, count)
}

/// A field that no bit names is not reported, whatever its bytes are. The process of an event that a kernel thread raises is
/// nobody's.
#[test]
fn a_driver_event_has_only_what_its_record_has() {
    let nothing = DriverEvent {
        time_ns: 5,
        event: "amdgpu_vm_flush".into(),
        pid: None,
        tid: None,
        traced: None,
        ring: None,
        context: None,
        seqno: None,
        job_id: None,
        ibs: None,
        vmid: None,
        bytes: None,
        old_placement: None,
        new_placement: None,
    };
    for (which, name) in [
        (driver_event_kind::VM_FLUSH, "amdgpu_vm_flush"),
        (driver_event_kind::SCHED_RUN_JOB, "amdgpu_sched_run_job"),
        (driver_event_kind::CLEANER_SHADER, "amdgpu_cleaner_shader"),
    ] {
        let empty = driver_event(which | driver_event_flags::TRACED, 0);
        let expected = DriverEvent {
            event: name.into(),
            ..nothing.clone()
        };
        assert_eq!(decoded(bytes(&empty), |event| assert_eq!(*event, expected)), (true, 1));
    }

    let full = driver_event(driver_event_kind::BO_MOVE | driver_event_flags::TRACED, u32::MAX);
    let all = DriverEvent {
        time_ns: 5,
        event: "amdgpu_bo_move".into(),
        pid: Some(7),
        tid: Some(70),
        traced: Some(true),
        ring: Some("sdma0".into()),
        context: Some(1),
        seqno: Some(2),
        job_id: Some(3),
        ibs: Some(5),
        vmid: Some(6),
        bytes: Some(4),
        old_placement: Some("vram".into()),
        new_placement: Some("gtt".into()),
    };
    assert_eq!(decoded(bytes(&full), |event| assert_eq!(*event, all)), (true, 1));

    let mut moved = driver_event(
        driver_event_kind::CS_IOCTL,
        driver_event_has::NEW_PLACEMENT | driver_event_has::OLD_PLACEMENT,
    );
    (moved.old_placement, moved.new_placement) = (u32::MAX, 99);
    let one = DriverEvent {
        event: "amdgpu_cs_ioctl".into(),
        pid: Some(7),
        tid: Some(70),
        traced: Some(false),
        old_placement: Some("none".into()),
        new_placement: Some("99".into()),
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

fn next_doorbell_record<const N: usize, const S: usize>(count: u32, ready: u16) -> record::NextDoorbell<N, S> {
    let packet = |i: usize| Packet {
        bytes: [i as u8 + 2; PACKET_LEN],
    };
    record::NextDoorbell {
        header: Header {
            kind: kind::NEXT_DOORBELL,
            flags: ready,
            site: 0,
            time_ns: 5,
            tgid: 7,
            tid: 70,
        },
        queue: 0x1000,
        value: 40,
        read_index: 30,
        write_index: 99,
        size: 64,
        count,
        call: record::Call { call: 3, stream: 9 },
        packets: std::array::from_fn(packet),
        stamps: std::array::from_fn(|i| Stamps {
            start: i as u64,
            end: 100,
        }),
    }
}

/// Decodes the first `len` bytes of a record, and checks its doorbell. Returns first index, packets' first bytes, and stamps' starts.
fn next_doorbell_of<T>(whole: &T, len: usize, count: u64) -> Option<(u64, Vec<u8>, u64, Vec<u64>)> {
    // SAFETY: `repr(C)` of integers and bytes without padding.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(whole).cast::<u8>(), len) };
    let (mut walk, mut doorbells) = (None, 0);
    let known = record(bytes, &Functions::default(), &mut (), &mut |event| match event {
        Event::Packets(p) => {
            assert_eq!((p.write_index, p.value, p.before.unwrap().rung_end), (94, 40, p.first));
            assert_eq!(p.call.unwrap().call, 3);
            let stamps = p.stamps.iter().map(|s| s.start).collect();
            walk = Some((p.first, p.packets.iter().map(|p| p.bytes[0]).collect(), p.ready, stamps));
        }
        Event::Doorbell(d) => {
            assert_eq!((d.first, d.end, d.rung_end), (41 - count, 41, Some(41 - count)));
            assert_eq!((d.read_index, d.write_index, d.ring_packets), (30, 99, 64));
            doorbells += 1;
        }
        other => panic!("{other:?}"),
    });
    assert_eq!((known, doorbells), (walk.is_some(), usize::from(walk.is_some())));
    walk
}

#[test]
fn a_usual_doorbell_has_as_many_packets_as_it_counts() {
    let one = next_doorbell_record::<1, 0>(1, 0);
    let found = next_doorbell_of(&one, size_of_val(&one), 1);
    assert_eq!(found, Some((40, vec![2], 0, vec![])));
    let stamped = next_doorbell_record::<1, 1>(1, 1);
    let found = next_doorbell_of(&stamped, size_of_val(&stamped), 1);
    assert_eq!(found, Some((40, vec![2], 1, vec![0])));
    let some = next_doorbell_record::<4, 4>(3, 0b101);
    let found = next_doorbell_of(&some, size_of_val(&some), 3);
    assert_eq!(found, Some((38, vec![2, 3, 4], 0b101, vec![0, 1, 2, 3])));
    let many = next_doorbell_record::<16, 0>(5, 0);
    let found = next_doorbell_of(&many, size_of_val(&many), 5);
    assert_eq!(found, Some((36, vec![2, 3, 4, 5, 6], 0, vec![])));
}

/// A record of another build, or one that claims more packets than it has.
#[test]
fn a_usual_doorbell_that_is_cut_short_is_no_event() {
    let one = next_doorbell_record::<1, 0>(1, 0);
    assert_eq!(next_doorbell_of(&one, size_of_val(&one) - 1, 1), None);
    let stamped = next_doorbell_record::<1, 1>(1, 1);
    assert_eq!(next_doorbell_of(&stamped, size_of_val(&stamped) - 1, 1), None);
    let more = next_doorbell_record::<16, 0>(17, 0);
    assert_eq!(next_doorbell_of(&more, size_of_val(&more), 17), None);
}
