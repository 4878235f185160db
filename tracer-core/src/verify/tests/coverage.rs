//! The rule `coverage`: the kinds of holes, and the effect of each on the verdict.

use super::support::*;
use crate::sample;
use crate::tables::{Fact, OtherPacket, PacketKind, Path, Queue, QueueOrigin, Table};
use crate::verify::{Context, Outcome, RuleVerdict};

/// Returns the verdict on three dispatches of a queue, after a change to the queue.
fn queue_with(context: Context, change: impl Fn(&mut Queue)) -> RuleVerdict {
    let mut facts = good(3);
    if let Fact::Queue(queue) = &mut facts[0] {
        change(queue);
    }
    rule("coverage", context, &facts)
}

#[test]
fn another_way_fails_and_an_unknown_way_does_not() {
    for (path, outcome) in [
        (Path::Doorbell, Outcome::Pass),
        (Path::Ring, Outcome::Fail),
        (Path::Thunk, Outcome::Fail),
        (Path::Unseen, Outcome::Inconclusive),
    ] {
        let mut facts = good(2);
        if let Some(Fact::Dispatch(last)) = facts.last_mut() {
            last.path = path;
        }
        assert_eq!(rule("coverage", context(), &facts).outcome, outcome, "{path:?}");
    }
}

#[test]
fn unread_packets_leave_it_open() {
    let mut facts = good(3);
    facts.push(unread(3, 4));
    facts.push(Fact::Doorbell(crate::tables::Doorbell {
        published: 4,
        ..doorbell(6)
    }));
    facts[0] = Fact::Queue(Queue {
        dispatches: 3,
        unread: 4,
        ..queue(7)
    });
    let found = rule("coverage", context(), &facts);
    assert_eq!(found.outcome, Outcome::Inconclusive);
    assert_eq!(found.counts["unread"], Some(4));
    assert_eq!(found.sentence, "tracer could not read 4 published packets in time");
    assert_eq!((found.offenders[0].index, found.offenders[0].count), (Some(3), Some(4)));
}

/// A vendor packet that launches a kernel must not pass for want of knowledge.
#[test]
fn a_vendor_format_that_is_not_known_leaves_it_open() {
    let mut facts = good(3);
    facts.push(Fact::Packet(OtherPacket {
        kind: PacketKind::VendorOther,
        unread: None,
        ..sample::unread(3, 1, 40)
    }));
    facts.push(Fact::Doorbell(crate::tables::Doorbell {
        published: 1,
        ..doorbell(3)
    }));
    facts[0] = Fact::Queue(Queue {
        dispatches: 3,
        other_packets: 1,
        ..queue(4)
    });
    let found = rule("coverage", context(), &facts);
    assert_eq!(found.outcome, Outcome::Inconclusive, "{found:?}");
    assert_eq!(found.offenders[0].index, Some(3));
    for fact in &mut facts {
        if let Fact::Packet(packet) = fact {
            packet.kind = PacketKind::VendorBarrierValue;
        }
    }
    assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Pass);
}

#[test]
fn rows_that_do_not_add_up_are_gaps() {
    for kind in ["dispatch", "doorbell", "queue"] {
        let mut facts = good(3);
        let gone = match kind {
            "queue" => 0,
            "doorbell" => 1,
            _ => 2,
        };
        facts.remove(gone);
        let found = rule("coverage", context(), &facts);
        assert_eq!(found.outcome, Outcome::Inconclusive, "without a {kind}");
        assert!(found.sentence.contains("gaps"), "{found:?}");
    }
    assert_eq!(
        queue_with(context(), |q| q.last_index = Some(5)).outcome,
        Outcome::Inconclusive,
        "a hole"
    );
    assert_eq!(
        queue_with(context(), |q| (q.first_index, q.last_index) = (Some(2), Some(4))).outcome,
        Outcome::Inconclusive,
        "a queue that was made before the eyes begins with 0"
    );
}

#[test]
fn pending_packets_leave_it_open_unless_the_queue_was_watched_to_its_end() {
    assert_eq!(queue_with(context(), |q| q.pending = 2).outcome, Outcome::Pass);
    let found = queue_with(context(), |q| (q.pending, q.watched_to_end) = (2, Some(false)));
    assert_eq!(
        (found.outcome, found.counts["pending"]),
        (Outcome::Inconclusive, Some(2))
    );
    assert_eq!((found.offenders[0].index, found.offenders[0].count), (None, None));
    assert_eq!((found.offenders[1].index, found.offenders[1].count), (Some(3), Some(2)));
}

fn lost(source: &str) -> Fact {
    Fact::Loss(crate::tables::Loss {
        time_ns: 1,
        source: source.to_owned(),
        count: 1,
    })
}

/// Returns the verdict on three packets with doorbells, where the GPU took two more packets.
fn two_more(change: impl Fn(&mut Vec<Fact>)) -> RuleVerdict {
    two_more_in(context(), change)
}

