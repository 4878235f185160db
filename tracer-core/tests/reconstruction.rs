//! Properties of the reconstruction, over interleavings of producers, GPU and tracer, and over loss.

mod sim;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tracer_common::aql::packet_type;
use tracer_core::event::{Event, Ioctl, Origin};
use tracer_core::model::Model;
use tracer_core::tables::{Evidence, Fact, PacketKind, Path, Queue, Unread};

use sim::config::{Config, LastSample, any_configs, configs};
use sim::{HANDLE, PID, Readable, Record, Sim};

/// The facts that the model created for a run, by index.
struct Outcome {
    sim: Sim,
    by_index: BTreeMap<u64, Fact>,
    credited: u64,
    queue: Option<Queue>,
}

fn reconstruct(config: Config, order: impl FnOnce(&mut Vec<Record>)) -> Result<Outcome, TestCaseError> {
    let mut sim = Sim::run(config);
    order(&mut sim.log);
    let mut facts = Vec::new();
    let mut model = Model::new();
    if sim.config.attach_after.is_none() {
        create(&mut model, &mut |fact| facts.push(fact));
    }
    for record in &sim.log {
        model.apply(&record.event(), &mut |fact| facts.push(fact));
    }
    model.finish(u64::MAX, &mut |fact| facts.push(fact));

    let mut outcome = Outcome {
        sim,
        by_index: BTreeMap::new(),
        credited: 0,
        queue: None,
    };
    for fact in facts {
        let (index, count) = match &fact {
            Fact::Dispatch(dispatch) => (dispatch.index, 1),
            Fact::Packet(packet) => (packet.index, packet.count),
            Fact::Doorbell(doorbell) => {
                outcome.credited += doorbell.published;
                continue;
            }
            Fact::Queue(queue) => {
                prop_assert!(outcome.queue.replace(queue.clone()).is_none(), "two queues");
                continue;
            }
            _ => continue,
        };
        prop_assert!(count < 1 << 20, "an absurd run: {fact:?}");
        for index in index..index + count {
            let before = outcome.by_index.insert(index, fact.clone());
            prop_assert!(before.is_none(), "twice: {before:?} and {fact:?}");
        }
    }
    Ok(outcome)
}

fn create(model: &mut Model, out: &mut impl FnMut(Fact)) {
    let mut arg = [0_u8; 96];
    arg[8..16].copy_from_slice(&(HANDLE + 0x38).to_le_bytes());
    arg[40] = 2;
    let (origin, ret) = (
        Origin {
            time_ns: 10,
            pid: PID,
            tid: PID,
        },
        Some(0),
    );
    let (arg_in, arg_out) = (Some(&arg[..]), Some(&arg[..]));
    model.apply(
        &Event::Ioctl(Ioctl {
            origin,
            exit_ns: 20,
            fd: 3,
            cmd: 0xc060_4b02,
            ret,
            arg_in,
            arg_out,
        }),
        out,
    );
}

/// Properties that hold whatever was lost: each fact is true, and the numbers add up.
fn nothing_is_invented(outcome: &Outcome) -> Result<(), TestCaseError> {
    let Some(queue) = &outcome.queue else {
        prop_assert!(outcome.by_index.is_empty());
        return Ok(());
    };
    let (from, to) = outcome.sim.published.unwrap_or_default();
    for (&index, fact) in &outcome.by_index {
        let published = (from..to).contains(&index) || outcome.sim.rung_past_probes(index);
        prop_assert!(published, "{index} was never published: {fact:?}");
        let truth = outcome.sim.truth_of(index);
        let before = truth.is_some_and(|truth| truth.rung_before) && !outcome.sim.named.contains(&index);
        prop_assert!(!before, "{index} was rung for before the tracer attached: {fact:?}");
        match fact {
            Fact::Dispatch(dispatch) => {
                let truth = truth.expect("a dispatch that nobody wrote");
                prop_assert_eq!(truth.packet.kind(), packet_type::KERNEL_DISPATCH, "{:?}", fact);
                prop_assert_eq!(dispatch.kernel_object, truth.packet.kernel_object(), "{:?}", fact);
                prop_assert_eq!(dispatch.completion_signal, index + 1, "{:?}", fact);
            }
            Fact::Packet(packet) if packet.kind != PacketKind::Unread => {
                let truth = truth.expect("a packet that nobody wrote");
                prop_assert_eq!(packet.header, truth.packet.header(), "{:?}", fact);
                // The layout of an unknown format is unknown, too.
                let signal = if packet.kind == PacketKind::VendorOther {
                    0
                } else {
                    index + 1
                };
                prop_assert_eq!(packet.completion_signal, signal, "{:?}", fact);
            }
            _ => {}
        }
    }
    prop_assert_eq!(queue.published, queue.dispatches + queue.other_packets + queue.unread);
    prop_assert_eq!(queue.published, outcome.by_index.len() as u64);
    prop_assert_eq!(queue.first_index, outcome.by_index.keys().next().copied());
    prop_assert_eq!(queue.last_index, outcome.by_index.keys().next_back().copied());
    Ok(())
}

