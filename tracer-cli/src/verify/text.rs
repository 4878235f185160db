//! The verdict for people.

use std::fmt::Write;

use tracer_core::words::Named;
use tracer_core::{
    foreign::{self, Terminal},
    verify::{RuleVerdict, Verdict},
};

/// Formats the rules with their reasons, then the verdict, so that it is at the end of the output.
pub fn write(subject: &str, verdict: &Verdict) -> String {
    let mut text = String::new();
    for rule in &verdict.rules {
        let (name, sentence) = (Terminal(&rule.rule), Terminal(&rule.sentence));
        let _ = writeln!(text, "{:<13} {name:<20} {sentence}", rule.outcome.name());
        for line in details(rule) {
            let _ = writeln!(text, "{:<34} {line}", "");
        }
    }
    if let Some(sign) = &verdict.simulated {
        let _ = writeln!(
            text,
            "\nsimulated     {}: this proves nothing about a real GPU",
            Terminal(sign)
        );
    }
    let what = foreign::line(format_args!("{} of {subject}", verdict.policy));
    let _ = writeln!(text, "\n{:<13} {what}", verdict.outcome.name());
    text
}

/// Returns the details of a rule beyond its sentence, one printable line each.
pub fn details(rule: &RuleVerdict) -> Vec<String> {
    let missing = rule.missing.iter();
    let mut lines: Vec<String> = missing
        .map(|missing| format!("missing: {}; to get it: {}", missing.source, missing.fix))
        .collect();
    lines.extend(rule.offenders.iter().map(|offender| format!("- {offender}")));
    if rule.more_offenders > 0 {
        lines.push(format!("... and {} more", rule.more_offenders));
    }
    lines.extend(rule.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(foreign::line).collect()
}
