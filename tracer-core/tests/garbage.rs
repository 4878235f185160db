//! Applies events with arbitrary fields to the model. The model neither panics nor miscounts, and its memory is bounded by the
//! number of events, not by their values.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tracer_common::aql::Packet;
use tracer_common::record::{SignalState, Stamps};
use tracer_core::event::{
    Before, Doorbell, Event, HsaQueue, InCall, Ioctl, KfdQueue, Lost, Occasion, Origin, Packets, Progress, Proxied,
    Reserve, ReserveOp, SdmaDoorbell, Signal, There,
};
use tracer_core::model::Model;
use tracer_core::tables::Fact;

/// The lowest write pointer of an AQL queue in this test. SDMA queues have lower ones.
const FIRST_AQL: u64 = 0x38;

/// Returns values that often coincide: small ones, and ones at the limits of the number range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..40_u64,
        1 => (0..40_u64).prop_map(|n| u64::MAX - n),
        1 => (0..40_u64).prop_map(|n| (1 << 40) + n),
        1 => any::<u64>(),
    ]
}

fn origin() -> impl Strategy<Value = Origin> {
    (
        prop_oneof![8 => 0..2000_u64, 1 => number(), 1 => (0..9_u64).prop_map(|s| s << 30)],
        1..3_u32,
        1..4_u32,
    )
        .prop_map(|(time_ns, pid, tid)| Origin { time_ns, pid, tid })
}

fn ring() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(4_u32), 1 => any::<u32>(), 1 => Just(0)]
}

