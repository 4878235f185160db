//! Lines of each release, and what becomes of them.

use super::*;
use tracer_core::tables::PacketKind::{BarrierAnd, BarrierOr, VendorBarrierValue};
use tracer_core::tables::{Dispatch, Queue, QueueOrigin};

/// Takes lines of one process, and returns the rows and what became of the last line.
fn import(lines: &[&str]) -> (Vec<Fact>, Option<Took>) {
    let (mut log, mut facts, mut last) = (AmdLog::default(), Vec::new(), None);
    let mut take = |event: &Event<'_>| match event {
        Event::Logged(fact) => facts.push((*fact).clone()),
        other => panic!("{other:?}"),
    };
    for line in lines {
        last = log.line(line, &mut take);
    }
    log.finish(&mut take);
    (facts, last)
}

const OLD: &str = ":4:rocvirtual.cpp           :827 : 1000 us: 25: [tid:0x7f] HWq=0xa000, Dispatch Header = 0xb02 (type=2, \
    barrier=1, acquire=1, release=1), setup=2, grid=[32, 4, 1], workgroup=[8, 2, 1], private_seg_size=3, group_seg_size=5, \
    kernel_obj=0xc0, kernarg_address=0xd0, completion_signal=0xe0";
const NEW: &str = ":5:rocvirtual.cpp           :1165: 1001 us: [pid:25 tid: 0x7f] SWq=0x9000, HWq=0xb000, id=1, Dispatch Header \
    = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3, grid=[12288, 1, 1], workgroup=[256, 1, 1], private_seg_size=0, \
    group_seg_size=0, kernel_obj=0x7fa369a75740, kernarg_address=0x7fa241e00100, completion_signal=0x0, correlation_id=7, \
    rptr=3, wptr=5";
const OF_ROCR: &str = ":amd_blit_kernel.cpp      :1301: 0000001002 us: [pid:25    tid:0x7f] [***rocr***] HWq=0xf000, id=0, Dispatch \
    Header = 0x1402 (type=2, barrier=0, acquire=2, release=2), setup=1, grid=[64, 1, 1], workgroup=[64, 1, 1], \
    private_seg_size=0, group_seg_size=0, kernel_obj=0x10, kernarg_address=0x20, completion_signal=0x30 rptr=6, wptr=6";

fn dispatches(facts: &[Fact]) -> Vec<&Dispatch> {
    facts
        .iter()
        .filter_map(|fact| {
            if let Fact::Dispatch(row) = fact {
                Some(row)
            } else {
                None
            }
        })
        .collect()
}

fn queues(facts: &[Fact]) -> Vec<&Queue> {
    facts
        .iter()
        .filter_map(|fact| if let Fact::Queue(row) = fact { Some(row) } else { None })
        .collect()
}

#[test]
fn every_release_describes_its_packets_in_its_own_way() {
    let (facts, _) = import(&[OLD, NEW, OF_ROCR]);
    let [old, new, rocr] = dispatches(&facts)[..] else {
        panic!("{facts:?}")
    };
    assert_eq!(
        (old.time_ns, old.pid, old.header, old.dimensions),
        (1_000_000, 25, 0xb02, 2)
    );
    assert_eq!((old.grid, old.workgroup), ([32, 4, 1], [8, 2, 1]));
    assert_eq!((old.private_segment, old.group_segment), (3, 5));
    assert_eq!(
        (old.kernel_object, old.kernarg, old.completion_signal),
        (0xc0, 0xd0, 0xe0)
    );
    assert_eq!((old.index, new.index, rocr.index), (0, 5, 6));
    assert_eq!((new.correlation, new.kernel_object), (7, 0x7fa3_69a7_5740));
    assert_eq!(rocr.completion_signal, 0x30);
    let [old, new, rocr] = queues(&facts)[..] else {
        panic!("{facts:?}")
    };
    assert_eq!((new.handle, new.ring_base, new.max_depth), (0x9000, 0xb000, 3));
    assert_eq!(
        [old, new, rocr].map(|queue| queue.internal),
        [Some(false), Some(false), Some(true)]
    );
}

#[test]
fn a_created_queue_has_its_size_and_its_handle() {
    let created = ":3:rocdevice.cpp            :2756: 999 us: 25: [tid:0x7f] created hardware queue 0xa000 with size 4096 with \
        priority 1, cooperative: 0";
    let new = ":3:rocdevice.cpp            :2952: 999 us: [pid:25 tid: 0x7f] Created SWq=0x9000 to map on HWq=0xb000 with size \
        16384 with priority 1, cooperative: 0";
    let (facts, _) = import(&[created, new, OLD, NEW]);
    let [old, new] = queues(&facts)[..] else {
        panic!("{facts:?}")
    };
    assert_eq!((old.handle, old.ring_base, old.ring_bytes), (0xa000, 0, 4096 * 64));
    assert_eq!(
        (new.handle, new.ring_base, new.ring_bytes),
        (0x9000, 0xb000, 16384 * 64)
    );
    assert_eq!((old.created_ns, old.origin), (999_000, QueueOrigin::Logged));
    // A queue without packets has no row.
    assert!(queues(&import(&[created]).0).is_empty());
}

