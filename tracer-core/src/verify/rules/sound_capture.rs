//! `sound-capture`: the trace is complete. Inconclusive if doorbells and packets were not watched, if events were lost, if the
//! recorder did not finish, or if a part of the trace cannot be read. The rule never fails, because it does not judge the
//! program. Aggregated rows are not lost. Rules that need more than their counts are inconclusive on their own account.

use crate::words::count;
use std::collections::BTreeMap;

use super::{Rule, packets_watched};
use crate::tables::Fact;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::RuleVerdict;

/// Number of sources of losses that are distinguished.
const MAX_SOURCES: usize = 1024;

#[derive(Default)]
pub(super) struct SoundCapture {
    losses: BTreeMap<String, u64>,
    /// Dispatches and doorbells that are recorded only as runs.
    aggregated: (u64, u64),
}

impl Rule for SoundCapture {
    fn add(&mut self, fact: &Fact) {
        let loss = match fact {
            Fact::Loss(loss) => loss,
            Fact::DispatchRun(run) => {
                self.aggregated.0 = self.aggregated.0.saturating_add(run.count);
                return;
            }
            Fact::DoorbellRun(run) => {
                self.aggregated.1 = self.aggregated.1.saturating_add(run.count);
                return;
            }
            _ => return,
        };
        let known = self.losses.contains_key(&loss.source) || self.losses.len() < MAX_SOURCES;
        let source = if known { loss.source.clone() } else { "other".to_owned() };
        let sum = self.losses.entry(source).or_default();
        *sum = sum.saturating_add(loss.count);
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        packets_watched(context, &mut finding);
        // The manifest counts the same losses as the rows, and also those of the writer.
        let mut losses = self.losses;
        for (source, &count) in &context.losses {
            let sum = losses.entry(source.clone()).or_default();
            *sum = count.max(*sum);
        }
        losses.retain(|_, count| *count > 0);
        let total = losses.values().fold(0_u64, |sum, &count| sum.saturating_add(count));
        finding.count("losses", Some(total));
        if total > 0 {
            let list: Vec<String> = losses
                .iter()
                .map(|(source, count)| format!("{source} {count}"))
                .collect();
            finding.lack(
                format!("lost: {} ({})", count(total, "event"), list.join(", ")),
                "lost events",
                "record again with a larger `--buffer`, with fewer programs at work beside it, or with `--detail dispatch`",
            );
        }
        let (dispatches, doorbells) = self.aggregated;
        finding.count("aggregated", Some(dispatches.saturating_add(doorbells)));
        if dispatches > 0 || doorbells > 0 {
            finding.note(format!(
                "aggregated, counted without a row each: {} and {}",
                count(dispatches, "dispatch"),
                count(doorbells, "doorbell")
            ));
        }
        if !context.complete {
            finding.lack(
                "the trace is incomplete: its recorder did not finish",
                "the end of the trace",
                "record again, and let the recorder finish",
            );
        }
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
        finding.finish("sound-capture", || {
            "doorbells and packets were watched, nothing was lost, and the trace is complete".to_owned()
        })
    }
}
