//! `reserve-to-doorbell`: from a reserve to its doorbell it takes no longer than this, probes included. Open if reserves
//! were not watched, or none was matched with its doorbell.

use super::ioctl_p99::simulated;
use super::{Rule, packets_watched, reserves_watched};
use crate::fact::Fact;
use crate::summary::Histogram;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::policy::Percentiles;
use crate::verify::verdict::{Outcome, RuleVerdict};

pub(super) struct ReserveToDoorbell {
    most: Percentiles,
    times: Histogram,
}

impl ReserveToDoorbell {
    pub(super) fn new(most: Percentiles) -> Self {
        Self {
            most,
            times: Histogram::default(),
        }
    }
}

impl Rule for ReserveToDoorbell {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Doorbell(doorbell) = fact {
            doorbell
                .reserve_to_doorbell_ns
                .into_iter()
                .for_each(|ns| self.times.add(ns));
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = packets_watched(context, &mut finding) & reserves_watched(context, &mut finding);
        let stats = self.times.stats();
        if watched && stats.is_none() {
            finding.say(Outcome::Inconclusive, "no doorbell could be matched with its reserve");
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
                finding.say(Outcome::Fail, format!("its {name} is {found} ns, more than {most} ns"));
            }
        }
        simulated(context, &mut finding);
        finding.finish("reserve-to-doorbell", || {
            "the time from reserve to doorbell is within its limits".to_owned()
        })
    }
}
