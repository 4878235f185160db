//! `coverage`: a doorbell that was seen published every index of every compute queue of traced processes, from the creation of
//! the queue (or from when it was found, if tracer attached to the process) to its destruction.
//!
//! Fails if a packet was published on another path, and, if all doorbell probes were attached, if the GPU took a packet that no
//! doorbell ever named. Fails if queues of AQL packets were created without any HSA runtime: the code that rings their doorbells
//! bypasses every probe. A queue of PM4 commands is no evidence of that, since its packets cannot be read. The rule is inconclusive if there are:
//! - packets that the GPU took without a doorbell while a doorbell probe could not be attached, or a library could not be opened;
//! - unread packets: a doorbell that was seen published them, but it is unknown whether they were dispatches;
//! - vendor packets of a format that this version does not know: they may launch kernels;
//! - gaps: indexes without a row, or that no doorbell that was seen accounts for (lost rows, lost events);
//! - packets that the GPU took before their doorbell: a store bypassed every probe, or the GPU read the write index by itself
//!   when it mapped the queue;
//! - queues that tracer did not sample after their last use: it is unknown which of their packets the GPU took;
//! - pending packets of such queues: they are reserved, and no doorbell was seen. They were not published, or a store that
//!   bypassed every probe published them;
//! - queues whose creation was not seen although the recorder started first, and queues whose packets cannot be read.

mod tally;

use std::collections::{BTreeMap, BTreeSet};

