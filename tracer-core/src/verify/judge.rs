//! The judge: hands facts to the rules of a policy, and collects their verdicts.

use super::context::Context;
use super::finding::Finding;
use super::policy::Policy;
use super::rules::{self, Counts, NamedRule};
use super::verdict::Verdict;
use crate::profile::Profile;
use crate::tables::Fact;

/// Judges a trace by a policy.
///
/// Memory grows with the number of queues, threads and names, never with the number of dispatches, doorbells or jobs.
pub struct Judge {
    policy: String,
    context: Context,
    counts: Counts,
    rules: Vec<NamedRule>,
}

impl Judge {
    /// Creates a judge that has seen no facts, for a trace with the properties in `context`.
    #[must_use]
    pub fn new(policy: &Policy, context: Context) -> Self {
        Self {
            policy: policy.name.clone(),
            counts: Counts::default(),
            rules: rules::of(policy, &context),
            context,
        }
    }

    /// Also compares the trace with a profile of the same run.
    #[must_use]
    pub fn against(mut self, profile: Profile) -> Self {
        self.rules.push(rules::same_as(profile));
        self
    }

    /// Takes a fact. Dispatches and ioctls must come in the order of their times, as they are in a stored trace.
    pub fn add(&mut self, fact: &Fact) {
        self.counts.add(fact);
        for (_, rule) in &mut self.rules {
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
        let verdict = |(name, rule): NamedRule| {
            let mut finding = Finding::default();
            let pass = rule.finish(&self.context, &self.counts, &mut finding);
            finding.finish(name, pass)
        };
        let rules: Vec<_> = self.rules.into_iter().map(verdict).collect();
        Verdict {
            policy: self.policy,
            outcome: rules.iter().map(|rule| rule.outcome).max().unwrap_or_default(),
            simulated: self.context.simulated,
            rules,
        }
    }
}
