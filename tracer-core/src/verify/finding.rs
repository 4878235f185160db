//! How a rule builds its verdict: what was found, the worst of it first.

use std::collections::BTreeMap;

use super::verdict::{Missing, Offender, Outcome, RuleVerdict};

/// Offenders that a verdict shows; the rest is counted.
const MAX_OFFENDERS: usize = 10;

/// The first offenders, and how many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Offenders {
    first: Vec<Offender>,
    /// How many there are, if each of a run counts as one.
    total: u64,
    /// The same, if a run counts as one.
    entries: u64,
}

impl Offenders {
    /// Counts one. It is made only if it is shown: there can be millions.
    pub(super) fn add(&mut self, offender: impl FnOnce() -> Offender) {
        self.add_many(1, offender);
    }

    /// Counts so many, which are shown as one.
    pub(super) fn add_many(&mut self, count: u64, offender: impl FnOnce() -> Offender) {
        if self.first.len() < MAX_OFFENDERS {
            self.first.push(offender());
        }
        self.entries = self.entries.saturating_add(1);
        self.total = self.total.saturating_add(count);
    }

    /// Adds all others.
    pub(super) fn extend(&mut self, others: Self) {
        let room = MAX_OFFENDERS.saturating_sub(self.first.len());
        self.first.extend(others.first.into_iter().take(room));
        self.total = self.total.saturating_add(others.total);
        self.entries = self.entries.saturating_add(others.entries);
    }

    /// How many were added.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// What a rule found.
#[derive(Debug, Default)]
pub(super) struct Finding {
    said: Vec<(Outcome, String)>,
    counts: BTreeMap<String, Option<u64>>,
    offenders: Vec<(Outcome, Offenders)>,
    missing: Vec<Missing>,
    notes: Vec<String>,
}

impl Finding {
    /// Something that is not as the rule wants it.
    pub(super) fn say(&mut self, outcome: Outcome, sentence: impl Into<String>) {
        self.said.push((outcome, sentence.into()));
    }

    /// The same, with those that are to blame; nothing if there are none.
    pub(super) fn blame(&mut self, outcome: Outcome, offenders: Offenders, sentence: impl FnOnce(u64) -> String) {
        if offenders.total > 0 {
            self.say(outcome, sentence(offenders.total));
            self.offenders.push((outcome, offenders));
        }
    }

    /// Evidence is missing: inconclusive, unless what there is suffices to fail.
    pub(super) fn lack(&mut self, sentence: impl Into<String>, source: &str, fix: impl Into<String>) {
        self.say(Outcome::Inconclusive, sentence);
        self.missing(source, fix);
    }

    /// A source that would have had the evidence, and how to get it.
    pub(super) fn missing(&mut self, source: &str, fix: impl Into<String>) {
        self.missing.push(Missing {
            source: source.to_owned(),
            fix: fix.into(),
        });
    }

    /// Something counted; `None` if nobody looked.
    pub(super) fn count(&mut self, name: &str, count: Option<u64>) {
        self.counts.insert(name.to_owned(), count);
    }

    /// Something to know that does not decide.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The verdict. The worst that was said decides, and the rest are notes; `pass` is what to say if nothing was.
    pub(super) fn finish(mut self, rule: &str, pass: impl FnOnce() -> String) -> RuleVerdict {
        let outcome = self.said.iter().map(|(outcome, _)| *outcome).max().unwrap_or_default();
        let (worst, rest): (Vec<_>, Vec<_>) = self.said.into_iter().partition(|(of, _)| *of == outcome);
        let sentences: Vec<String> = worst.into_iter().map(|(_, sentence)| sentence).collect();
        let rest = rest
            .into_iter()
            .map(|(of, sentence)| format!("{}: {sentence}", of.name()));
        self.notes.splice(0..0, rest);
        // Those who decide come first.
        self.offenders.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
        let total: u64 = self
            .offenders
            .iter()
            .fold(0, |sum, (_, all)| sum.saturating_add(all.entries));
        let mut offenders: Vec<Offender> = self.offenders.into_iter().flat_map(|(_, all)| all.first).collect();
        offenders.truncate(MAX_OFFENDERS);
        RuleVerdict {
            rule: rule.to_owned(),
            outcome,
            sentence: if sentences.is_empty() {
                pass()
            } else {
                sentences.join("; ")
            },
            counts: self.counts,
            more_offenders: total.saturating_sub(offenders.len() as u64),
            offenders,
            missing: self.missing,
            notes: self.notes,
        }
    }
}