use super::{Counts, Rule, of_dispatch, of_doorbells, of_run, packets_watched};
use crate::losses::hide_doorbells;
use crate::tables::{self, Fact, Path, QueueOrigin, Table};
use crate::tally::{Entry, more, total};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome};
use crate::words::{Named, count};
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
    /// Vendor packets of an unknown format.
    unknown_formats: Offenders,
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
        if packet.kind == tables::PacketKind::VendorOther {
            self.unknown_formats.add_many(packet.count, || {
                offender("a vendor packet of an unknown format".to_owned())
            });
        }
        if packet.path == Path::Unseen {
            return self.tally(packet.queue).unseen(packet.index, packet.count);
        }
        let (kind, path) = (packet.kind.name(), packet.path.name());
        self.published(packet.path, 1, || offender(format!("a {kind} packet by path {path}")));
        if packet.kind == tables::PacketKind::Unread {
            let why = packet.unread.map_or("unknown", Named::name);
            self.unread.add(|| offender(format!("unread packets ({why})")));
            more(&mut self.unread_indexes, packet.count);
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
            let indexes = run.first_index.zip(run.last_index);
            tally.run(run.is_whole(), indexes.filter(|_| !run.beyond));
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
            index: Some(run.highest_value),
            ..of_doorbells(run, what)
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
                self.published(dispatch.path, 1, || {
                    of_dispatch(dispatch, format!("a dispatch by path {}", dispatch.path.name()))
                });
            }
            Fact::DispatchRun(run) => {
                let tally = self.tally(run.queue);
                tally.run(run.is_whole(), Some((run.first_index, run.last_index)));
                if run.path == Path::Unseen {
                    tally.unseen(run.first_index, run.count);
                }
                self.published(run.path, run.count, || {
                    of_run(run, format!("dispatches by path {}", run.path.name()))
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

    fn finish(mut self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = packets_watched(context, finding);
        let mut seen = tally::Seen::default();
        for queue in self.queues.values() {
            let tally = self.tallies.remove(&queue.queue).unwrap_or_default();
            seen.queue(queue, &tally, context);
        }
        let of_queues = self.tallies.values().map(|tally| tally.rows.rows());
        let (orphans, without) = (total(of_queues), self.tallies.len() as u64);
        for number in self.tallies.keys() {
            seen.without_queue(*number);
        }
        // Only the row of a queue says how many packets were published on it.
        let whole = watched && orphans == 0 && !context.unread.contains(&Table::Queues);
        finding.count("queues", whole.then_some(seen.queues));
        finding.count("published", whole.then_some(seen.published));
        finding.count("unread", watched.then_some(self.unread_indexes));
        finding.count("pending", whole.then_some(seen.pending.total()));
        // Without a runtime, samples show everything that the GPU took, and there is no doorbell to watch.
        let sampled = context.capabilities.unseen;
        let counted = sampled && orphans == 0 && !context.unread.contains(&Table::Queues);
        let unseen = seen.unseen.total().saturating_add(seen.early.total());
        finding.count("unseen", counted.then_some(unseen));
        if watched && !sampled {
            finding.lack(
                "tracer did not sample the queues for doorbells that bypass every probe",
                "samples of the queues",
                "record again with this version of `tracer`, and read the warnings of `tracer report TRACE`",
            );
        }
        if orphans > 0 {
            let (packets, queues) = (count(orphans, "packet"), count(without, "queue"));
            finding.lack(
                format!("the trace has {packets} of {queues} without the rows of these queues"),
                "rows of the queues",
                "restore the trace from a copy, or record again and let the recorder finish",
            );
        } else if watched && seen.published == 0 {
            let unread = [Table::Queues, Table::Dispatches, Table::DispatchRuns, Table::Packets];
            if unread.iter().any(|table| context.unread.contains(table)) {
                finding.lack(
                    "no packet of a compute queue can be read from the trace: its tables are damaged",
                    "packets",
                    "restore the trace from a copy, or record again",
                );
            } else {
                finding.say(Outcome::Inconclusive, "no packet was published on any compute queue");
            }
        }
        let open = Outcome::Inconclusive;
        finding.blame(Outcome::Fail, self.elsewhere, "packet", |n| {
            format!("published without a doorbell: {n}")
        });
        // A doorbell that was lost, or that no probe could see, may have published the packets. Unreadable parts of the trace may
        // name it.
        let mut losses = context.losses.iter();
        let lost = self.doorbells_lost
            || !context.damage.is_empty()
            || context.doorbell_probes_missing > 0
            || losses.any(|(source, n)| *n > 0 && hide_doorbells(source));
        if context.libraries.is_empty() && context.complete && !lost {
            finding.blame(Outcome::Fail, seen.created, "AQL queue", |n| {
                format!("processes without an HSA runtime created {n}")
            });
        }
        if context.doorbell_probes_missing > 0 {
            let probes = count(context.doorbell_probes_missing, "doorbell probe");
            finding.lack(
                format!("tracer could not attach {probes}, and misses doorbells there"),
                "doorbell probes",
                "read the warnings of `tracer report TRACE`, follow them, and record again",
            );
        }
        let without = if lost { open } else { Outcome::Fail };
        finding.blame(without, seen.unseen, "packet", |n| {
            format!("the GPU took {n} without a doorbell that tracer saw")
        });
        finding.blame(open, seen.early, "packet", |n| {
            format!("the GPU took {n} before the doorbell")
        });
        finding.blame(open, seen.unwatched, "queue", |n| {
            format!("tracer did not watch {n} to the end")
        });
        let unread = count(self.unread_indexes, "published packet");
        finding.blame(open, self.unread, "row", |_| {
            format!("tracer could not read {unread} in time")
        });
        finding.blame(open, self.unknown_formats, "vendor packet", |n| {
            format!("this version does not know the format of {n}, which may launch kernels")
        });
        finding.blame(open, seen.gaps, "queue", |n| format!("the rows of {n} have gaps"));
        finding.blame(open, seen.pending, "reserved packet", |n| {
            format!("tracer saw no doorbell for {n}")
        });
        finding.blame(open, seen.headless, "queue", |n| {
            format!("tracer did not see the creation of {n}")
        });
        finding.blame(open, seen.opaque, "queue", |n| {
            format!("tracer cannot read the packets of {n}")
        });
        finding.blame(open, self.obscure, "doorbell", |n| {
            format!("unknown packets were published by {n}")
        });
        let queues = || self.queues.values();
        let mut ringing = queues().filter(|queue| queue.doorbells > 0);
        if !context.capabilities.thunk && ringing.any(|queue| !self.thunks.contains(&queue.pid)) {
            finding.note("not watched: doorbells that the thunk library rings");
        }
        let unclaimed = queues().filter_map(|queue| queue.unclaimed);
        let adopted = queues().filter(|queue| queue.origin == QueueOrigin::Adopted);
        finding.mention(adopted.count() as u64, "queue", |n| {
            format!("covered from the first doorbell that tracer saw: {n} from before the recording")
        });
        finding.mention(total(unclaimed), "packet", |n| {
            format!("not judged: {n} in the rings by then, for which tracer saw no doorbell")
        });
        let (packets, queues) = (count(seen.published, "packet"), count(seen.queues, "compute queue"));
        format!("tracer saw the doorbell of every packet: {packets} on {queues}")
    }
}
