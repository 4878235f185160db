//! Judging a trace: a policy says what must be true of it, a judge takes facts and says what is.
//!
//! Nothing passes for want of evidence. A rule whose evidence was not captured, or is damaged, is inconclusive, says what
//! was missing, and how to get it. So of the verdicts only `fail` and `pass` are claims about the program.

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
