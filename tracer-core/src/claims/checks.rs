//! How a judge builds what it says of a claim.

use std::collections::BTreeMap;

use super::report::{Check, Standing};
use crate::verify::{Missing, Outcome, RuleVerdict};

/// The checks of a claim.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) checks: Vec<Check>,
    pub(super) notes: Vec<String>,
}

impl Checks {
    /// Says something of a part of the claim.
    pub(super) fn say(&mut self, what: &str, verdict: Standing, evidence: impl Into<String>) -> &mut Check {
        self.checks.push(Check {
            what: what.to_owned(),
            verdict,
            evidence: evidence.into(),
            counts: BTreeMap::new(),
            missing: Vec::new(),
        });
        let last = self.checks.len() - 1;
        &mut self.checks[last]
    }

    /// Says that evidence for a part of the claim is missing.
    pub(super) fn lack(&mut self, what: &str, evidence: impl Into<String>, source: &str, fix: &str) -> &mut Check {
        let check = self.say(what, Standing::Inconclusive, evidence);
        check.missing.push(Missing {
            source: source.to_owned(),
            fix: fix.to_owned(),
        });
        check
    }

    /// Says what a rule found: `pass` and `fail` are what these outcomes mean for the claim.
    pub(super) fn rule(&mut self, what: &str, rule: &RuleVerdict, pass: Standing, fail: Standing) -> &mut Check {
        let verdict = match rule.outcome {
            Outcome::Pass | Outcome::Warn => pass,
            Outcome::Fail => fail,
            Outcome::Inconclusive => Standing::Inconclusive,
        };
        let check = self.say(what, verdict, rule.sentence.clone());
        check.counts.clone_from(&rule.counts);
        check.missing.clone_from(&rule.missing);
        check
    }

    /// Something to know that does not decide.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The greatest of the checks. Nothing checked is nothing tested.
    pub(super) fn verdict(&self) -> Standing {
        let all = self.checks.iter().map(|check| check.verdict);
        all.max().unwrap_or(Standing::NotTested)
    }
}

impl Check {
    /// Adds a number that was counted; `None` if nobody looked.
    pub(super) fn count(&mut self, name: &str, count: Option<u64>) -> &mut Self {
        self.counts.insert(name.to_owned(), count);
        self
    }
}
