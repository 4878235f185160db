//! The judge: hands facts to the rules of a policy, and gathers what they say.

use super::context::Context;
use super::policy::Policy;
use super::rules::{self, Rule};
use super::verdict::Verdict;
use crate::fact::Fact;

/// Judges a trace by a policy.
///
/// Memory grows with queues, threads and names, never with dispatches, doorbells or jobs.
pub struct Judge {
    policy: String,
    context: Context,
    rules: Vec<Box<dyn Rule>>,
}

impl Judge {
    /// Nothing seen yet, of a trace that says this of itself.
    #[must_use]
    pub fn new(policy: &Policy, context: Context) -> Self {
        Self {
            policy: policy.name.clone(),
            rules: rules::of(policy, &context),
            context,
        }
    }

    /// Takes a fact. Dispatches and ioctls have to come in the order of their times, as a stored trace gives them.
    pub fn add(&mut self, fact: &Fact) {
        for rule in &mut self.rules {
            rule.add(fact);
        }
    }

    /// What it found out about the trace while its rows were read, such as damage.
    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// The verdict.
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
