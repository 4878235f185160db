//! `reserve-to-doorbell`: the time from a reserve to its doorbell, probes included, is within its limits. Inconclusive if
//! reserves were not watched, if no reserve was matched with its doorbell, or if doorbells were aggregated, because aggregated
//! doorbells have no times of their own. In the last case, only the longest known time can fail the rule.

use super::{Counts, Rule, lack_rows, note_simulated_times, of_doorbells, packets_watched, reserves_watched};
use crate::tables::Fact;
use crate::tally::Histogram;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Percentiles;
use crate::verify::verdict::Outcome;

#[derive(Default)]
pub(super) struct ReserveToDoorbell {
    most: Percentiles,
    times: Histogram,
    aggregated: Offenders,
}

impl ReserveToDoorbell {
    pub(super) fn new(most: Percentiles) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }
}

impl Rule for ReserveToDoorbell {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Doorbell(doorbell) => self.times.add_known(doorbell.reserve_to_doorbell_ns),
            Fact::DoorbellRun(run) => self
                .aggregated
                .add_many(run.count, || of_doorbells(run, "aggregated doorbells")),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = packets_watched(context, finding) & reserves_watched(context, finding);
        let stats = self.times.stats();
        let aggregated = self.aggregated.total();
        if watched && stats.is_none() && aggregated == 0 {
            finding.say(
                Outcome::Inconclusive,
                "tracer could not match a doorbell with its reserve",
            );
        }
        finding.count("doorbells_aggregated", Some(aggregated));
        lack_rows(finding, self.aggregated, "doorbell", |n| {
            format!("aggregated, with unknown times: {n}")
        });
        let limits = [
            ("p50", self.most.p50, stats.map(|s| s.p50)),
            ("p99", self.most.p99, stats.map(|s| s.p99)),
            ("max", self.most.max, stats.map(|s| s.max)),
        ];
        for (name, most, found) in limits {
            finding.count(&format!("{name}_ns"), found.filter(|_| watched));
            if let (Some(most), Some(found)) = (most, found)
                && found > most
            {
                // If only a part of the times is known, only the longest time is evidence for all.
                let outcome = if name != "max" && aggregated > 0 {
                    Outcome::Inconclusive
                } else {
                    Outcome::Fail
                };
                finding.say(outcome, format!("its {name} is {found} ns, more than {most} ns"));
            }
        }
        note_simulated_times(context, finding);
        "the time from reserve to doorbell is within its limits".to_owned()
    }
}
