//! Follows the indexes of all queues.

use std::collections::{BTreeMap, BTreeSet};

use super::holder::{Holder, Published, Seen, Times};
use super::union::Union;
use super::{Bound, InFlight, StreamHeld};
use crate::tables::{Dispatch, Doorbell, DoorbellRun, GpuTime, OtherPacket, PacketKind, Path, Progress, Queue};
use crate::tally::bounded;

/// Number of queues that are distinguished, and of streams on all of them.
const MAX_HOLDERS: usize = 65_536;

#[derive(Debug, Default)]
pub(in crate::analysis) struct Counter {
    queues: BTreeMap<u32, OfQueue>,
    streams: BTreeMap<(u32, u64), (Holder, Times)>,
    processes: BTreeMap<u32, Times>,
    all: Times,
    ran: Union,
    timed: u64,
    /// Dispatches, and packets that may be.
    dispatches: u64,
    /// Time of the first doorbell.
    first_ns: Option<u64>,
    /// The last time at which a queue held work.
    last_ns: u64,
    /// The latest time of any doorbell or sample.
    end_ns: u64,
}

#[derive(Debug, Default)]
struct OfQueue {
    pid: u32,
    holder: Holder,
    times: Times,
    row: Option<Last>,
}

/// What the row of a queue says of its end.
#[derive(Debug)]
struct Last {
    /// Whether each packet that the GPU took had a doorbell that was seen.
    is_whole: bool,
    seen: Option<Seen>,
    destroyed_ns: Option<u64>,
}

impl Counter {
    pub(in crate::analysis) fn queue(&mut self, row: &Queue) {
        if !row.is_aql() {
            return;
        }
        if let Some(queue) = of(&mut self.queues, row.queue, row.pid) {
            queue.row = Some(Last {
                is_whole: row.unseen == Some(0) && row.watched_to_end == Some(true),
                seen: row
                    .looked_ns
                    .zip(row.read_index)
                    .map(|(time, read)| Seen::at(time, read)),
                destroyed_ns: row.destroyed_ns,
            });
        }
    }

    pub(in crate::analysis) fn doorbell(&mut self, row: &Doorbell) {
        let Some(queue) = row.queue else { return };
        self.see(queue, row.pid, Seen::at(row.time_ns, row.read_index));
        if let Some(indexes) = row.indexes() {
            let published = Published {
                begin_ns: row.time_ns,
                end_ns: row.time_ns,
                end: indexes.end().saturating_add(1),
            };
            self.publish(queue, row.pid, published);
        }
    }

    pub(in crate::analysis) fn doorbell_run(&mut self, row: &DoorbellRun) {
        if let (Some(queue), Some(last)) = (row.queue, row.last_index) {
            let published = Published {
                begin_ns: row.begin_ns,
                end_ns: row.end_ns,
                end: last.saturating_add(1),
            };
            self.publish(queue, row.pid, published);
        }
    }

    pub(in crate::analysis) fn progress(&mut self, row: &Progress) {
        let seen = Seen {
            time_ns: row.time_ns,
            until_ns: row.until_ns,
            read_index: row.read_index,
        };
        self.see(row.queue, row.pid, seen);
    }

    pub(in crate::analysis) fn dispatch(&mut self, row: &Dispatch) {
        self.dispatches += 1;
        let Some(stream) = row.stream.filter(|_| row.path != Path::Unseen) else {
            return;
        };
        if let Some((holder, times)) = bounded(&mut self.streams, &(row.queue, stream), MAX_HOLDERS) {
            let published = Published {
                begin_ns: row.time_ns,
                end_ns: row.time_ns,
                end: row.index.saturating_add(1),
            };
            holder.publish(published, &mut [times]);
        }
    }

    /// Counts dispatches that have no rows of their own, and thus no times.
    pub(in crate::analysis) fn dispatch_run(&mut self, count: u64) {
        self.dispatches = self.dispatches.saturating_add(count);
    }

    pub(in crate::analysis) fn packet(&mut self, row: &OtherPacket) {
        if row.kind == PacketKind::Unread {
            self.dispatch_run(row.count);
        }
    }

    pub(in crate::analysis) fn time(&mut self, row: &GpuTime) {
        if let (Some(start), Some(end)) = (row.start_ns, row.end_ns) {
            self.timed += 1;
            self.ran.add(start, end);
        }
    }

