//! `sound-capture`: the trace is complete. Inconclusive if doorbells and packets were not watched, if events were lost, if the
//! recorder did not finish, or if a part of the trace cannot be read. The rule never fails, because it does not judge the
//! program. Aggregated rows are not lost. Rules that need more than their counts are inconclusive on their own account.

use std::collections::BTreeMap;

use super::{Counts, Rule, packets_watched};
use crate::losses::PAUSE_LIMIT;
use crate::tables::Fact;
use crate::tally::{Aggregated, more, total};
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::words::count;

/// Number of sources of losses that are distinguished.
const MAX_SOURCES: usize = 1024;

#[derive(Default)]
pub(super) struct SoundCapture {
    losses: BTreeMap<String, u64>,
}

impl Rule for SoundCapture {
    fn add(&mut self, fact: &Fact) {
        let Fact::Loss(loss) = fact else { return };
        let known = self.losses.contains_key(&loss.source) || self.losses.len() < MAX_SOURCES;
        let source: &str = if known { &loss.source } else { "other" };
        more(self.losses.entry(source.to_owned()).or_default(), loss.count);
    }

    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        packets_watched(context, finding);
        // The manifest counts the same losses as the rows, and also those of the writer.
        let mut losses = self.losses;
        for (source, &count) in &context.losses {
            let sum = losses.entry(source.clone()).or_default();
            *sum = count.max(*sum);
        }
        losses.retain(|_, count| *count > 0);
        let lost = total(losses.values().copied());
        finding.count("losses", Some(lost));
        if lost > 0 {
            let list: Vec<String> = losses
                .iter()
                .map(|(source, count)| format!("{source} {count}"))
                .collect();
            // A larger buffer or less detail does not help a process that continued before its probes were in.
            let fix = if losses.keys().all(|source| source == PAUSE_LIMIT) {
                "record again with a larger `--pause-limit`, or with fewer programs at work beside it"
            } else {
                "record again with a larger `--buffer`, with fewer programs at work beside it, or with `--detail dispatch`"
            };
            let lost = format!("lost: {} ({})", count(lost, "event"), list.join(", "));
            finding.lack(lost, "lost events", fix);
        }
        let Aggregated { dispatches, doorbells } = counts.tally.aggregated;
        finding.count("aggregated", Some(dispatches.saturating_add(doorbells)));
        if dispatches > 0 || doorbells > 0 {
            let (dispatches, doorbells) = (count(dispatches, "dispatch"), count(doorbells, "doorbell"));
            finding.note(format!(
                "aggregated, counted without a row each: {dispatches} and {doorbells}"
            ));
        }
        finding.require(
            context.complete,
            "the trace is incomplete: its recorder did not finish",
            "the end of the trace",
            "record again, and let the recorder finish",
        );
        if let Some(first) = context.damage.first() {
            let more = match context.damage.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            finding.lack(
                format!("the trace is damaged: {first}{more}"),
                "damaged parts of the trace",
                "restore the trace from a copy, or record again",
            );
        }
        "doorbells and packets were watched, nothing was lost, and the trace is complete".to_owned()
    }
}
