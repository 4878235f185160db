//! Builds the verdict on a claim from checks.

use std::collections::BTreeMap;

use super::report::{Check, Standing};
use tracer_core::verify::{Missing, Outcome, RuleVerdict};

/// The checks of a claim.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) checks: Vec<Check>,
    pub(super) notes: Vec<String>,
}

impl Checks {
    /// Adds a check of a part of the claim.
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

    /// Adds a check of a part of the claim for which evidence is missing.
    pub(super) fn lack(&mut self, what: &str, evidence: impl Into<String>, source: &str, fix: &str) -> &mut Check {
        let check = self.say(what, Standing::Inconclusive, evidence);
        check.missing.push(Missing {
            source: source.to_owned(),
            fix: fix.to_owned(),
        });
        check
    }

    /// Adds the verdict of a rule as a check. `pass` and `fail` say what these outcomes mean for the claim.
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

    /// Adds a note, which does not decide the verdict.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the greatest verdict of the checks. Without checks, the claim is not tested.
    pub(super) fn verdict(&self) -> Standing {
        let all = self.checks.iter().map(|check| check.verdict);
        all.max().unwrap_or(Standing::NotTested)
    }
}

impl Check {
    /// Adds a count; `None` if tracer did not watch what is counted.
    pub(super) fn count(&mut self, name: &str, count: Option<u64>) -> &mut Self {
        self.counts.insert(name.to_owned(), count);
        self
    }
}
