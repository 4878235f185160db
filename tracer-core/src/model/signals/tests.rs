use std::collections::BTreeMap;

use proptest::prelude::*;
use tracer_common::record::SignalState;

use super::*;
use crate::event::Origin;

const PID: u32 = 3;
const SIGNAL: u64 = 0x1000;

fn stamps(start: u64, end: u64) -> Stamps {
    Stamps { start, end }
}

fn used(index: u64, time_ns: u64, before: Option<Stamps>) -> Use {
    Use {
        pid: PID,
        signal: SIGNAL,
        time_ns,
        before,
        dispatch: Some(Ran {
            queue: 0,
            index,
            kernel_object: 64,
            kernel: None,
            gpu_id: None,
        }),
    }
}

fn sample(time_ns: u64, value: i64, stamps: Stamps) -> Signal {
    Signal {
        origin: Origin {
            time_ns,
            pid: PID,
            tid: 0,
        },
        after_ns: time_ns + 1,
        state: SignalState {
            signal: SIGNAL,
            value,
            stamps,
        },
    }
}

/// Signals, and the indexes that they reported, with ticks and the time at which these were known.
#[derive(Default)]
struct Trace {
    signals: Signals,
    times: Vec<(u64, u64, u64, u64)>,
}

impl Trace {
    fn publish(&mut self, used: Use) {
        self.signals.publish(used, &mut take(&mut self.times));
    }

    fn sample(&mut self, sample: &Signal) {
        self.signals.sample(sample, &mut take(&mut self.times));
    }
}

fn take(times: &mut Vec<(u64, u64, u64, u64)>) -> impl FnMut(Stamped) {
    |stamped| {
        let time = stamped.time;
        times.push((time.index, time.start_ticks, time.end_ticks, stamped.seen_ns));
    }
}

#[test]
fn a_dispatch_has_the_times_of_its_signal_when_it_is_reused_or_sampled() {
    let mut trace = Trace::default();
    trace.publish(used(0, 10, Some(Stamps::default())));
    trace.publish(used(1, 20, Some(stamps(5, 6))));
    assert_eq!(trace.times, [(0, 5, 6, 20)]);
    // Not ended yet; sampled before it was published; then ended.
    trace.sample(&sample(30, 1, stamps(5, 6)));
    trace.sample(&sample(15, 0, stamps(5, 6)));
    trace.sample(&sample(40, 0, stamps(8, 9)));
    assert_eq!(trace.times[1..], [(1, 8, 9, 41)]);
    // The times are reported once.
    trace.sample(&sample(50, 0, stamps(8, 9)));
    trace.publish(used(2, 60, Some(stamps(8, 9))));
    assert_eq!(trace.times.len(), 2);
}

#[test]
fn another_possible_user_of_the_signal_leaves_the_time_unknown() {
    // Published while the packet before had not ended.
    let mut trace = Trace::default();
    trace.publish(used(0, 10, Some(Stamps::default())));
    trace.publish(used(1, 20, Some(Stamps::default())));
    trace.publish(used(2, 30, Some(stamps(5, 6))));
    assert_eq!(trace.times, []);
    trace.publish(used(3, 40, Some(stamps(7, 8))));
    assert_eq!(trace.times, [(2, 7, 8, 40)]);
    // One packet was published before its signal was read.
    trace.publish(used(4, 50, None));
    trace.publish(used(5, 60, Some(stamps(11, 12))));
    trace.signals.lost();
    trace.publish(used(6, 70, Some(stamps(13, 14))));
    trace.signals.forget(PID);
    trace.sample(&sample(80, 0, stamps(15, 16)));
    assert_eq!(trace.times.len(), 1);
}

#[test]
fn packets_that_are_no_dispatches_have_no_times_but_end_others() {
    let mut trace = Trace::default();
    trace.publish(used(0, 10, Some(Stamps::default())));
    let barrier = Use {
        dispatch: None,
        ..used(1, 20, Some(stamps(5, 6)))
    };
    trace.publish(barrier);
    trace.publish(used(2, 30, Some(stamps(7, 8))));
    assert_eq!(trace.times, [(0, 5, 6, 20)]);
}

#[test]
fn values_that_are_no_times_are_dropped() {
    for now in [stamps(0, 6), stamps(6, 5), stamps(3, 6), stamps(6, 4)] {
        let mut trace = Trace::default();
        trace.publish(used(0, 10, Some(stamps(3, 4))));
        trace.sample(&sample(20, 0, now));
        assert_eq!(trace.times, [], "{now:?}");
        assert_eq!(trace.signals.waiting().count(), 0, "it has ended all the same");
    }
}

#[test]
fn signals_that_wait_are_asked_for_ever_more_seldom() {
    let mut trace = Trace::default();
    let mut asked = Vec::new();
    trace.publish(used(0, 0, Some(Stamps::default())));
    for now in (0..10_000).map(|ms| ms * 1_000_000) {
        trace.signals.due(now, |pid, signal| {
            assert_eq!((pid, signal), (PID, SIGNAL));
            asked.push(now / 1_000_000);
        });
    }
    assert_eq!(asked, [20, 40, 80, 160, 320, 640, 1280, 2560, 4560, 6560, 8560]);
    trace.sample(&sample(9_999_000_000, 0, stamps(1, 2)));
    trace.signals.due(u64::MAX, |_, _| panic!("nothing waits"));
    assert!(trace.signals.due.is_empty());
    assert_eq!(trace.signals.count, 0);
}

