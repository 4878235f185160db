//! Builds the verdict of a rule from its findings, the worst finding first.

use std::collections::BTreeMap;

use super::verdict::{Missing, Offender, Outcome, RuleVerdict};
use crate::tally::{more, total};
use crate::words::{Count, Named, count};

/// Number of offenders that a verdict shows. The others are only counted.
const MAX_OFFENDERS: usize = 10;

/// The first offenders, and the number of all offenders.
#[derive(Clone, Debug, Default)]
pub(super) struct Offenders {
    first: Vec<Offender>,
    /// Number of offenders, if each member of a run counts as one.
    total: u64,
    /// Number of offenders, if a run counts as one.
    entries: u64,
}

impl Offenders {
    /// Counts one offender. `offender` is called only if the verdict shows it, because there can be millions.
    pub(super) fn add(&mut self, offender: impl FnOnce() -> Offender) {
        self.add_many(1, offender);
    }

    /// Counts `count` offenders, which the verdict shows as one.
    pub(super) fn add_many(&mut self, count: u64, offender: impl FnOnce() -> Offender) {
        if self.first.len() < MAX_OFFENDERS {
            self.first.push(offender());
        }
        more(&mut self.entries, 1);
        more(&mut self.total, count);
    }

    /// Adds all offenders of `others`.
    pub(super) fn extend(&mut self, others: Self) {
        let room = MAX_OFFENDERS.saturating_sub(self.first.len());
        self.first.extend(others.first.into_iter().take(room));
        more(&mut self.entries, others.entries);
        more(&mut self.total, others.total);
    }

    /// Returns the number of offenders, if each member of a run counts as one.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// The findings of a rule.
#[derive(Debug, Default)]
pub(super) struct Finding {
    said: Vec<(Outcome, String)>,
    counts: BTreeMap<String, Option<u64>>,
    offenders: Vec<(Outcome, Offenders)>,
    missing: Vec<Missing>,
    notes: Vec<String>,
}

impl Finding {
    /// Records something that is not as the rule requires.
    pub(super) fn say(&mut self, outcome: Outcome, sentence: impl Into<String>) {
        self.said.push((outcome, sentence.into()));
    }

    /// Records the same as [`Self::say`], with the offenders; does nothing if there are no offenders. `sentence` takes their
    /// number, with the noun for them.
    pub(super) fn blame(
        &mut self,
        outcome: Outcome,
        offenders: Offenders,
        noun: &'static str,
        sentence: impl FnOnce(Count) -> String,
    ) {
        if offenders.total > 0 {
            self.say(outcome, sentence(count(offenders.total, noun)));
            self.offenders.push((outcome, offenders));
        }
    }

    /// Records that evidence is missing, unless it is known. Returns whether it is known.
    pub(super) fn require(&mut self, known: bool, sentence: impl Into<String>, source: &str, fix: &str) -> bool {
        if !known {
            self.lack(sentence, source, fix);
        }
        known
    }

    /// Records that evidence is missing: the rule is inconclusive, unless the evidence that exists suffices to fail it.
    pub(super) fn lack(&mut self, sentence: impl Into<String>, source: &str, fix: &str) {
        self.say(Outcome::Inconclusive, sentence);
        self.missing(source, fix);
    }

    /// Records a source that would have had the evidence, and how to get it.
    pub(super) fn missing(&mut self, source: &str, fix: &str) {
        let (source, fix) = (source.to_owned(), fix.to_owned());
        self.missing.push(Missing { source, fix });
    }

    /// Records a count; `None` if tracer did not watch what is counted.
    pub(super) fn count(&mut self, name: &str, count: Option<u64>) {
        self.counts.insert(name.to_owned(), count);
    }

    /// Records a note, which does not decide the verdict.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Records a note on a number of things; does nothing if there are none. `note` takes the number, with the noun for them.
    pub(super) fn mention(&mut self, number: u64, noun: &'static str, note: impl FnOnce(Count) -> String) {
        if number > 0 {
            self.note(note(count(number, noun)));
        }
    }

    /// Returns the verdict. The worst findings decide, and the others become notes. `pass` is the sentence if there are no
    /// findings.
    pub(super) fn finish(mut self, rule: &str, pass: String) -> RuleVerdict {
        let outcome = self.said.iter().map(|(outcome, _)| *outcome).max().unwrap_or_default();
        let (worst, rest): (Vec<_>, Vec<_>) = self.said.into_iter().partition(|(of, _)| *of == outcome);
        let sentences: Vec<String> = worst.into_iter().map(|(_, sentence)| sentence).collect();
        let rest = rest
            .into_iter()
            .map(|(of, sentence)| format!("{}: {sentence}", of.name()));
        self.notes.splice(0..0, rest);
        // The offenders that decide come first.
        self.offenders.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
        let all = total(self.offenders.iter().map(|(_, offenders)| offenders.entries));
        let mut offenders: Vec<Offender> = self.offenders.into_iter().flat_map(|(_, all)| all.first).collect();
        offenders.truncate(MAX_OFFENDERS);
        RuleVerdict {
            rule: rule.to_owned(),
            outcome,
            sentence: if sentences.is_empty() {
                pass
            } else {
                sentences.join("; ")
            },
            counts: self.counts,
            more_offenders: all.saturating_sub(offenders.len() as u64),
            offenders,
            missing: self.missing,
            notes: self.notes,
        }
    }
}
