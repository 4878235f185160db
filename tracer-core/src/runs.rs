//! Dispatches and doorbells as runs: what a trace holds of them while the disk does not keep up.
//!
//! A run stands for rows that follow one another in their queue within [`WINDOW_NS`], and says what they have in common.
//! Each row that is taken is in exactly one run. State is bounded: what is open beyond that comes out early, and smaller.

mod dispatches;
mod doorbells;

use crate::fact::Fact;
use dispatches::Dispatches;
use doorbells::Doorbells;

/// Times of a run are less than this apart, ns.
pub const WINDOW_NS: u64 = 10_000_000;
/// Queues that have open runs at the most. Beyond, all open runs come out, and others begin.
const MAX_QUEUES: usize = 4096;

/// Makes runs of rows.
#[derive(Debug, Default)]
pub struct Runs {
    dispatches: Dispatches,
    doorbells: Doorbells,
}

impl Runs {
    /// No run is open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a row. Runs that end by it go to `out`. False if the row is no dispatch or doorbell, or one of impossible
    /// numbers: then it was not taken.
    pub fn add(&mut self, fact: &Fact, out: &mut impl FnMut(Fact)) -> bool {
        match fact {
            Fact::Dispatch(dispatch) => {
                self.dispatches.add(dispatch, &mut |run| out(Fact::DispatchRun(run)));
                true
            }
            Fact::Doorbell(doorbell) => self.doorbells.add(doorbell, &mut |run| out(Fact::DoorbellRun(run))),
            _ => false,
        }
    }

    /// Ends all open runs.
    pub fn flush(&mut self, out: &mut impl FnMut(Fact)) {
        self.dispatches.flush(&mut |run| out(Fact::DispatchRun(run)));
        self.doorbells.flush(&mut |run| out(Fact::DoorbellRun(run)));
    }
}

/// Whether a run from `begin_ns` to `end_ns` may reach to `time_ns`, too.
fn within(begin_ns: u64, end_ns: u64, time_ns: u64) -> bool {
    end_ns.max(time_ns) - begin_ns.min(time_ns) < WINDOW_NS
}

#[cfg(test)]
mod tests;