    /// Returns the times; `None` without a doorbell of an AQL queue.
    pub(in crate::analysis) fn finish(mut self) -> Option<InFlight> {
        let first_ns = self.first_ns?;
        self.end();
        let is_whole = |queue: &OfQueue| queue.row.as_ref().is_some_and(|row| row.is_whole);
        let open: BTreeSet<u32> = self
            .queues
            .values()
            .filter(|queue| !is_whole(queue))
            .map(|queue| queue.pid)
            .collect();
        let phase_ns = self.last_ns.saturating_sub(first_ns);
        let held = self.all.held(open.is_empty());
        let ran_ns = (self.timed > 0).then(|| self.ran.total());
        let of_all = ran_ns.filter(|_| self.timed == self.dispatches);
        Some(InFlight {
            phase_ns,
            held,
            processes: self
                .processes
                .iter()
                .map(|(&pid, times)| (pid, times.held(!open.contains(&pid))))
                .collect(),
            queues: self
                .queues
                .iter()
                .map(|(&number, queue)| (number, queue.times.held(is_whole(queue))))
                .collect(),
            streams: self
                .streams
                .iter()
                .map(|(&(queue, stream), (_, times))| StreamHeld {
                    queue,
                    stream,
                    held: times.held(self.queues.get(&queue).is_some_and(is_whole)),
                })
                .collect(),
            ran_ns,
            timed: self.timed,
            bound: Bound::of(phase_ns, held, of_all),
        })
    }

    /// Takes the last samples, and the ends of the queues that still hold work.
    fn end(&mut self) {
        let sampled = self.each(|queue| queue.row.as_ref()?.seen);
        sampled
            .into_iter()
            .for_each(|(queue, pid, seen)| self.see(queue, pid, seen));
        // The work of a queue ends with it at the latest.
        let end_ns = self.end_ns;
        let ended = self.each(|queue| {
            let destroyed = queue.row.as_ref().and_then(|row| row.destroyed_ns);
            (queue.holder.holds()).then(|| Seen::at(destroyed.unwrap_or(end_ns), u64::MAX))
        });
        ended
            .into_iter()
            .for_each(|(queue, pid, seen)| self.see(queue, pid, seen));
    }

    /// Returns a moment of each queue that has it, in the order of time.
    fn each(&self, of: impl Fn(&OfQueue) -> Option<Seen>) -> Vec<(u32, u32, Seen)> {
        let with_seen = |(&number, queue): (&u32, &OfQueue)| Some((number, queue.pid, of(queue)?));
        let mut each: Vec<_> = self.queues.iter().filter_map(with_seen).collect();
        each.sort_by_key(|(_, _, seen)| seen.time_ns);
        each
    }

    fn see(&mut self, queue: u32, pid: u32, seen: Seen) {
        self.end_ns = self.end_ns.max(seen.until_ns);
        let Some(of) = of(&mut self.queues, queue, pid) else {
            return;
        };
        if of.holder.holds() {
            self.last_ns = self.last_ns.max(seen.until_ns);
        }
        let process = self.processes.entry(of.pid).or_default();
        of.holder.see(seen, &mut [&mut of.times, process, &mut self.all]);
        for (_, (holder, times)) in self.streams.range_mut((queue, 0)..=(queue, u64::MAX)) {
            holder.see(seen, &mut [times]);
        }
    }

    fn publish(&mut self, queue: u32, pid: u32, published: Published) {
        self.first_ns.get_or_insert(published.begin_ns);
        self.last_ns = self.last_ns.max(published.end_ns);
        self.end_ns = self.end_ns.max(published.end_ns);
        if let Some(of) = of(&mut self.queues, queue, pid) {
            let process = self.processes.entry(of.pid).or_default();
            of.holder
                .publish(published, &mut [&mut of.times, process, &mut self.all]);
        }
    }
}

/// Returns a queue of a process; `None` if it is beyond the limit.
fn of(queues: &mut BTreeMap<u32, OfQueue>, queue: u32, pid: u32) -> Option<&mut OfQueue> {
    if queues.len() >= MAX_HOLDERS && !queues.contains_key(&queue) {
        return None;
    }
    let new = || OfQueue {
        pid,
        ..OfQueue::default()
    };
    Some(queues.entry(queue).or_insert_with(new))
}
