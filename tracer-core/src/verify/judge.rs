//! The judge: hands facts to the rules of a policy, and collects their verdicts.

use super::context::Context;
use super::policy::Policy;
use super::rules::{self, Rule};
use super::verdict::Verdict;
use crate::tables::Fact;

/// Judges a trace by a policy.
///
/// Memory grows with the number of queues, threads and names, never with the number of dispatches, doorbells or jobs.
pub struct Judge {
    policy: String,
    context: Context,
    rules: Vec<Box<dyn Rule>>,
}

impl Judge {
    /// Creates a judge that has seen no facts, for a trace with the properties in `context`.
    #[must_use]
    pub fn new(policy: &Policy, context: Context) -> Self {
        Self {
            policy: policy.name.clone(),
            rules: rules::of(policy, &context),
            context,
        }
    }

    /// Takes a fact. Dispatches and ioctls must come in the order of their times, as they are in a stored trace.
    pub fn add(&mut self, fact: &Fact) {
        for rule in &mut self.rules {
            rule.add(fact);
        }
    }

    /// Returns the properties of the trace, so that the caller can add what it finds while it reads the rows, such as damage.
    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Returns the verdict.
    #[must_use]
    pub fn finish(self) -> Verdict {
        let rules: Vec<_> = self.rules.into_iter().map(|rule| rule.finish(&self.context)).collect();
        Verdict {
            policy: self.policy,
            outcome: rules.iter().map(|rule| rule.outcome).max().unwrap_or_default(),
            simulated: self.context.simulated,
            rules,
        }
    }
}
