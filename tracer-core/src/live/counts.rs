//! Counts and rates of submissions and doorbells.

use super::rate::Rate;
use crate::tables::Fact;
use crate::tally::{Entry, Tally};

/// Submissions and doorbells: of everything, a queue or a process.
#[derive(Debug, Default)]
pub struct Counts {
    pub tally: Tally,
    pub dispatches: Rate,
    pub doorbells: Rate,
    pub copies: Rate,
}

impl Counts {
    /// Counts a row.
    pub fn add(&mut self, fact: &Fact, entry: &Entry) {
        self.tally.add(fact);
        let rate = match fact {
            Fact::Dispatch(_) | Fact::DispatchRun(_) => &mut self.dispatches,
            Fact::Doorbell(_) | Fact::DoorbellRun(_) => &mut self.doorbells,
            Fact::Copy(_) => &mut self.copies,
            _ => return,
        };
        rate.add(entry.time_ns, entry.count);
    }
}
