//! The verdict for GitHub Actions: one annotation, and a step summary in Markdown.

use std::fmt::Write;

use tracer_core::words::Named;
use tracer_core::{
    foreign::{self, Github, GithubProperty, Markdown},
    verify::{Outcome, Verdict},
};

use super::{strictly, text::details};

/// Formats one workflow command. GitHub shows at most ten annotations per step, so the rules go into the summary.
pub fn annotation(verdict: &Verdict, strict: bool) -> String {
    let command = match strictly(verdict.outcome, strict) {
        Outcome::Fail | Outcome::Inconclusive => "error",
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
    let message = lines.iter().map(foreign::line).collect::<Vec<_>>().join("\n");
    let title = foreign::line(title);
    let (title, message) = (GithubProperty(&title), Github(&message));
    format!("::{command} title={title}::{message}\n")
}

/// Formats the rules in Markdown, for $GITHUB_STEP_SUMMARY.
pub fn summary(subject: &str, verdict: &Verdict) -> String {
    let mut text = format!(
        "## tracer verify {}: {}\n\n",
        Markdown(&verdict.policy),
        verdict.outcome.name()
    );
    let _ = writeln!(text, "{}\n", Markdown(subject));
    if let Some(sign) = &verdict.simulated {
        let _ = writeln!(
            text,
            "Simulated ({}): this proves nothing about a real GPU.\n",
            Markdown(sign)
        );
    }
    text.push_str("| rule | outcome | why |\n|---|---|---|\n");
    for rule in &verdict.rules {
        let (name, why) = (Markdown(&rule.rule), Markdown(&rule.sentence));
        let _ = writeln!(text, "| {name} | {} | {why} |", rule.outcome.name());
    }
    for rule in verdict.rules.iter().filter(|rule| rule.outcome != Outcome::Pass) {
        let lines = details(rule);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n### {}\n", Markdown(&rule.rule));
        for line in lines {
            let _ = writeln!(text, "- {}", Markdown(line.trim_start_matches("- ")));
        }
    }
    text.push('\n');
    text
}
