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
        self.checks.push_mut(Check {
            what: what.to_owned(),
            verdict,
            evidence: evidence.into(),
            counts: BTreeMap::new(),
            missing: Vec::new(),
        })
    }

    /// Adds a check of a part of the claim for which evidence is missing: its source, and how to get it.
    pub(super) fn lack(&mut self, what: &str, evidence: impl Into<String>, (source, fix): (&str, &str)) -> &mut Check {
        let check = self.say(what, Standing::Inconclusive, evidence);
        check.missing.push(Missing {
            source: source.to_owned(),
            fix: fix.to_owned(),
        });
        check
    }

    /// Adds the verdict of a rule as a check: a rule that fails contradicts the claim.
    pub(super) fn rule(&mut self, what: &str, rule: &RuleVerdict) -> &mut Check {
        let verdict = match rule.outcome {
            Outcome::Pass | Outcome::Warn => Standing::Holds,
            Outcome::Fail => Standing::Contradicted,
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

impl Standing {
    /// Returns `Holds` if `holds`, or else `otherwise`.
    pub(super) fn holds_if(holds: bool, otherwise: Self) -> Self {
        if holds { Self::Holds } else { otherwise }
    }
}
