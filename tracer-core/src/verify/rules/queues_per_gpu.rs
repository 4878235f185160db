//! `queues-per-gpu`: no more than this many compute queues of traced processes existed at the same time on one GPU. Warns if
//! there were more, because the scheduler may then have to run them in turns. Inconclusive if ioctls, which report queues and
//! their GPUs, were not watched, or if queues of unknown GPUs could make the difference. Queues of other processes are not seen.

use crate::words::count;
use std::collections::BTreeMap;

use super::{Rule, ioctls_watched};
use crate::tables::{Fact, Queue};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};

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

fn life(queue: &Queue) -> (Option<u32>, u64, u64) {
    let end = queue.destroyed_ns.unwrap_or(u64::MAX);
    (
        queue.gpu_id,
        queue.created_ns,
        end.max(queue.created_ns.saturating_add(1)),
    )
}

impl Rule for QueuesPerGpu {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Queue(queue) = fact
            && queue.kind.starts_with("compute")
        {
            self.lives.insert(queue.queue, life(queue));
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = ioctls_watched(context, &mut finding);
        let mut gpus: Vec<Option<u32>> = self.lives.values().map(|(gpu_id, ..)| *gpu_id).collect();
        gpus.sort_unstable();
        gpus.dedup();
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
        finding.blame(Outcome::Warn, crowded, |n| {
            format!(
                "{} had more than {} of traced processes at once",
                count(n, "GPU"),
                count(most, "compute queue")
            )
        });
        finding.blame(Outcome::Inconclusive, perhaps, |_| {
            format!(
                "it is unknown whether a GPU had more than {} at once",
                count(most, "compute queue")
            )
        });
        finding.finish("queues-per-gpu", || {
            format!(
                "a GPU had at most {} of traced processes at once; the limit is {most}",
                count(highest, "compute queue")
            )
        })
    }
}