/// An event with the data that it borrows.
#[derive(Clone, Debug)]
enum Owned {
    Packets(Packets<'static>, Vec<Packet>),
    Ioctl(Ioctl<'static>, Option<Vec<u8>>),
    Exec(Origin, Vec<u8>),
    Other(Event<'static>),
}

impl Owned {
    fn event(&self) -> Event<'_> {
        match self {
            Self::Packets(event, packets) => Event::Packets(Packets { packets, ..*event }),
            Self::Ioctl(event, arg) => Event::Ioctl(Ioctl {
                arg_in: arg.as_deref(),
                arg_out: arg.as_deref(),
                ..*event
            }),
            Self::Exec(origin, name) => Event::Exec(*origin, name),
            Self::Other(event) => *event,
        }
    }
}

const STAMPS: [Stamps; 3] = [
    Stamps { start: 0, end: 0 },
    Stamps { start: 7, end: 9 },
    Stamps {
        start: u64::MAX,
        end: u64::MAX,
    },
];

fn packets() -> impl Strategy<Value = Owned> {
    let fill = prop_oneof![0..3_u8, any::<u8>()];
    let bytes = (0..8_u8, 0..4_u8, fill).prop_map(|(kind, setup, fill)| {
        let mut bytes = [fill; 64];
        (bytes[0], bytes[2], bytes[3]) = (kind, setup, 0);
        Packet { bytes }
    });
    (
        origin(),
        0..3_u64,
        number(),
        ring(),
        number(),
        number(),
        proptest::collection::vec(bytes, 0..6),
    )
        .prop_map(
            |(origin, handle, first, ring_packets, read_index, write_index, packets)| {
                Owned::Packets(
                    Packets {
                        origin,
                        handle,
                        first,
                        ring_packets,
                        read_index,
                        write_index,
                        value: read_index,
                        call: (read_index % 2 == 0).then_some(InCall {
                            call: write_index,
                            stream: Some(first),
                        }),
                        packets: &[],
                        ready: write_index,
                        stamps: &STAMPS,
                        proxy: write_index % 4 == 1,
                        before: Some(Before {
                            rung_end: first,
                            value: write_index,
                            read_index,
                        }),
                    },
                    packets,
                )
            },
        )
}

fn doorbell() -> impl Strategy<Value = Owned> {
    (
        origin(),
        0..3_u64,
        [number(), number(), number(), number(), number()],
        ring(),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(origin, handle, [value, first, end, read_index, write_index], ring_packets, [a, b, c])| {
                Owned::Other(Event::Doorbell(Doorbell {
                    origin,
                    handle,
                    value,
                    first,
                    end,
                    read_index,
                    write_index,
                    ring_base: 0,
                    ring_packets,
                    unreadable: a && b,
                    beyond: b && c,
                    rung_end: c.then_some(first),
                    proxy: a && c,
                }))
            },
        )
}

fn reserve() -> impl Strategy<Value = Owned> {
    let op = prop_oneof![
        number().prop_map(|n| ReserveOp::Add { n }),
        number().prop_map(|to| ReserveOp::Store { to }),
        (number(), number()).prop_map(|(from, to)| ReserveOp::Cas { from, to }),
    ];
    (origin(), 0..3_u64, op, proptest::option::of(number())).prop_map(|(origin, handle, op, write_index)| {
        Owned::Other(Event::Reserve(Reserve {
            origin,
            handle,
            op,
            write_index,
        }))
    })
}

fn ioctl() -> impl Strategy<Value = Owned> {
    let cmd = prop_oneof![
        Just(0xc060_4b02_u32),
        Just(0xc008_4b03),
        Just(0xc028_4b05),
        any::<u32>()
    ];
    // The fields that matter are small in a plausible argument: the write pointer, the type, the queue's id.
    let arg = prop_oneof![
        3 => (0..3_u8, 0..6_u8, 0..3_u8).prop_map(|(handle, kind, id)| {
            let mut arg = vec![0; 96];
            (arg[0], arg[8], arg[33], arg[40], arg[52]) = (id, handle + 0x38, 1, kind, id);
            arg
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..100),
    ];
    (
        origin(),
        number(),
        cmd,
        proptest::option::of(-2..2_i64),
        proptest::option::of(arg),
    )
        .prop_map(|(origin, exit_ns, cmd, ret, arg)| {
            let event = Ioctl {
                origin,
                exit_ns,
                fd: 0,
                cmd,
                ret,
                arg_in: None,
                arg_out: None,
            };
            Owned::Ioctl(event, arg)
        })
}

/// Returns a copy at the end of memory, a truncated copy, or no copy at all.
fn commands() -> impl Strategy<Value = Option<&'static [u8]>> {
    const COPY: [u8; 28] = {
        let mut bytes = [0xff; 28];
        (bytes[0], bytes[1]) = (1, 0);
        bytes
    };
    prop::sample::select(vec![
        None,
        Some(&COPY[..]),
        Some(&COPY[..27]),
        Some(&[0xff; 16][..]),
        Some(&[][..]),
    ])
}

fn sample() -> impl Strategy<Value = Owned> {
    let occasion = prop_oneof![
        Just(Occasion::Sample),
        Just(Occasion::TraceEnd),
        Just(Occasion::Destroyed),
        Just(Occasion::ProcessEnd)
    ];
    let numbers = [number(), number(), number()];
    (origin(), 0..3_u64, numbers, proptest::option::of(number()), occasion).prop_map(
        |(origin, handle, [after_ns, read_index, write_index], rung_end, occasion)| {
            Owned::Other(Event::Progress(Progress {
                origin,
                after_ns,
                handle,
                read_index,
                write_index,
                rung_end,
                occasion,
            }))
        },
    )
}

fn other() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (origin(), 0..3_u64, number(), number(), commands()).prop_map(
            |(origin, write_pointer, begin, end, commands)| {
                Owned::Other(Event::SdmaDoorbell(SdmaDoorbell {
                    origin,
                    write_pointer,
                    begin,
                    end,
                    commands,
                    call: None,
                }))
            }
        ),
        sample(),
        (origin(), number(), 0..3_u64, -1..2_i64, 0..STAMPS.len()).prop_map(|(origin, after_ns, fill, value, at)| {
            Owned::Other(Event::Signal(Signal {
                origin,
                after_ns,
                state: SignalState {
                    signal: fill * 0x0101_0101_0101_0101,
                    value,
                    stamps: STAMPS[at],
                },
            }))
        }),
        (origin(), 1..4_u32).prop_map(|(origin, child)| Owned::Other(Event::Fork(origin, child))),
        (origin(), proptest::collection::vec(any::<u8>(), 0..20)).prop_map(|(origin, name)| Owned::Exec(origin, name)),
        origin().prop_map(|origin| Owned::Other(Event::Exit(origin))),
        (origin(), any::<Option<bool>>())
            .prop_map(|(origin, hands_over)| Owned::Other(Event::Thunk(origin, hands_over))),
        (origin(), 0..3_u64, number()).prop_map(|(origin, handle, exit_ns)| {
            Owned::Other(Event::HsaQueue(HsaQueue {
                origin,
                exit_ns,
                handle,
                proxy: (exit_ns % 2 == 0).then_some(Proxied {
                    ring_base: 0,
                    ring_packets: exit_ns as u32,
                }),
            }))
        }),
        (origin(), any::<bool>()).prop_map(|(origin, idle)| Owned::Other(Event::There(There {
            origin,
            comm: b"x",
            queues: &[KfdQueue {
                queue_id: 1,
                gpu_id: Some(2),
                compute: None,
                ring_bytes: None
            }],
            idle,
        }))),
        (number(), number()).prop_map(|(time_ns, count)| Owned::Other(Event::Lost(Lost {
            time_ns,
            source: "test",
            count
        }))),
    ]
}

