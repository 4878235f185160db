//! `reserve-to-doorbell`: the time from a reserve to its doorbell, probes included, is within its limits. Inconclusive if
//! reserves were not watched, if no reserve was matched with its doorbell, or if doorbells were aggregated, because aggregated
//! doorbells have no times of their own. In the last case, only the longest known time can fail the rule.

use super::ioctl_p99::simulated;
use super::{Rule, lack_rows, packets_watched, reserves_watched};
use crate::tables::Fact;
use crate::tally::Histogram;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Percentiles;
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};
use crate::words::count;

pub(super) struct ReserveToDoorbell {
    most: Percentiles,
    times: Histogram,
    aggregated: Offenders,
}

impl ReserveToDoorbell {
    pub(super) fn new(most: Percentiles) -> Self {
        Self {
            most,
            times: Histogram::default(),
            aggregated: Offenders::default(),
        }
    }
}

impl Rule for ReserveToDoorbell {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Doorbell(doorbell) => doorbell
                .reserve_to_doorbell_ns
                .into_iter()
                .for_each(|ns| self.times.add(ns)),
            Fact::DoorbellRun(run) => self.aggregated.add_many(run.count, || Offender {
                what: "aggregated doorbells".to_owned(),
                queue: run.queue,
                index: run.first_index,
                count: Some(run.count),
                pid: Some(run.pid),
                time_ns: Some(run.begin_ns),
                ..Offender::default()
            }),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = packets_watched(context, &mut finding) & reserves_watched(context, &mut finding);
        let stats = self.times.stats();
        let aggregated = self.aggregated.total();
        if watched && stats.is_none() && aggregated == 0 {
            finding.say(
                Outcome::Inconclusive,
                "tracer could not match a doorbell with its reserve",
            );
        }
        finding.count("doorbells_aggregated", Some(aggregated));
        if aggregated > 0 {
            let sentence = format!("aggregated, with unknown times: {}", count(aggregated, "doorbell"));
            lack_rows(&mut finding, sentence, self.aggregated);
        }
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
                let outcome = match name {
                    "max" => Outcome::Fail,
                    _ if aggregated > 0 => Outcome::Inconclusive,
                    _ => Outcome::Fail,
                };
                finding.say(outcome, format!("its {name} is {found} ns, more than {most} ns"));
            }
        }
        simulated(context, &mut finding);
        finding.finish("reserve-to-doorbell", || {
            "the time from reserve to doorbell is within its limits".to_owned()
        })
    }
}
