//! `queue-depth`: no compute queue was ever seen deeper than this many packets. Inconclusive if doorbells were not watched, or if
//! there was no compute queue.

use super::{Counts, Rule, packets_watched};
use crate::tables::Fact;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome};
use crate::words::count;

#[derive(Default)]
pub(super) struct QueueDepth {
    most: u64,
    queues: u64,
    deepest: u64,
    deep: Offenders,
}

impl QueueDepth {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }
}

impl Rule for QueueDepth {
    fn add(&mut self, fact: &Fact) {
        let Fact::Queue(queue) = fact else { return };
        if !queue.is_aql() {
            return;
        }
        self.queues += 1;
        self.deepest = self.deepest.max(queue.max_depth);
        if queue.max_depth > self.most {
            self.deep.add(|| Offender {
                what: "a queue deeper than the limit".to_owned(),
                queue: Some(queue.queue),
                count: Some(queue.max_depth),
                gpu_id: queue.gpu_id,
                pid: Some(queue.pid),
                ..Offender::default()
            });
        }
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = packets_watched(context, finding);
        let Self { most, deepest, .. } = *self;
        finding.count("deepest", (watched && self.queues > 0).then_some(deepest));
        if watched && self.queues == 0 {
            finding.say(Outcome::Inconclusive, "there was no compute queue");
        }
        finding.blame(Outcome::Fail, self.deep, "queue", |n| {
            format!("deeper than {}: {n}", count(most, "packet"))
        });
        let deepest = count(deepest, "packet");
        format!("no queue was deeper than {deepest}; the limit is {most}")
    }
}
