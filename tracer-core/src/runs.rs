//! Dispatches and doorbells as runs, which a trace stores instead of rows while the disk does not keep up.
//!
//! A run represents rows that follow each other in their queue within [`WINDOW_NS`], and contains what they have in common. Each
//! row that is taken is in exactly one run. The state is bounded: open runs beyond the limit are output early, and are smaller.

mod dispatches;
mod doorbells;

use crate::tables::Fact;
use dispatches::Dispatches;
use doorbells::Doorbells;

/// The times of a run are less than this apart, ns.
pub const WINDOW_NS: u64 = 10_000_000;
/// Greatest number of queues that have open runs. Beyond the limit, all open runs are output, and new runs begin.
const MAX_QUEUES: usize = 4096;

/// Converts rows to runs.
#[derive(Debug, Default)]
pub struct Runs {
    dispatches: Dispatches,
    doorbells: Doorbells,
}

impl Runs {
    /// Creates a converter without open runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a row, and passes the runs that it ends to `out`. Returns false if the row was not taken, because it is not a
    /// dispatch or doorbell, or because it has impossible numbers.
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

#[cfg(test)]
mod tests;