fn two_more_in(context: Context, change: impl Fn(&mut Vec<Fact>)) -> RuleVerdict {
    let mut facts = good(3);
    facts[0] = Fact::Queue(Queue {
        dispatches: 3,
        unread: 2,
        unseen: Some(2),
        doorbells: 3,
        ..queue(5)
    });
    let Fact::Packet(packet) = unread(3, 2) else {
        unreachable!("it makes packets")
    };
    facts.push(Fact::Packet(crate::tables::OtherPacket {
        path: Path::Unseen,
        ..packet
    }));
    change(&mut facts);
    rule("coverage", context, &facts)
}

#[test]
fn what_the_gpu_took_without_a_doorbell_fails() {
    let found = two_more(|_| ());
    assert_eq!((found.outcome, found.counts["unseen"]), (Outcome::Fail, Some(2)));
    assert_eq!(
        found.sentence,
        "the GPU took 2 packets without a doorbell that tracer saw"
    );
    assert_eq!((found.offenders[0].index, found.offenders[0].count), (Some(3), Some(2)));
    assert_eq!(found.counts["unread"], Some(0), "not those of doorbells that were seen");
}

#[test]
fn a_doorbell_that_came_late_or_was_lost_leaves_it_open() {
    let named = two_more(|facts| {
        facts.push(Fact::Doorbell(crate::tables::Doorbell {
            published: 0,
            ..doorbell(4)
        }));
    });
    assert_eq!(named.outcome, Outcome::Inconclusive);
    assert_eq!(named.sentence, "the GPU took 2 packets before the doorbell");
    let unknown = two_more(|facts| facts.push(lost("doorbell-ring")));
    assert_eq!(unknown.outcome, Outcome::Inconclusive);
    let elsewhere = two_more(|facts| facts.push(lost("ring-job-ring")));
    assert_eq!(elsewhere.outcome, Outcome::Fail);
}

#[test]
fn a_probe_that_is_missing_leaves_it_open() {
    let mut blind = context();
    blind.doorbell_probes_missing = 1;
    // A library without all of its probes is not watched.
    (blind.capabilities.doorbells, blind.capabilities.packets) = (false, false);
    let found = two_more_in(blind.clone(), |_| ());
    assert_eq!(found.outcome, Outcome::Inconclusive, "{found:?}");
    // Nothing was seen of the queue, as if no probe had a descriptor.
    let nothing = Fact::Queue(Queue {
        unseen: Some(52),
        doorbells: 0,
        dispatches: 0,
        unread: 52,
        ..queue(52)
    });
    let Fact::Packet(packet) = unread(0, 52) else {
        unreachable!("it makes packets")
    };
    let taken = Fact::Packet(crate::tables::OtherPacket {
        path: Path::Unseen,
        ..packet
    });
    let facts = [nothing, taken];
    assert_eq!(rule("coverage", blind, &facts).outcome, Outcome::Inconclusive);
    assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Fail);
    for source in ["unattached-doorbell", "library-unopened", "library-untraced"] {
        let found = two_more(|facts| facts.push(lost(source)));
        assert_eq!(found.outcome, Outcome::Inconclusive, "{source}");
    }
}

#[test]
fn compute_queues_without_a_runtime_fail() {
    let without = || {
        let mut context = context();
        context.libraries.clear();
        (context.capabilities.doorbells, context.capabilities.packets) = (false, false);
        context
    };
    let made = |kind: &str, origin| {
        [Fact::Queue(Queue {
            kind: kind.to_owned(),
            origin,
            dispatches: 0,
            doorbells: 0,
            ..queue(0)
        })]
    };
    let judge = |context, facts: &[Fact]| rule("coverage", context, facts).outcome;
    let created = made("compute-aql", QueueOrigin::Created);
    assert_eq!(judge(without(), &created), Outcome::Fail);
    // Nothing shows whether anything was submitted to a queue that tracer cannot read.
    assert_eq!(
        judge(without(), &made("compute-pm4", QueueOrigin::Created)),
        Outcome::Inconclusive
    );
    // Copies are not compute, and it is unknown who created a queue that existed before.
    assert_eq!(
        judge(without(), &made("sdma", QueueOrigin::Created)),
        Outcome::Inconclusive
    );
    let adopted = made("compute-aql", QueueOrigin::Adopted);
    assert_eq!(judge(without(), &adopted), Outcome::Inconclusive);
    // There may have been a runtime after all.
    let mut killed = without();
    killed.complete = false;
    assert_eq!(judge(killed, &created), Outcome::Inconclusive);
    for source in ["library-unopened", "library-untraced", "hold-ring"] {
        let facts = [created[0].clone(), lost(source)];
        assert_eq!(judge(without(), &facts), Outcome::Inconclusive, "{source}");
    }
}

