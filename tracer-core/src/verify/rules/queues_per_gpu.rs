//! `queues-per-gpu`: no more than this many compute queues of traced processes existed at the same time on one GPU. Warns if
//! there were more, because the scheduler may then have to run them in turns. Inconclusive if ioctls, which report queues and
//! their GPUs, were not watched, or if queues of unknown GPUs could make the difference. Queues of other processes are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::{Counts, Rule, ioctls_watched};
use crate::tables::Fact;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome};
use crate::words::count;

pub(super) struct QueuesPerGpu {
    most: u64,
    /// By queue: its GPU, creation and destruction. The last row of a queue counts.
    lives: BTreeMap<u32, (Option<u32>, u64, u64)>,
}

impl QueuesPerGpu {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            lives: BTreeMap::new(),
        }
    }

    /// Returns the greatest number of queues that exist at the same time on a GPU, and when. If `with_unknown`, queues whose GPU
    /// is unknown count as well.
    fn peak(&self, gpu_id: Option<u32>, with_unknown: bool) -> (u64, u64) {
        let mut changes: Vec<(u64, bool)> = self
            .lives
            .values()
            .filter(|(of, ..)| *of == gpu_id || (with_unknown && of.is_none()))
            .flat_map(|&(_, begin, end)| [(begin, true), (end, false)])
            .collect();
        // At the same time, a destruction comes before a creation, because false is less than true.
        changes.sort_unstable();
        let (mut alive, mut peak) = (0_u64, (0, 0));
        for (time_ns, begins) in changes {
            alive = if begins { alive + 1 } else { alive.saturating_sub(1) };
            if alive > peak.0 {
                peak = (alive, time_ns);
            }
        }
        peak
    }
}

impl Rule for QueuesPerGpu {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Queue(queue) = fact
            && queue.kind.starts_with("compute")
        {
            let (begin, end) = (queue.created_ns, queue.destroyed_ns.unwrap_or(u64::MAX));
            let end = end.max(begin.saturating_add(1));
            self.lives.insert(queue.queue, (queue.gpu_id, begin, end));
        }
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = ioctls_watched(context, finding);
        let gpus: BTreeSet<Option<u32>> = self.lives.values().map(|(gpu_id, ..)| *gpu_id).collect();
        let most = self.most;
        let (mut crowded, mut perhaps, mut highest) = (Offenders::default(), Offenders::default(), 0);
        for gpu_id in gpus {
            let (known, at_ns) = self.peak(gpu_id, false);
            let (possible, _) = self.peak(gpu_id, true);
            highest = highest.max(known);
            let offender = |what: &str, count| Offender {
                what: what.to_owned(),
                count: Some(count),
                gpu_id,
                time_ns: Some(at_ns),
                ..Offender::default()
            };
            if known > most && gpu_id.is_some() {
                crowded.add(|| offender("a GPU with more compute queues at once", known));
            } else if possible > most {
                perhaps.add(|| offender("a GPU that may have had more compute queues at once", possible));
            }
        }
        finding.count("most_at_once", watched.then_some(highest));
        if watched && self.lives.is_empty() {
            finding.say(Outcome::Inconclusive, "there was no compute queue");
        }
        let limit = count(most, "compute queue");
        finding.blame(Outcome::Warn, crowded, "GPU", |n| {
            format!("{n} had more than {limit} of traced processes at once")
        });
        finding.blame(Outcome::Inconclusive, perhaps, "GPU", |_| {
            format!("it is unknown whether a GPU had more than {limit} at once")
        });
        let highest = count(highest, "compute queue");
        format!("a GPU had at most {highest} of traced processes at once; the limit is {most}")
    }
}
