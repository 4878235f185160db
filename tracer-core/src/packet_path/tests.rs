use super::*;
use crate::event::Occasion;
use crate::sample;

const TID: u32 = 8;

fn call(number: u64, parent: Option<u64>, enter_ns: u64, exit_ns: u64) -> Fact {
    Fact::ApiCall(ApiCall {
        parent,
        dispatches: 1,
        ..sample::api_call(number, (enter_ns, exit_ns))
    })
}

fn ioctl(enter_ns: u64, tid: u32) -> Fact {
    Fact::Ioctl(Ioctl {
        tid,
        ..sample::ioctl("n", (enter_ns, enter_ns + 1))
    })
}

fn look(time_ns: u64, read_index: u64) -> Fact {
    Fact::Progress(Progress {
        queue: 0,
        pid: 7,
        time_ns,
        until_ns: time_ns + 1,
        occasion: Occasion::Sample,
        read_index,
        write_index: 9,
        published_end: None,
    })
}

fn path(packet: Packet, index: u64, facts: impl IntoIterator<Item = Fact>) -> PacketPath {
    let mut path = PacketPath::new(index, packet);
    facts.into_iter().for_each(|fact| path.add(&fact));
    path.finish()
}

/// Each step is that of the packet, and not of the packets, calls and threads beside it.
#[test]
fn each_step_is_that_of_the_packet() {
    let dispatch = Fact::Dispatch(Dispatch {
        tid: TID,
        api_call: Some(3),
        ..sample::dispatch(5, 1000)
    });
    assert_eq!(Packet::of(&dispatch, 0, 4), None);
    assert_eq!(Packet::of(&dispatch, 1, 5), None);
    let packet = Packet::of(&dispatch, 0, 5).unwrap();
    let doorbell = |value, published, time_ns| {
        Fact::Doorbell(Doorbell {
            published,
            ..sample::doorbell(value, time_ns)
        })
    };
    let of_packet = doorbell(6, 3, 1000);
    let found = path(
        packet,
        5,
        [
            Fact::Queue(sample::queue(9)),
            call(1, None, 100, 200),
            look(500, 4),
            doorbell(3, 1, 600),
            call(2, None, 700, 2000),
            ioctl(650, TID),
            ioctl(750, TID),
            ioctl(760, TID + 1),
            call(3, Some(2), 800, 1500),
            look(900, 5),
            of_packet.clone(),
            look(1100, 6),
            look(1200, 9),
            // A later call, and a repeated doorbell.
            call(4, None, 1300, 1400),
            doorbell(6, 0, 1350),
        ],
    );
    let calls: Vec<u64> = found.calls.iter().map(|call| call.call).collect();
    assert_eq!((calls, found.begin_ns()), (vec![2, 3], Some(700)));
    let ioctls: Vec<u64> = found.ioctls.iter().map(|ioctl| ioctl.enter_ns).collect();
    assert_eq!((ioctls, found.more_ioctls), (vec![750], false));
    assert_eq!(found.doorbell.clone().map(Fact::Doorbell), Some(of_packet));
    let times = [found.not_taken, found.taken].map(|look| look.map(|look| (look.time_ns, look.read_index)));
    assert_eq!(times, [Some((900, 5)), Some((1100, 6))]);
    assert!(found.queue.is_some() && found.gpu.is_none());
    let data = serde_json::to_value(&found).unwrap();
    assert_eq!(
        (&data["doorbell"]["value"], &data["calls"][1]["call"]),
        (&6.into(), &3.into())
    );
    assert_eq!(
        (&data["packet"]["index"], &data["gpu"]),
        (&5.into(), &serde_json::Value::Null)
    );
}

/// A packet without a row of its own, and one that nobody rang for.
#[test]
fn what_the_trace_does_not_have_is_not_made_up() {
    let run = Fact::DispatchRun(sample::dispatch_run(10, 5, 200));
    assert_eq!(Packet::of(&run, 0, 15), None);
    let found = path(
        Packet::of(&run, 0, 14).unwrap(),
        14,
        [call(1, None, 1, 900), ioctl(150, TID)],
    );
    assert_eq!((found.calls.len(), found.ioctls.len(), found.begin_ns()), (0, 0, None));
    let unread = Fact::Packet(sample::unread(20, 4, 300));
    assert_eq!(Packet::of(&unread, 0, 24), None);
    let found = path(Packet::of(&unread, 0, 23).unwrap(), 23, [ioctl(150, 0)]);
    assert_eq!((found.doorbell, found.taken, found.ioctls), (None, None, Vec::new()));
}

/// The last ioctls of a launch are kept. Whether there were more in it does not depend on those before it.
#[test]
fn ioctls_beyond_the_limit_are_told() {
    let packet = || {
        let dispatch = Dispatch {
            tid: TID,
            api_call: Some(1),
            ..sample::dispatch(5, 1000)
        };
        Packet::Dispatch(Box::new(dispatch))
    };
    for (in_launch, more) in [(MAX_IOCTLS as u64, false), (MAX_IOCTLS as u64 + 1, true)] {
        let before = (0..100).map(|at| ioctl(at, TID));
        let inside = (0..in_launch).map(|at| ioctl(500 + at, TID));
        let call = [call(1, None, 500, 2000)];
        let found = path(packet(), 5, before.chain(call).chain(inside));
        assert_eq!(
            (found.ioctls.len(), found.more_ioctls),
            (MAX_IOCTLS, more),
            "{in_launch}"
        );
    }
}
