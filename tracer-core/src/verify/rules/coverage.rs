//! `coverage`: a doorbell that was seen published every index of every compute queue of traced processes, from the creation of
//! the queue (or from when it was found, if tracer attached to the process) to its destruction.
//!
//! Fails if a packet was published on another path, and, if all doorbell probes were attached, if the GPU took a packet that no
//! doorbell ever named. Fails if compute queues were created without any HSA runtime: the code that rings their doorbells
//! bypasses every probe. The rule is inconclusive if there are:
//! - packets that the GPU took without a doorbell while a doorbell probe could not be attached, or a library could not be opened;
//! - unread packets: a doorbell that was seen published them, but it is unknown whether they were dispatches;
//! - gaps: indexes without a row, or that no doorbell that was seen accounts for (lost rows, lost events);
//! - packets that the GPU took before their doorbell: a store bypassed every probe, or the GPU read the write index by itself
//!   when it mapped the queue;
//! - queues that tracer did not sample after their last use: it is unknown which of their packets the GPU took;
//! - pending packets of such queues: they are reserved, and no doorbell was seen. They were not published, or a store that
//!   bypassed every probe published them;
//! - queues whose creation was not seen although the recorder started first, and queues whose packets cannot be read.

mod tally;

use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, packets_watched};
use crate::losses::hide_doorbells;
use crate::tables::{self, Fact, Path, QueueOrigin};
use crate::tally::Entry;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};
use crate::words::Named;
use crate::words::count;
use tally::QueueTally;

#[derive(Default)]
pub(super) struct Coverage {
    queues: BTreeMap<u32, tables::Queue>,
    tallies: BTreeMap<u32, QueueTally>,
    /// Packets that were published other than by a doorbell.
    elsewhere: Offenders,
    /// Whether doorbells may have been lost. If so, the absence of a doorbell proves nothing.
    doorbells_lost: bool,
    unread: Offenders,
    unread_indexes: u64,
    /// Doorbells of which only the value could be read, or whose value was not reserved.
    obscure: Offenders,
    /// Processes of which it is known whether their runtimes pass doorbells to the thunk library.
    thunks: BTreeSet<u32>,
}

impl Coverage {
    fn tally(&mut self, queue: u32) -> &mut QueueTally {
        self.tallies.entry(queue).or_default()
    }

    fn published(&mut self, path: Path, count: u64, offender: impl FnOnce() -> Offender) {
        match path {
            // Unseen packets have runs; they are counted per queue.
            Path::Doorbell | Path::Unseen => {}
            Path::Ring | Path::Thunk => self.elsewhere.add_many(count, offender),
        }
    }

    fn packet(&mut self, packet: &tables::OtherPacket) {
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
        if packet.path == Path::Unseen {
            return self.tally(packet.queue).unseen(packet.index, packet.count);
        }
        self.published(packet.path, 1, || {
            offender(format!(
                "a {} packet by path {}",
                packet.kind.name(),
                packet.path.name()
            ))
        });
        if packet.kind == tables::PacketKind::Unread {
            let why = packet.unread.map_or("unknown", |it| it.name());
            self.unread.add(|| offender(format!("unread packets ({why})")));
            self.unread_indexes = self.unread_indexes.saturating_add(packet.count);
        }
    }

