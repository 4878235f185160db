//! `ioctl-p99`: 99 of 100 ioctls of a name return within this time. Inconclusive if ioctls were not watched. An ioctl that was
//! never called is within its limit, and the verdict says so.

use std::collections::BTreeMap;

use super::{Counts, Rule, ioctls_watched, note_simulated_times};
use crate::tables::Fact;
use crate::tally::Histogram;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::Outcome;

pub(super) struct IoctlP99 {
    /// By name: the limit in ns, and the times of calls that returned.
    limits: BTreeMap<String, (u64, Histogram)>,
}

impl IoctlP99 {
    pub(super) fn new(limits: &BTreeMap<String, u64>) -> Self {
        let limits = limits
            .iter()
            .map(|(name, &most)| (name.clone(), (most, Histogram::default())));
        Self {
            limits: limits.collect(),
        }
    }
}

impl Rule for IoctlP99 {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Ioctl(ioctl) = fact
            && let Some((_, times)) = self.limits.get_mut(ioctl.name.as_ref())
        {
            times.add_known(ioctl.duration_ns());
        }
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = ioctls_watched(context, finding);
        for (name, (most, times)) in &self.limits {
            let p99 = times.stats().map(|stats| stats.p99);
            finding.count(&format!("{name}_p99_ns"), p99.filter(|_| watched));
            match p99 {
                Some(p99) if p99 > *most => finding.say(
                    Outcome::Fail,
                    format!("the 99th percentile of {name} is {p99} ns, more than {most} ns"),
                ),
                None if watched => finding.note(format!("{name} was not called")),
                _ => {}
            }
        }
        note_simulated_times(context, finding);
        "every ioctl with a limit is within its limit".to_owned()
    }
}