#[test]
fn signals_that_are_used_again_and_again_are_not_asked_for() {
    let mut trace = Trace::default();
    let mut time = 1;
    for now in (0..1000).map(|ms| ms * 1_000_000) {
        trace.publish(used(now, now, Some(stamps(time, time + 1))));
        time += 2;
        trace.signals.due(now, |_, _| panic!("it was used {now} ns ago"));
        assert_eq!(trace.signals.due.len(), 1);
    }
}

#[test]
fn a_signal_that_was_forgotten_is_asked_for_once_all_the_same() {
    let mut trace = Trace::default();
    let mut asked = 0;
    for now in 0..100 {
        let reset = |signals: &mut Signals| {
            if now % 2 == 0 {
                signals.lost();
            } else {
                signals.forget(PID);
            }
        };
        trace.publish(used(now, now, Some(Stamps::default())));
        reset(&mut trace.signals);
    }
    assert_eq!(trace.signals.count, 0);
    trace.publish(used(100, 100, Some(Stamps::default())));
    trace.signals.due(SOON_NS + 100, |_, _| asked += 1);
    assert_eq!((asked, trace.signals.due.len()), (1, 1));
}

#[test]
fn no_more_signals_of_a_process_are_kept_than_fit() {
    let mut trace = Trace::default();
    for k in 0..MAX_OF_PROCESS as u64 + 9 {
        let signal = k * 64;
        trace.publish(Use {
            signal,
            ..used(k, k, Some(Stamps::default()))
        });
    }
    assert_eq!(trace.signals.waiting().count(), MAX_OF_PROCESS);
    // The limit of another process is separate.
    let other = Use {
        pid: PID + 1,
        ..used(0, 0, Some(Stamps::default()))
    };
    trace.publish(other);
    assert_eq!(trace.signals.count, MAX_OF_PROCESS + 1);
    trace.sample(&Signal {
        state: SignalState {
            signal: 0,
            value: 0,
            stamps: stamps(1, 2),
        },
        ..sample(1 << 40, 0, stamps(1, 2))
    });
    trace.publish(Use {
        signal: 1,
        ..used(9, 9, Some(Stamps::default()))
    });
    assert!(
        trace.signals.waiting().any(|waits| waits == (PID, 1)),
        "there is room again"
    );
}

/// A step of a program and its GPU with one signal.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The host sets the value and publishes the same number of packets that use it. `readable` is whether the signal could be read
    /// before.
    Publish { packets: u8, readable: bool },
    /// The GPU ends the oldest packet, or the youngest.
    End { youngest: bool },
    /// The signal is sampled.
    Sample,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..3_u8, any::<bool>()).prop_map(|(packets, readable)| Step::Publish { packets, readable }),
        4 => any::<bool>().prop_map(|youngest| Step::End { youngest }),
        2 => Just(Step::Sample),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A reported time is the dispatch's own. A time is reported for each dispatch that has its signal to itself, whose signal was
    /// read, and that ended before the signal was sampled again. The program waits for all its packets before it sets the value
    /// again.
    #[test]
    fn each_possible_time_is_recorded_and_belongs_to_its_dispatch(steps in proptest::collection::vec(step(), 1..40)) {
        let mut trace = Trace::default();
        let (mut value, mut holds) = (0_i64, Stamps::default());
        let mut running: Vec<u64> = Vec::new();
        let mut truth: BTreeMap<u64, Stamps> = BTreeMap::new();
        let (mut ended, mut expected) = (None, Vec::new());
        let mut next = 0;
        for (now, step) in (10_u64..).step_by(10).zip(steps) {
            match step {
                Step::Publish { packets, readable } if running.is_empty() => {
                    value = packets.into();
                    expected.extend(ended.take().filter(|_| readable && packets == 1));
                    for index in next..next + u64::from(packets) {
                        running.push(index);
                        let ready = readable && packets == 1;
                        trace.publish(used(index, now, ready.then_some(holds)));
                    }
                    ended = (readable && packets == 1).then_some(next);
                    next += u64::from(packets);
                }
                Step::Publish { .. } => {}
                Step::End { youngest } => {
                    let at = if youngest { running.len().checked_sub(1) } else { Some(0) };
                    if let Some(at) = at.filter(|&at| at < running.len()) {
                        let index = running.remove(at);
                        holds = stamps(now, now + 5);
                        value -= 1;
                        truth.insert(index, holds);
                    }
                }
                Step::Sample => {
                    trace.sample(&sample(now, value, holds));
                    if value == 0 {
                        expected.extend(ended.take());
                    }
                }
            }
        }
        for &(index, start, end, _) in &trace.times {
            prop_assert_eq!(truth.get(&index), Some(&stamps(start, end)), "{}", index);
        }
        let indexes: Vec<u64> = trace.times.iter().map(|time| time.0).collect();
        prop_assert_eq!(indexes, expected);
    }
}