/// Returns the configuration. For a longer run, set PROPTEST_CASES=100000.
fn cases() -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(1000))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_event_breaks_the_model(
        events in proptest::collection::vec(prop_oneof![4 => packets(), 4 => doorbell(), 2 => reserve(), 2 => sample(), 1 => ioctl(), 1 => other()], 0..200),
    ) {
        let mut model = Model::new();
        let mut facts = Vec::new();
        for event in &events {
            model.apply(&event.event(), &mut |fact| facts.push(fact));
        }
        model.finish(5_000_000_000, &mut |fact| facts.push(fact));
        let alive = model.queues().count() + model.processes().count() + model.proxies().count();
        prop_assert_eq!(alive + model.signals_waiting().count(), 0, "something outlived the trace");
        // A packet splits at most one gap in two. One event creates at most one queue and two processes, and ends at most one other
        // packet.
        prop_assert!(facts.len() <= events.len() * 18, "{} facts of {} events", facts.len(), events.len());

        let mut counts: BTreeMap<u32, u128> = BTreeMap::new();
        for fact in &facts {
            let (queue, count) = match fact {
                Fact::Dispatch(dispatch) => (dispatch.queue, 1),
                Fact::Packet(packet) => (packet.queue, packet.count),
                _ => continue,
            };
            prop_assert!(count > 0, "an empty run: {:?}", fact);
            *counts.entry(queue).or_default() += u128::from(count);
        }
        let mut numbers = BTreeSet::new();
        for fact in &facts {
            let Fact::Queue(queue) = fact else { continue };
            prop_assert!(numbers.insert(queue.queue), "its final numbers came twice: {:?}", queue);
            let count = counts.remove(&queue.queue).unwrap_or(0);
            // Counters stop at their largest value.
            if queue.published < u64::MAX && queue.write_pointer >= FIRST_AQL {
                prop_assert_eq!(u128::from(queue.published), count, "{:?}", queue);
                prop_assert_eq!(queue.published, queue.dispatches + queue.other_packets + queue.unread, "{:?}", queue);
            }
        }
        prop_assert!(counts.is_empty(), "packets of queues that never ended: {:?}", counts);
        // A dispatch may wait for its doorbell.
        let dispatch = |fact: &Fact| match fact {
            Fact::Dispatch(dispatch) => Some((dispatch.queue, dispatch.index)),
            _ => None,
        };
        let mut dispatches: BTreeSet<(u32, u64)> = facts.iter().filter_map(dispatch).collect();
        let mut requests: BTreeMap<u32, u64> = BTreeMap::new();
        for fact in &facts {
            match fact {
                Fact::GpuTime(time) => {
                    // A time belongs to a dispatch, and is reported once.
                    prop_assert!(dispatches.remove(&(time.queue, time.index)), "{:?}", time);
                    prop_assert!(time.start_ticks <= time.end_ticks && time.start_ns.is_some() == time.end_ns.is_some());
                }
                Fact::Request(request) => *requests.entry(request.proxy).or_default() += 1,
                _ => {}
            }
        }
        for fact in &facts {
            if let Fact::Proxy(proxy) = fact {
                prop_assert_eq!(requests.remove(&proxy.proxy).unwrap_or(0), proxy.dispatches, "{:?}", proxy);
            }
        }
        prop_assert!(requests.is_empty(), "requests of no proxy: {:?}", requests);
    }
}
