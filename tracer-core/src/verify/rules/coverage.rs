//! `coverage`: every index of every compute queue of traced processes, from its creation (or from when it was found, if
//! processes were attached to) to its end, was published by a doorbell that was seen.
//!
//! Fails by a packet that took another way. Open are:
//! - unread packets: a doorbell that was seen published them, but nobody knows whether they were dispatches;
//! - gaps: indexes without a row, or that no doorbell that was seen accounts for (lost rows, lost events);
//! - pending ones: reserved, and no doorbell seen. Nobody published them, or somebody did past every probe, which nothing
//!   but the `unseen` capability can tell apart;
//! - queues whose beginning was not seen although the recorder was there first, and queues whose packets can't be read.

mod tally;

use std::collections::BTreeMap;

use super::{Rule, packets_watched};
use crate::fact::{self, Fact, Path, QueueOrigin};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};
use tally::Tally;

#[derive(Default)]
pub(super) struct Coverage {
    queues: BTreeMap<u32, fact::Queue>,
    tallies: BTreeMap<u32, Tally>,
    /// Packets that were published otherwise than by a doorbell.
    elsewhere: Offenders,
    /// Packets that nobody saw being published.
    unseen: Offenders,
    unread: Offenders,
    unread_indexes: u64,
    /// Doorbells of which nothing but the value could be read, or whose value nobody had reserved.
    obscure: Offenders,
}

impl Coverage {
    fn published(&mut self, path: Path, offender: impl FnOnce() -> Offender) {
        match path {
            Path::Doorbell => {}
            Path::Ring | Path::Thunk => self.elsewhere.add(offender),
            Path::Unseen => self.unseen.add(offender),
        }
    }

    fn packet(&mut self, packet: &fact::OtherPacket) {
        let offender = |what: String| Offender {
            what,
            queue: Some(packet.queue),
            index: Some(packet.index),
            count: Some(packet.count),
            pid: Some(packet.pid),
            tid: (packet.tid != 0).then_some(packet.tid),
            time_ns: Some(packet.time_ns),
            ..Offender::default()
        };
        self.tallies.entry(packet.queue).or_default().rows += u128::from(packet.count);
        self.published(packet.path, || {
            offender(format!(
                "a {} packet by way of {}",
                packet.kind.name(),
                packet.path.name()
            ))
        });
        if packet.kind == fact::PacketKind::Unread {
            let why = packet.unread.map_or("unknown", fact::Unread::name);
            self.unread.add(|| offender(format!("unread packets ({why})")));
            self.unread_indexes = self.unread_indexes.saturating_add(packet.count);
        }
    }

    fn doorbell(&mut self, doorbell: &fact::Doorbell) {
        if let Some(queue) = doorbell.queue {
            self.tallies.entry(queue).or_default().credited += u128::from(doorbell.published);
        }
        let what = match (doorbell.queue, doorbell.beyond) {
            (None, _) => "a doorbell of a queue that could not be read",
            (_, true) => "a doorbell whose value names an index that nobody had reserved",
            _ => return,
        };
        self.obscure.add(|| Offender {
            what: what.to_owned(),
            queue: doorbell.queue,
            index: Some(doorbell.value),
            pid: Some(doorbell.pid),
            tid: Some(doorbell.tid),
            time_ns: Some(doorbell.time_ns),
            ..Offender::default()
        });
    }
}

impl Rule for Coverage {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) => {
                self.tallies.entry(dispatch.queue).or_default().rows += 1;
                self.published(dispatch.path, || Offender {
                    what: format!("a dispatch by way of {}", dispatch.path.name()),
                    queue: Some(dispatch.queue),
                    index: Some(dispatch.index),
                    pid: Some(dispatch.pid),
                    tid: Some(dispatch.tid),
                    time_ns: Some(dispatch.time_ns),
                    ..Offender::default()
                });
            }
            Fact::Packet(packet) => self.packet(packet),
            Fact::Doorbell(doorbell) => self.doorbell(doorbell),
            // Of a recorder that was killed there can be several rows of one queue; the last one counts.
            Fact::Queue(queue) => drop(self.queues.insert(queue.queue, queue.clone())),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = packets_watched(context, &mut finding);
        let mut seen = tally::Seen::default();
        for queue in self.queues.values() {
            let tally = self.tallies.remove(&queue.queue).unwrap_or_default();
            seen.queue(queue, tally, context);
        }
        for number in self.tallies.keys() {
            seen.without_queue(*number);
        }
        finding.count("queues", watched.then_some(seen.queues));
        finding.count("published", watched.then_some(seen.published));
        finding.count("unread", watched.then_some(self.unread_indexes));
        finding.count("pending", watched.then_some(seen.pending_indexes));
        if watched && seen.published == 0 {
            finding.say(Outcome::Inconclusive, "no packet was published on any compute queue");
        }
        let open = Outcome::Inconclusive;
        finding.blame(Outcome::Fail, self.elsewhere, |n| {
            format!("{n} packets were published otherwise than by a doorbell")
        });
        finding.blame(open, self.unseen, |n| {
            format!("how {n} packets were published was not seen")
        });
        let indexes = self.unread_indexes;
        finding.blame(open, self.unread, |_| {
            format!("{indexes} packets were published by doorbells that were seen, but could not be read in time")
        });
        finding.blame(open, seen.gaps, |n| format!("the rows of {n} queues have gaps"));
        let indexes = seen.pending_indexes;
        finding.blame(open, seen.pending, |_| {
            format!("{indexes} packets were reserved, and no doorbell for them was seen")
        });
        finding.blame(open, seen.headless, |n| {
            format!("the beginning of {n} queues was not seen")
        });
        finding.blame(open, seen.opaque, |n| {
            format!("the packets of {n} queues can't be read")
        });
        finding.blame(open, self.obscure, |n| {
            format!("what {n} doorbells published is not known")
        });
        for (known, what) in [
            (context.capabilities.unseen, "stores to doorbells past every probe"),
            (context.capabilities.thunk, "doorbells by way of the thunk library"),
        ] {
            if !known {
                finding.note(format!("not watched: {what}"));
            }
        }
        let adopted = self
            .queues
            .values()
            .filter(|q| q.origin == QueueOrigin::Adopted)
            .count();
        if adopted > 0 {
            finding.note(format!(
                "{adopted} queues were there before: they are covered from their first doorbell that was seen"
            ));
        }
        let (published, queues) = (seen.published, seen.queues);
        finding.finish("coverage", || {
            format!("all {published} packets of {queues} compute queues were published by doorbells that were seen")
        })
    }
}
