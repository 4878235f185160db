//! The verdict for GitHub Actions: one annotation, and a step summary in Markdown.

use std::fmt::Write;

use tracer_core::verify::{Outcome, Verdict};

use super::text::{details, printable};

/// One workflow command: GitHub shows ten annotations a step at the most, so the rules go into the summary.
pub fn annotation(verdict: &Verdict, strict: bool) -> String {
    let command = match verdict.outcome {
        Outcome::Fail | Outcome::Inconclusive => "error",
        Outcome::Warn if strict => "error",
        Outcome::Warn => "warning",
        Outcome::Pass => "notice",
    };
    let title = format!("tracer verify {}: {}", verdict.policy, verdict.outcome.name());
    let mut lines: Vec<String> = verdict
        .rules
        .iter()
        .filter(|rule| rule.outcome != Outcome::Pass)
        .map(|rule| format!("{} {}: {}", rule.rule, rule.outcome.name(), rule.sentence))
        .collect();
    if lines.is_empty() {
        lines.push(format!("all {} rules pass", verdict.rules.len()));
    }
    lines.extend(verdict.simulated.iter().map(|sign| format!("simulated: {sign}")));
    let message = lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n");
    let (title, message) = (escape_property(&printable(&title)), escape(&message));
    format!("::{command} title={title}::{message}\n")
}

/// The rules in Markdown, for $GITHUB_STEP_SUMMARY.
pub fn summary(subject: &str, verdict: &Verdict) -> String {
    let mut text = format!(
        "## tracer verify {}: {}\n\n",
        markdown(&verdict.policy),
        verdict.outcome.name()
    );
    let _ = writeln!(text, "{}\n", markdown(subject));
    if let Some(sign) = &verdict.simulated {
        let _ = writeln!(
            text,
            "Simulated ({}): this says nothing of a real GPU.\n",
            markdown(sign)
        );
    }
    text.push_str("| rule | outcome | why |\n|---|---|---|\n");
    for rule in &verdict.rules {
        let (name, why) = (markdown(&rule.rule), markdown(&rule.sentence));
        let _ = writeln!(text, "| {name} | {} | {why} |", rule.outcome.name());
    }
    for rule in verdict.rules.iter().filter(|rule| rule.outcome != Outcome::Pass) {
        let lines = details(rule);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {}\n", markdown(&rule.rule));
        for line in lines {
            let _ = writeln!(text, "- {}", markdown(line.trim_start_matches("- ")));
        }
    }
    text.push('\n');
    text
}

/// The data of a workflow command: `escapeData` of GitHub's toolkit.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command: `escapeProperty` of GitHub's toolkit.
fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text that Markdown shows as it is, in a cell of a table as elsewhere.
pub fn markdown(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '@' => {
                clean.push('\\');
                clean.push(c);
            }
            _ => clean.push(c),
        }
    }
    clean
}
