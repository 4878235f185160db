//! `doorbell-share`: at least this share of what traced processes submitted (dispatches, and jobs on compute rings) went by
//! doorbell. Inconclusive if a path that could lower the share was not watched, or if packets are unread.

use super::{Counts, Rule, packets_watched, rings_watched};
use crate::tables::Path;
use crate::tally::total;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::Outcome;
use crate::words::count;

/// The least share.
pub(super) struct DoorbellShare(pub(super) f64);

impl Rule for DoorbellShare {
    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        let packets = packets_watched(context, finding);
        let rings = rings_watched(context, finding);
        let mut others = counts.tally.dispatches;
        let doorbell = std::mem::take(&mut others[Path::Doorbell as usize]);
        let otherwise = total(others).saturating_add(counts.compute_jobs);
        finding.count("by_doorbell", packets.then_some(doorbell));
        finding.count("otherwise", rings.then_some(otherwise));
        let (least, unread) = (self.0, counts.unread);
        let share = |doorbell: u64| doorbell as f64 / (doorbell as f64 + otherwise as f64);
        // Doorbells published the unread packets: at best all of them were dispatches.
        let best = share(doorbell.saturating_add(unread));
        if doorbell + otherwise == 0 {
            finding.say(Outcome::Inconclusive, "nothing was dispatched");
        } else if packets && best < least {
            let percent = best * 100.0;
            finding.say(
                Outcome::Fail,
                format!("{percent:.2} % went by doorbell, less than {:.2} %", least * 100.0),
            );
        } else if share(doorbell) < least {
            finding.say(
                Outcome::Inconclusive,
                format!("the result depends on {}", count(unread, "unread packet")),
            );
        }
        let (percent, least) = (share(doorbell) * 100.0, least * 100.0);
        format!("{percent:.2} % went by doorbell, at least {least:.2} %")
    }
}