#[test]
fn a_kernel_has_the_name_that_its_own_launch_wrote() {
    let name = ":3:rocvirtual.cpp           :2901: 999 us: [pid:25 tid:0x7f] ShaderName : saxpy";
    let other = ":3:rocvirtual.cpp           :2901: 999 us: [pid:25 tid:0x80] ShaderName : reduce";
    let graph =
        ":5:rocvirtual.cpp           :1392: 999 us: [pid:25 tid: 0x7f] Graph ShaderName : f(a, b), device id : 0";
    let call = ":3:hip_graph.cpp            :1645: 999 us: [pid:25 tid: 0x7f] hipGraphLaunch ( 0x560d, 0x5613 )";
    let barrier = ":4:rocvirtual.cpp           :969 : 999 us: [pid:25 tid:0x7f] HWq=0xb000, BarrierAND Header = 0x3 (type=3, \
        barrier=0, acquire=0, release=0), dep_signal=[0x1, 0x0, 0x0, 0x0, 0x0], completion_signal=0x0";
    let kernel = |lines: &[&str]| dispatches(&import(lines).0)[0].kernel.as_deref().map(str::to_owned);
    assert_eq!(kernel(&[name, other, NEW]).as_deref(), Some("saxpy"));
    assert_eq!(kernel(&[name, barrier, NEW]).as_deref(), Some("saxpy"));
    assert_eq!(kernel(&[graph, NEW]).as_deref(), Some("f(a, b)"));
    // Building a graph writes names, too.
    assert_eq!(kernel(&[name, call, NEW]), None);
    assert_eq!(kernel(&[other, NEW]), None);
}

#[test]
fn packets_that_the_log_lacks_are_counted() {
    let (mut log, mut take) = (AmdLog::default(), |_: &Event<'_>| ());
    log.line(NEW, &mut take);
    assert_eq!(log.missing(), 0, "what was before the first line");
    log.line(&NEW.replace("wptr=5", "wptr=8"), &mut take);
    assert_eq!(log.missing(), 2);
    log.line(&NEW.replace("wptr=5", "wptr=7"), &mut take);
    assert_eq!(log.missing(), 1, "lines in another order than packets");
}

#[test]
fn lines_in_other_forms_are_not_packets() {
    let none = |line: &str| import(&[line]).1;
    for other in [
        "",
        "hello",
        ": us: ",
        "[WARN ] x",
        ":4:a.cpp :1: x us: [pid:1 tid:0x1] HWq=0x1",
    ] {
        assert_eq!(none(other), None, "{other}");
    }
    let cut = |at: &str| none(OLD.split_once(at).unwrap().0);
    assert_eq!(
        cut("0xb02"),
        Some(Took::Malformed("a packet without header".to_owned()))
    );
    assert_eq!(
        cut("kernarg"),
        Some(Took::Malformed("a dispatch that lacks fields".to_owned()))
    );
    let unknown = OLD.replace("Dispatch Header", "ExtDispatch Header");
    let said = "a packet of an unknown kind, ExtDispatch".to_owned();
    assert_eq!(none(&unknown), Some(Took::Malformed(said)));
    assert_eq!(
        none(&OLD.replace("HWq=0xa000, Dispatch Header", "Dispatch Header")),
        Some(Took::Nothing)
    );
}

#[test]
fn barriers_wait_for_their_signals() {
    let and = ":4:rocvirtual.cpp :969 : 1 us: [pid:25 tid:0x7f] HWq=0xb000, BarrierAND Header = 0x1503 (type=3), \
        dep_signal=[0x1, 0x2, 0x0, 0x0, 0x0], completion_signal=0x9";
    let or = ":5:a.cpp :9 : 1 us: [pid:25 tid:0x7f] [***rocr***] HWq=0xb000, id=0, Barrier Header = 0x1505 (type=5), \
        dep_signal=[0x1 0x2 0x0 0x0 0x0], completion_signal=0x0 rptr=0, wptr=0";
    let value = ":4:a.cpp :9 : 1 us: [pid:25 tid:0x7f] SWq=0x1, HWq=0xb000, id=1, BarrierValue Header = 0x1500 AmdFormat = 0x2 \
        (type=0), signal=0x3, value = 0x1 mask = 0x1 cond: EQ, completion_signal=0x4";
    // HIP 5.2 breaks the line.
    let broken = ":4:a.cpp :9 : 1 us: 25: [tid:0x7f] HWq=0xb000, BarrierValue Header = 0x1500 AmdFormat = 0x2 ";
    let (facts, _) = import(&[and, or, value, broken]);
    let one = |fact: &Fact| match fact {
        Fact::Packet(row) => Some((row.kind, row.waits_for, row.completion_signal)),
        _ => None,
    };
    assert_eq!(
        facts.iter().filter_map(one).collect::<Vec<_>>(),
        [
            (BarrierAnd, Some([1, 2, 0, 0, 0]), 9),
            (BarrierOr, Some([1, 2, 0, 0, 0]), 0),
            (VendorBarrierValue, Some([3, 0, 0, 0, 0]), 4),
            (VendorBarrierValue, None, 0),
        ]
    );
}
