//! Tests that requests to proxies are kept apart from packets published on queues.

use super::*;
use crate::event::{HsaQueue, Proxied};

const PROXY: u64 = 0x8000_0000;

impl Trace {
    fn made_proxy(&mut self, time_ns: u64) {
        self.apply(&Event::HsaQueue(HsaQueue {
            origin: by(time_ns, TID),
            exit_ns: time_ns + 5,
            handle: PROXY,
            proxy: Some(Proxied {
                ring_base: 0x9000,
                ring_packets: RING,
            }),
        }));
    }

    fn asked(&mut self, event: Doorbell, packets: &[Packet]) {
        let event = Doorbell {
            handle: PROXY,
            proxy: true,
            ..event
        };
        self.ring(event, packets);
    }

    fn requests(&self) -> Vec<(u32, u64, u64, Option<u64>)> {
        let one = |fact: &Fact| match fact {
            Fact::Request(r) => Some((r.proxy, r.index, r.time_ns, r.reserve_ns)),
            _ => None,
        };
        self.facts.iter().filter_map(one).collect()
    }

    fn proxies(&self) -> Vec<tables::Proxy> {
        let one = |fact: &Fact| match fact {
            Fact::Proxy(proxy) => Some(proxy.clone()),
            _ => None,
        };
        self.facts.iter().filter_map(one).collect()
    }
}

#[test]
fn requests_and_what_is_published_have_rows_and_numbers_of_their_own() {
    let mut trace = Trace::created();
    trace.made_proxy(30);
    trace.apply(&Event::Reserve(Reserve {
        origin: by(40, TID),
        handle: PROXY,
        op: ReserveOp::Add { n: 2 },
        write_index: Some(0),
    }));
    let barrier = packet(packet_type::BARRIER_AND, 1);
    trace.asked(doorbell(50, 1, 0..2, 0, 2), &[dispatch(0), barrier]);
    // The tool publishes one of them, and a packet of its own.
    trace.ring(
        doorbell(60, 2, 0..3, 0, 3),
        &[empty_barrier(), dispatch(0), empty_barrier()],
    );
    assert_eq!(trace.model.proxies().count(), 1);
    let queues = trace.finish();
    assert_eq!(trace.requests(), [(0, 0, 50, Some(40))]);
    assert_eq!(trace.dispatches().len(), 1);
    let numbers = |q: &tables::Queue| (q.queue, q.handle, q.doorbells, q.dispatches, q.other_packets);
    assert_eq!(queues.iter().map(numbers).collect::<Vec<_>>(), [(0, HANDLE, 1, 1, 2)]);
    let expected = tables::Proxy {
        proxy: 0,
        pid: PID,
        handle: PROXY,
        ring_base: 0x9000,
        ring_bytes: 256,
        created_ns: 35,
        ended_ns: None,
        doorbells: 1,
        requested: 2,
        dispatches: 1,
        other_packets: 1,
        unread: 0,
        first_index: Some(0),
        last_index: Some(1),
    };
    assert_eq!(trace.proxies(), [expected]);
    assert!(
        !trace
            .facts
            .iter()
            .any(|fact| matches!(fact, Fact::Doorbell(d) if d.time_ns == 50))
    );
}

#[test]
fn a_proxy_ends_with_its_process_or_with_the_next_one_at_its_address() {
    let mut trace = Trace::new();
    trace.made_proxy(30);
    trace.asked(doorbell(50, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.made_proxy(100);
    trace.asked(doorbell(150, 0, 0..1, 0, 1), &[dispatch(0)]);
    trace.apply(&Event::Exit(by(200, TID)));
    trace.finish();
    let ends: Vec<_> = trace
        .proxies()
        .iter()
        .map(|p| (p.proxy, p.ended_ns, p.dispatches))
        .collect();
    assert_eq!(ends, [(0, Some(100), 1), (1, Some(200), 1)]);
    assert_eq!(trace.requests().len(), 2);
}

#[test]
fn a_request_that_could_not_be_read_is_a_loss() {
    let mut trace = Trace::new();
    trace.apply(&Event::Doorbell(Doorbell {
        handle: 0,
        proxy: true,
        unreadable: true,
        ..doorbell(50, 0, 0..0, 0, 0)
    }));
    let lost = |fact: &Fact| matches!(fact, Fact::Loss(loss) if loss.source == "proxy-unread" && loss.count == 1);
    assert!(trace.facts.iter().any(lost));
    assert_eq!(trace.finish(), []);
}

fn empty_barrier() -> Packet {
    packet(packet_type::BARRIER_AND, 0)
}
