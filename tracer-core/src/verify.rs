//! Judges a trace: a policy says what must be true of the trace, and a judge derives from facts what is true.
//!
//! A rule never passes because evidence is missing. A rule whose evidence was not captured, or is damaged, is inconclusive: its
//! verdict says what was missing, and how to get it. So only the verdicts `fail` and `pass` are claims about the program.

mod context;
mod finding;
mod judge;
mod policy;
mod rules;
mod verdict;

pub use context::{Context, Device, Ended};
pub use judge::Judge;
pub use policy::{Limits, Percentiles, Policy, PolicyError, Rules, Scheduler, Scope, Warnings};
pub use verdict::{Missing, Offender, Outcome, RuleVerdict, Verdict};

#[cfg(test)]
pub(crate) mod tests;