    fn doorbell(&mut self, doorbell: &tables::Doorbell) {
        if let Some(queue) = doorbell.queue.filter(|_| !doorbell.beyond) {
            self.tally(queue).named(doorbell.value);
        }
        let what = match (doorbell.queue, doorbell.beyond) {
            (None, _) => "a doorbell of a queue that could not be read",
            (_, true) => "a doorbell for an index that was not reserved",
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

    fn doorbell_run(&mut self, run: &tables::DoorbellRun) {
        if let Some(queue) = run.queue {
            let tally = self.tally(queue);
            tally.run(
                run.is_whole(),
                run.first_index.zip(run.last_index).filter(|_| !run.beyond),
            );
            if !run.beyond {
                tally.named(run.highest_value);
            }
        }
        let what = match (run.queue, run.beyond) {
            (None, _) => "doorbells of a queue that could not be read",
            (_, true) => "doorbells for indexes that were not reserved",
            _ => return,
        };
        self.obscure.add_many(run.count, || Offender {
            what: what.to_owned(),
            queue: run.queue,
            index: Some(run.highest_value),
            count: Some(run.count),
            pid: Some(run.pid),
            time_ns: Some(run.begin_ns),
            ..Offender::default()
        });
    }
}

impl Rule for Coverage {
    fn add(&mut self, fact: &Fact) {
        // Copies have no indexes of packets.
        if !matches!(fact, Fact::Copy(_))
            && let Some(queue) = Entry::of(fact).and_then(|entry| entry.queue)
        {
            self.tally(queue).rows.add(fact);
        }
        match fact {
            Fact::Dispatch(dispatch) => {
                if dispatch.path == Path::Unseen {
                    self.tally(dispatch.queue).unseen(dispatch.index, 1);
                }
                self.published(dispatch.path, 1, || Offender {
                    what: format!("a dispatch by path {}", dispatch.path.name()),
                    queue: Some(dispatch.queue),
                    index: Some(dispatch.index),
                    pid: Some(dispatch.pid),
                    tid: Some(dispatch.tid),
                    time_ns: Some(dispatch.time_ns),
                    ..Offender::default()
                });
            }
            Fact::DispatchRun(run) => {
                let tally = self.tally(run.queue);
                tally.run(run.is_whole(), Some((run.first_index, run.last_index)));
                if run.path == Path::Unseen {
                    tally.unseen(run.first_index, run.count);
                }
                self.published(run.path, run.count, || {
                    super::of_run(run, format!("dispatches by path {}", run.path.name()))
                });
            }
            Fact::Packet(packet) => self.packet(packet),
            Fact::Doorbell(doorbell) => self.doorbell(doorbell),
            Fact::DoorbellRun(run) => self.doorbell_run(run),
            // A killed recorder can leave several rows for one queue; the last one counts.
            Fact::Queue(queue) => drop(self.queues.insert(queue.queue, queue.clone())),
            Fact::Process(process) => self.thunks.extend(process.thunk.map(|_| process.pid)),
            Fact::Loss(loss) => self.doorbells_lost |= hide_doorbells(&loss.source),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = packets_watched(context, &mut finding);
        let mut seen = tally::Seen::default();
        for queue in self.queues.values() {
            let tally = self.tallies.remove(&queue.queue).unwrap_or_default();
            seen.queue(queue, &tally, context);
        }
        for number in self.tallies.keys() {
            seen.without_queue(*number);
        }
        finding.count("queues", watched.then_some(seen.queues));
        finding.count("published", watched.then_some(seen.published));
        finding.count("unread", watched.then_some(self.unread_indexes));
        finding.count("pending", watched.then_some(seen.pending_indexes));
        let looked = watched && context.capabilities.unseen;
        let unseen = seen.unseen_indexes.saturating_add(seen.early_indexes);
        finding.count("unseen", looked.then_some(unseen));
        if watched && !looked {
            finding.lack(
                "tracer did not sample the queues for doorbells that bypass every probe",
                "samples of the queues",
                "record again with this version of `tracer`, and read the warnings of `tracer report TRACE`",
            );
        }
        if watched && seen.published == 0 {
            finding.say(Outcome::Inconclusive, "no packet was published on any compute queue");
        }
        let open = Outcome::Inconclusive;
        finding.blame(Outcome::Fail, self.elsewhere, |n| {
            format!("published without a doorbell: {}", count(n, "packet"))
        });
        // A doorbell that was lost, or that no probe could see, may have published the packets. Unreadable parts of the trace may
        // name it.
        let lost = self.doorbells_lost
            || !context.damage.is_empty()
            || context.doorbell_probes_missing > 0
            || context
                .losses
                .iter()
                .any(|(source, n)| *n > 0 && hide_doorbells(source));
        if context.libraries.is_empty() && context.complete && !lost {
            finding.blame(Outcome::Fail, seen.created, |n| {
                format!("processes without an HSA runtime created {}", count(n, "compute queue"))
            });
        }
        if context.doorbell_probes_missing > 0 {
            finding.lack(
                format!(
                    "tracer could not attach {}, and misses doorbells there",
                    count(context.doorbell_probes_missing, "doorbell probe")
                ),
                "doorbell probes",
                "read the warnings of `tracer report TRACE`, follow them, and record again",
            );
        }
        let indexes = seen.unseen_indexes;
        finding.blame(if lost { open } else { Outcome::Fail }, seen.unseen, |_| {
            format!(
                "the GPU took {} without a doorbell that tracer saw",
                count(indexes, "packet")
            )
        });
        let indexes = seen.early_indexes;
        finding.blame(open, seen.early, |_| {
            format!("the GPU took {} before the doorbell", count(indexes, "packet"))
        });
        finding.blame(open, seen.unwatched, |n| {
            format!("tracer did not watch {} to the end", count(n, "queue"))
        });
        let indexes = self.unread_indexes;
        finding.blame(open, self.unread, |_| {
            format!("tracer could not read {} in time", count(indexes, "published packet"))
        });
        finding.blame(open, seen.gaps, |n| {
            format!("the rows of {} have gaps", count(n, "queue"))
        });
        let indexes = seen.pending_indexes;
        finding.blame(open, seen.pending, |_| {
            format!("tracer saw no doorbell for {}", count(indexes, "reserved packet"))
        });
        finding.blame(open, seen.headless, |n| {
            format!("tracer did not see the creation of {}", count(n, "queue"))
        });
        finding.blame(open, seen.opaque, |n| {
            format!("tracer cannot read the packets of {}", count(n, "queue"))
        });
        finding.blame(open, self.obscure, |n| {
            format!("unknown packets were published by {}", count(n, "doorbell"))
        });
        let mut ringing = self.queues.values().filter(|queue| queue.doorbells > 0);
        if !context.capabilities.thunk && ringing.any(|queue| !self.thunks.contains(&queue.pid)) {
            finding.note("not watched: doorbells that the thunk library rings");
        }
        let unclaimed = self.queues.values().filter_map(|q| q.unclaimed);
        let unclaimed = unclaimed.fold(0_u64, u64::saturating_add);
        let adopted = self
            .queues
            .values()
            .filter(|q| q.origin == QueueOrigin::Adopted)
            .count();
        if adopted > 0 {
            finding.note(format!(
                "covered from the first doorbell that tracer saw: {} from before the recording",
                count(adopted as u64, "queue")
            ));
        }
        if unclaimed > 0 {
            finding.note(format!(
                "not judged: {} in the rings by then, for which tracer saw no doorbell",
                count(unclaimed, "packet")
            ));
        }
        let (published, queues) = (seen.published, seen.queues);
        finding.finish("coverage", || {
            format!(
                "tracer saw the doorbell of every packet: {} on {}",
                count(published, "packet"),
                count(queues, "compute queue")
            )
        })
    }
}