/// Properties that hold if no record was lost: everything that a walk could read is there.
fn nothing_is_missing(outcome: &Outcome) -> Result<(), TestCaseError> {
    let (from, to) = outcome.sim.published.unwrap_or_default();
    if outcome.sim.config.attach_after.is_none() {
        prop_assert_eq!(outcome.by_index.len() as u64, to - from);
    } else if let Some((read, write)) = outcome.sim.looked {
        // Indexes that a producer reserved after the first sample, and indexes in the ring at that time that a doorbell names.
        let named = outcome
            .sim
            .named
            .iter()
            .filter(|&&value| value >= read && value < write);
        for index in (write..to).chain(named.copied()) {
            prop_assert!(outcome.by_index.contains_key(&index), "{} is not claimed", index);
        }
        let queue = outcome.queue.as_ref().expect("a look makes a queue");
        let span = queue
            .last_index
            .zip(queue.first_index)
            .map_or(0, |(last, first)| last - first + 1);
        let holes = span - queue.published;
        prop_assert!(
            queue.unclaimed.is_some_and(|unclaimed| unclaimed >= holes),
            "{:?}",
            queue
        );
    }
    for (index, fact) in &outcome.by_index {
        let readable = outcome.sim.truth_of(*index).and_then(|truth| truth.readable);
        let got = match fact {
            Fact::Dispatch(dispatch) if dispatch.evidence == Evidence::Body => Some(Readable::Body),
            Fact::Packet(packet) if packet.unread == Some(Unread::Consumed) && readable.is_some() => {
                Some(Readable::Consumed)
            }
            Fact::Packet(packet) if packet.unread.is_some() => None,
            _ => Some(Readable::Header),
        };
        prop_assert_eq!(got, readable, "{:?}", fact);
    }
    if outcome.sim.config.attach_after.is_none() {
        prop_assert_eq!(outcome.credited, to - from, "each index is published by one doorbell");
    }
    Ok(())
}

/// Checks that an index reported as unseen was taken before any observed doorbell, that any other index was named by one, and that
/// the numbers add up.
fn unseen_is_true(outcome: &Outcome) -> Result<(), TestCaseError> {
    let mut count = 0;
    for (&index, fact) in &outcome.by_index {
        let truth = outcome.sim.truth_of(index);
        match path(fact) {
            Path::Unseen => {
                count += 1;
                prop_assert!(
                    truth.is_some_and(|truth| truth.unrung),
                    "a doorbell was seen: {:?} {:?}",
                    fact,
                    truth
                );
            }
            _ => prop_assert!(
                index < outcome.sim.seen_end,
                "no doorbell was seen: {:?} {:?}",
                fact,
                truth
            ),
        }
    }
    if let Some(queue) = &outcome.queue {
        prop_assert!(
            queue.unseen.is_none_or(|unseen| unseen == count),
            "{} of {:?}",
            count,
            queue
        );
        prop_assert!(count == 0 || outcome.sim.config.direct > 0);
    }
    Ok(())
}

fn path(fact: &Fact) -> Path {
    match fact {
        Fact::Dispatch(dispatch) => dispatch.path,
        Fact::Packet(packet) => packet.path,
        _ => Path::Doorbell,
    }
}

/// Checks that, without losses, every unseen index is found that can be found: up to the last sample.
fn unseen_is_whole(outcome: &Outcome) -> Result<(), TestCaseError> {
    let found = outcome.by_index.iter().filter(|(_, fact)| path(fact) == Path::Unseen);
    let found: BTreeSet<u64> = found.map(|(index, _)| *index).collect();
    let sim = &outcome.sim;
    if sim.config.attach_after.is_none() {
        // With several producers, an index that one producer's doorbell found taken may be named by the doorbell of another, which
        // came first.
        let one = sim.config.producers == 1;
        let sure = |index: &&u64| one || **index >= sim.seen_end;
        let sure: BTreeSet<u64> = sim.unseen.iter().filter(sure).copied().collect();
        prop_assert!(sure.is_subset(&found), "{:?} of {:?}", &found, &sure);
        prop_assert!(found.is_subset(&sim.unseen), "{:?} of {:?}", &found, &sim.unseen);
    }
    if let Some(queue) = outcome
        .queue
        .as_ref()
        .filter(|_| outcome.sim.config.last_look != LastSample::Nobody)
    {
        prop_assert_eq!(queue.unseen, Some(found.len() as u64));
    }
    Ok(())
}

