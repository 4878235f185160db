//! Judges the sample recording.

pub use crate::sample::recording::*;
use crate::tables::Fact;
use crate::verify::{Context, Judge, Outcome, Policy, RuleVerdict, Verdict};

pub fn judge(policy: &Policy, context: Context, facts: &[Fact]) -> Verdict {
    let mut judge = Judge::new(policy, context);
    facts.iter().for_each(|fact| judge.add(fact));
    judge.finish()
}

pub fn built_in(name: &str) -> Policy {
    Policy::parse(Policy::built_in(name).unwrap()).unwrap()
}

/// Returns the verdict of one rule of `mes-bypass`.
pub fn rule(name: &str, context: Context, facts: &[Fact]) -> RuleVerdict {
    pick(name, judge(&built_in("mes-bypass"), context, facts))
}

pub fn pick(name: &str, verdict: Verdict) -> RuleVerdict {
    let found = verdict.rules.into_iter().find(|rule| rule.rule == name);
    found.unwrap_or_else(|| panic!("no rule {name}"))
}

pub fn outcomes(verdict: &Verdict) -> Vec<(&str, Outcome)> {
    verdict
        .rules
        .iter()
        .map(|rule| (rule.rule.as_str(), rule.outcome))
        .collect()
}
