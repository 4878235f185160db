//! `doorbell-share`: at least this share of what traced processes submitted (dispatches, and jobs on compute rings) went by
//! doorbell. Inconclusive if a path that could lower the share was not watched, or if packets are unread.

use super::{Rule, packets_watched, ring_submission, rings_watched};
use crate::tables::{Fact, PacketKind, Path};
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::{Outcome, RuleVerdict};
use crate::words::count;

pub(super) struct DoorbellShare {
    least: f64,
    doorbell: u64,
    otherwise: u64,
    unread: u64,
}

impl DoorbellShare {
    pub(super) fn new(least: f64) -> Self {
        Self {
            least,
            doorbell: 0,
            otherwise: 0,
            unread: 0,
        }
    }
}

impl Rule for DoorbellShare {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) if dispatch.path == Path::Doorbell => self.doorbell += 1,
            Fact::Dispatch(_) => self.otherwise += 1,
            Fact::DispatchRun(run) => {
                let sum = match run.path {
                    Path::Doorbell => &mut self.doorbell,
                    _ => &mut self.otherwise,
                };
                *sum = sum.saturating_add(run.count);
            }
            Fact::RingJob(job) => self.otherwise += u64::from(ring_submission::is_submission(job)),
            Fact::Packet(packet) if packet.kind == PacketKind::Unread => {
                self.unread = self.unread.saturating_add(packet.count);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let packets = packets_watched(context, &mut finding);
        let rings = rings_watched(context, &mut finding);
        finding.count("by_doorbell", packets.then_some(self.doorbell));
        finding.count("otherwise", rings.then_some(self.otherwise));
        let Self {
            least,
            doorbell,
            otherwise,
            unread,
        } = *self;
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
        finding.finish("doorbell-share", || {
            format!(
                "{:.2} % went by doorbell, at least {:.2} %",
                share(doorbell) * 100.0,
                least * 100.0
            )
        })
    }
}