/// Checks that a reserve time is the time of the reserve, and of the thread that rang. Where it is unknown, the index was reserved
/// later than the time at which it is reported as free. If `always`, a thread's own packets have a reserve time, unless they were
/// consumed before their doorbell and read at a later one.
fn reserves_are_true(outcome: &Outcome, always: bool) -> Result<(), TestCaseError> {
    for (&index, fact) in &outcome.by_index {
        let (Fact::Dispatch(dispatch), Some(truth)) = (fact, outcome.sim.truth_of(index)) else {
            continue;
        };
        if dispatch.reserve_ns.is_some() {
            prop_assert_eq!(dispatch.tid, truth.tid, "another thread's reserve: {:?}", fact);
            prop_assert_eq!(dispatch.reserve_ns, truth.reserved_ns, "{:?}", fact);
            prop_assert_eq!(dispatch.unreserved_ns, None, "{:?}", fact);
        } else if let Some(before_ns) = dispatch.unreserved_ns {
            prop_assert!(before_ns < truth.advanced_ns, "{:?} {:?}", fact, truth);
        }
        // A link is to a call of the thread that wrote the packet, and exists where that is certain.
        let linked = dispatch.api_call.map(|call| call as u32);
        prop_assert!(
            linked.is_none_or(|tid| tid == truth.tid),
            "another thread's call: {:?}",
            fact
        );
        if dispatch.reserve_ns.is_some() {
            prop_assert_eq!(linked, Some(truth.tid), "{:?}", fact);
        }
        let missed = always && dispatch.reserve_ns.is_none();
        if missed && dispatch.tid == truth.tid && dispatch.evidence == Evidence::Header {
            prop_assert_eq!(None, truth.reserved_ns, "{:?}", fact);
        }
    }
    Ok(())
}

/// Returns the configuration. For a longer run, set PROPTEST_CASES=15000.
fn cases() -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(400))
}

type Swap = (prop::sample::Index, usize);

fn swaps() -> impl Strategy<Value = Vec<Swap>> {
    proptest::collection::vec((any::<prop::sample::Index>(), 1..8_usize), 0..50)
}

fn reorder(log: &mut [Record], swaps: &[Swap]) {
    for (at, by) in swaps {
        if log.len() > *by {
            let at = at.index(log.len() - by);
            log.swap(at, at + by);
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn without_loss_every_packet_that_could_be_read_is_a_fact(config in configs(Just(0), Just(false))) {
        let outcome = reconstruct(config, |_| ())?;
        nothing_is_invented(&outcome)?;
        nothing_is_missing(&outcome)?;
        reserves_are_true(&outcome, true)?;
        unseen_is_true(&outcome)?;
    }

    #[test]
    fn doorbells_past_every_probe_are_counted(config in any_configs(Just(0), Just(false), 1..=255_u8)) {
        let outcome = reconstruct(config, |_| ())?;
        nothing_is_invented(&outcome)?;
        unseen_is_true(&outcome)?;
        unseen_is_whole(&outcome)?;
    }

    #[test]
    fn with_loss_no_doorbell_that_was_seen_is_called_unseen(
        config in any_configs(0..200_u8, any::<bool>(), prop_oneof![Just(0_u8), any::<u8>()]),
        swaps in swaps(),
    ) {
        let outcome = reconstruct(config, |log| reorder(log, &swaps))?;
        nothing_is_invented(&outcome)?;
        unseen_is_true(&outcome)?;
    }

    #[test]
    fn doorbell_values_that_nobody_reserved_do_no_harm(config in configs(Just(0), Just(true))) {
        let outcome = reconstruct(config, |_| ())?;
        nothing_is_invented(&outcome)?;
        nothing_is_missing(&outcome)?;
    }

    #[test]
    fn with_loss_facts_stay_true_and_gaps_are_reported(config in configs(1..200_u8, Just(false))) {
        let outcome = reconstruct(config, |_| ())?;
        nothing_is_invented(&outcome)?;
        reserves_are_true(&outcome, false)?;
    }

    #[test]
    fn with_loss_garbage_and_any_order_facts_stay_true(
        config in configs(0..100_u8, any::<bool>()),
        swaps in swaps(),
    ) {
        let outcome = reconstruct(config, |log| reorder(log, &swaps))?;
        nothing_is_invented(&outcome)?;
    }
}
