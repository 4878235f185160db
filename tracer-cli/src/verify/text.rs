//! The verdict for people.

use std::fmt::Write;

use tracer_core::verify::{RuleVerdict, Verdict};

/// Rules with their reasons, then the verdict, which is what a reader scrolls to.
pub fn write(subject: &str, verdict: &Verdict) -> String {
    let mut text = String::new();
    for rule in &verdict.rules {
        let _ = writeln!(text, "{:<13} {:<20} {}", rule.outcome.name(), rule.rule, rule.sentence);
        for line in details(rule) {
            let _ = writeln!(text, "{:<34} {line}", "");
        }
    }
    if let Some(sign) = &verdict.simulated {
        let _ = writeln!(text, "\nsimulated     {sign}: this says nothing of a real GPU");
    }
    let _ = writeln!(text, "\n{:<13} {} of {subject}", verdict.outcome.name(), verdict.policy);
    printable(&text)
}

/// What there is to say of a rule beyond its sentence, a line each.
pub fn details(rule: &RuleVerdict) -> Vec<String> {
    let mut lines: Vec<String> = rule
        .missing
        .iter()
        .map(|missing| format!("missing: {}; to get it: {}", missing.source, missing.fix))
        .collect();
    lines.extend(rule.offenders.iter().map(|offender| format!("- {offender}")));
    if rule.more_offenders > 0 {
        lines.push(format!("... and {} more", rule.more_offenders));
    }
    lines.extend(rule.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Names in a trace come from traced processes: no control character of theirs reaches a terminal.
pub fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    clean
}
