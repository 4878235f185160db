//! What happened on each queue and ring over time.

use std::collections::HashMap;

use super::series::{Bin, Series, Span};
use crate::tables::{DispatchRun, DoorbellRun, Fact, GpuTime, RingJob};
use crate::tally::more;

/// Number of queues and rings that are distinguished: a program can create any number of queues.
const MAX_LANES: usize = 512;

/// What a lane shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A queue, by its number in the trace; `None`: the trace does not know which.
    Queue(Option<u32>),
    /// All queues beyond the limit.
    OtherQueues,
    /// A ring of the kernel driver.
    Ring {
        /// Device; `None` if unknown.
        device: Option<String>,
        /// Name; `None` if unknown.
        ring: Option<String>,
    },
    /// All rings beyond the limit.
    OtherRings,
}

/// A queue or a ring over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// What it is.
    pub of: Subject,
    /// What happened.
    pub activity: Series<Activity>,
}

/// What happened in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Kernel dispatches, at their doorbells.
    pub dispatches: u64,
    /// Other packets, read or not.
    pub packets: u64,
    /// Doorbells of an AQL queue.
    pub doorbells: u64,
    /// SDMA submissions, at their doorbells.
    pub copies: u64,
    /// Jobs of a ring, at their first event.
    pub jobs: u64,
    /// Time in which work ran whose begin and end are known, at the least, ns.
    pub busy_ns: u64,
}

impl Bin for Activity {
    fn merge(&mut self, next: &Self) {
        more(&mut self.dispatches, next.dispatches);
        more(&mut self.packets, next.packets);
        more(&mut self.doorbells, next.doorbells);
        more(&mut self.copies, next.copies);
        more(&mut self.jobs, next.jobs);
        more(&mut self.busy_ns, next.busy_ns);
    }
}

impl Activity {
    /// Returns the submissions: dispatches, other packets, copies and jobs.
    #[must_use]
    pub fn submissions(&self) -> u64 {
        let all = [self.dispatches, self.packets, self.copies, self.jobs];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

impl Lane {
    /// Returns what happened in all bins together.
    #[must_use]
    pub fn total(&self) -> Activity {
        let mut total = Activity::default();
        self.activity.used().iter().for_each(|bin| total.merge(bin));
        total
    }

    /// Adds what happened on another lane, whose bins have the same width.
    pub fn merge(&mut self, other: &Self) {
        self.activity.add(&other.activity);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Counter {
    span: Span,
    numbers: HashMap<Subject, usize>,
    lanes: Vec<(Lane, Busy)>,
}

/// The end of the latest work that was seen to run.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    until_ns: u64,
}

impl Counter {
    pub(super) fn new(span: Span) -> Self {
        Self {
            span,
            numbers: HashMap::new(),
            lanes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(row) => self.queue(Some(row.queue)).at(row.time_ns).dispatches += 1,
            Fact::DispatchRun(run) => self.dispatches(run),
            Fact::Packet(row) => more(&mut self.queue(Some(row.queue)).at(row.time_ns).packets, row.count),
            Fact::Doorbell(row) => self.queue(row.queue).at(row.time_ns).doorbells += 1,
            Fact::DoorbellRun(run) => self.doorbells(run),
            // The dispatch of a copy by a kernel is counted.
            Fact::Copy(row) if !row.is_kernel() => self.queue(row.queue).at(row.time_ns).copies += 1,
            Fact::GpuTime(time) => self.gpu_time(time),
            Fact::RingJob(job) => self.job(job),
            _ => {}
        }
    }

    /// Returns the lanes.
    pub(super) fn finish(self) -> Vec<Lane> {
        self.lanes.into_iter().map(|(lane, _)| lane).collect()
    }

    fn dispatches(&mut self, run: &DispatchRun) {
        let activity = self.queue(Some(run.queue));
        spread(activity, (run.begin_ns, run.end_ns), run.count, |bin| {
            &mut bin.dispatches
        });
    }

    fn doorbells(&mut self, run: &DoorbellRun) {
        let activity = self.queue(run.queue);
        spread(activity, (run.begin_ns, run.end_ns), run.count, |bin| {
            &mut bin.doorbells
        });
    }

    fn gpu_time(&mut self, time: &GpuTime) {
        if let (Some(start), Some(end)) = (time.start_ns, time.end_ns) {
            let lane = self.lane(Subject::Queue(Some(time.queue)), Subject::OtherQueues);
            busy(lane, start, end);
        }
    }

    fn job(&mut self, job: &RingJob) {
        let ring = Subject::Ring {
            device: job.device.clone(),
            ring: job.ring.clone(),
        };
        let lane = self.lane(ring, Subject::OtherRings);
        lane.0.activity.at(job.time_ns).jobs += 1;
        if let (Some(start), Some(end)) = (job.run_ns, job.done_ns) {
            busy(lane, start, end);
        }
    }

    fn queue(&mut self, queue: Option<u32>) -> &mut Series<Activity> {
        &mut self.lane(Subject::Queue(queue), Subject::OtherQueues).0.activity
    }

    /// Returns a lane, or that of all others if there is no room for it.
    fn lane(&mut self, of: Subject, others: Subject) -> &mut (Lane, Busy) {
        let of = match self.numbers.get(&of) {
            None if self.lanes.len() >= MAX_LANES => others,
            _ => of,
        };
        let at = match self.numbers.get(&of) {
            Some(&at) => at,
            None => {
                let lane = Lane {
                    of: of.clone(),
                    activity: Series::new(self.span),
                };
                self.lanes.push((lane, Busy::default()));
                self.numbers.insert(of, self.lanes.len() - 1);
                self.lanes.len() - 1
            }
        };
        &mut self.lanes[at]
    }
}

/// Adds a time in which work ran. Work that overlaps counts once; what begins before other work that is known already counts from the
/// end of that.
fn busy((lane, busy): &mut (Lane, Busy), start_ns: u64, end_ns: u64) {
    let start = start_ns.max(busy.until_ns);
    busy.until_ns = busy.until_ns.max(end_ns);
    lane.activity.each(start, end_ns, |bin, ns| more(&mut bin.busy_ns, ns));
}

/// Spreads a number of things evenly over the times from a first to a last one.
fn spread(
    activity: &mut Series<Activity>,
    (begin_ns, end_ns): (u64, u64),
    count: u64,
    value: impl Fn(&mut Activity) -> &mut u64,
) {
    // A time counts to its ns, so a run at one moment is 1 ns long.
    let end = end_ns.max(begin_ns).saturating_add(1);
    let length = activity.ns_within(begin_ns, end);
    let (mut passed, mut given) = (0, 0);
    activity.each(begin_ns, end, |bin, ns| {
        passed += ns;
        let until = (u128::from(count) * u128::from(passed) / u128::from(length)) as u64;
        more(value(bin), until - given);
        given = until;
    });
    // A run outside of the span has no ns in it.
    more(value(activity.at(begin_ns)), count - given);
}