#[test]
fn a_queue_that_was_not_watched_to_its_end_is_inconclusive() {
    let mut blind = context();
    blind.capabilities.unseen = false;
    let found = queue_with(blind, |_| ());
    assert_eq!((found.outcome, found.counts["unseen"]), (Outcome::Inconclusive, None));
    assert_eq!(found.missing[0].source, "samples of the queues");
    for change in [
        (|q: &mut Queue| q.watched_to_end = Some(false)) as fn(&mut Queue),
        |q| q.watched_to_end = None,
        |q| q.unseen = None,
    ] {
        let found = queue_with(context(), change);
        assert_eq!(found.outcome, Outcome::Inconclusive);
        assert_eq!(found.sentence, "tracer did not watch 1 queue to the end");
    }
}

#[test]
fn a_queue_without_its_beginning_is_open_only_if_the_recorder_was_there_first() {
    let adopted = |first: u64| {
        move |queue: &mut Queue| {
            queue.origin = QueueOrigin::Adopted;
            (queue.first_index, queue.last_index) = (Some(first), Some(first + 2));
        }
    };
    assert_eq!(queue_with(context(), adopted(40)).outcome, Outcome::Inconclusive);
    assert_eq!(queue_with(context(), adopted(0)).outcome, Outcome::Pass);
    let attached = || Context {
        command_began_ns: None,
        ..context()
    };
    let found = queue_with(attached(), adopted(40));
    assert_eq!(found.outcome, Outcome::Pass);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("from before the recording")),
        "{found:?}"
    );
    let holes = |unclaimed: u64| {
        move |queue: &mut Queue| {
            adopted(40)(queue);
            (queue.last_index, queue.unclaimed) = (Some(44), Some(unclaimed));
        }
    };
    let found = queue_with(attached(), holes(2));
    assert_eq!(found.outcome, Outcome::Pass, "{found:?}");
    assert!(
        found.notes.iter().any(|note| note.contains("2 packets in the rings")),
        "{found:?}"
    );
    assert_eq!(queue_with(attached(), holes(1)).outcome, Outcome::Inconclusive);
    assert_eq!(
        queue_with(context(), |queue| {
            adopted(0)(queue);
            queue.unclaimed = Some(1);
        })
        .outcome,
        Outcome::Inconclusive
    );
}

#[test]
fn queues_of_copies_do_not_matter_and_unreadable_ones_do() {
    for (kind, outcome) in [("sdma-xgmi", Outcome::Pass), ("compute-pm4", Outcome::Inconclusive)] {
        let mut facts = good(3);
        facts.push(Fact::Queue(Queue {
            queue: 1,
            kind: kind.to_owned(),
            ..queue(9)
        }));
        assert_eq!(rule("coverage", context(), &facts).outcome, outcome, "{kind}");
    }
}

#[test]
fn a_doorbell_of_which_nothing_is_known_leaves_it_open() {
    for (queue, beyond) in [(None, false), (Some(0), true)] {
        let mut facts = good(3);
        facts.push(Fact::Doorbell(crate::tables::Doorbell {
            queue,
            beyond,
            published: 0,
            ..doorbell(9)
        }));
        assert_eq!(rule("coverage", context(), &facts).outcome, Outcome::Inconclusive);
    }
}

#[test]
fn offenders_are_shown_up_to_ten_and_counted_beyond() {
    let mut facts = good(25);
    facts.iter_mut().for_each(|fact| {
        if let Fact::Dispatch(dispatch) = fact {
            dispatch.path = Path::Ring;
        }
    });
    let found = rule("coverage", context(), &facts);
    assert_eq!((found.offenders.len(), found.more_offenders), (10, 15));
}

/// A trace that lost the rows of its queues still has packets.
#[test]
fn packets_without_the_rows_of_their_queues_are_not_no_packets() {
    let mut facts = good(3);
    facts.retain(|fact| !matches!(fact, Fact::Queue(_)));
    let mut damaged = context();
    damaged.damage = vec!["the folder is missing".to_owned()];
    damaged.unread = [Table::Queues].into();
    for context in [context(), damaged] {
        let found = rule("coverage", context, &facts);
        assert_eq!(found.outcome, Outcome::Inconclusive);
        assert!(
            found.sentence.starts_with("the trace has 3 packets of 1 queue without"),
            "{}",
            found.sentence
        );
        assert_eq!(
            ["queues", "published", "pending", "unseen"].map(|name| found.counts[name]),
            [None; 4]
        );
    }
    let none = rule("coverage", context(), &[]);
    assert_eq!(
        (none.outcome, none.counts["published"]),
        (Outcome::Inconclusive, Some(0))
    );
    assert_eq!(none.sentence, "no packet was published on any compute queue");
    // What cannot be read may have been there.
    for table in [Table::Queues, Table::Dispatches, Table::Packets] {
        let mut damaged = context();
        damaged.unread = [table].into();
        let found = rule("coverage", damaged, &[]);
        assert_eq!(found.outcome, Outcome::Inconclusive);
        assert!(found.sentence.contains("its tables are damaged"), "{}", found.sentence);
    }
}
