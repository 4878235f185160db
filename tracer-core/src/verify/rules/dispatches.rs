//! `dispatches`: there is something to judge. Inconclusive if nothing was submitted, or if submissions were not watched: a rule
//! that holds for no dispatch proves nothing.

use super::{Counts, Rule, packets_watched, rings_watched};
use crate::losses::hide_ioctls;
use crate::tables::Table;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::Outcome;
use crate::words::count;

pub(super) struct Dispatches {
    /// Whether jobs on compute rings count as well.
    pub(super) jobs_too: bool,
}

impl Rule for Dispatches {
    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        let known = context.capabilities;
        let dispatches = counts.tally.all_dispatches();
        let jobs = if self.jobs_too { counts.compute_jobs } else { 0 };
        let readable = |tables: &[Table]| tables.iter().all(|table| !context.unread.contains(table));
        let rows = readable(&[Table::Dispatches, Table::DispatchRuns]);
        finding.count("dispatches", (known.packets && rows).then_some(dispatches));
        if self.jobs_too {
            let rows = readable(&[Table::RingJobs]);
            finding.count("compute_jobs", (known.kernel_rings && rows).then_some(jobs));
        }
        let watched = if self.jobs_too { rings_watched } else { packets_watched };
        if dispatches == 0 && jobs == 0 {
            if !rows || self.jobs_too && !readable(&[Table::RingJobs]) {
                finding.lack(
                    "no kernel dispatch can be read from the trace: its tables are damaged",
                    "dispatches",
                    "restore the trace from a copy, or record again",
                );
            } else if let Some(sentence) = nothing(context, counts) {
                finding.say(Outcome::Inconclusive, sentence);
            } else if watched(context, finding) {
                finding.say(
                    Outcome::Inconclusive,
                    "no kernel was dispatched, so there is nothing to judge",
                );
            }
        }
        let (dispatches, jobs) = (count(dispatches, "kernel dispatch"), count(jobs, "job"));
        if self.jobs_too {
            format!("tracer saw {dispatches} and {jobs} on compute rings")
        } else {
            format!("tracer saw {dispatches}")
        }
    }
}

/// Returns why there can be no dispatch, if it is known that the processes had no queue.
fn nothing(context: &Context, counts: &Counts) -> Option<&'static str> {
    let mut losses = context.losses.iter();
    let lost = counts.ioctls_lost || losses.any(|(source, n)| *n > 0 && hide_ioctls(source));
    let known = context.capabilities.ioctls && context.complete && context.unread.is_empty() && !lost;
    match (counts.kfd_ioctls, counts.queues) {
        (0, 0) if known => Some("no process made an ioctl of /dev/kfd, so there is nothing to judge"),
        (_, 0) if known => Some("no process created a queue, so there is nothing to judge"),
        _ => None,
    }
}
