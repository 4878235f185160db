//! The reports on claims as a document, for example docs/claims.md.

use std::fmt::Write;

use tracer_claims::{CLAIMS, Claim, ClaimVerdict, Report};
use tracer_core::foreign::Markdown;
use tracer_core::words::Named;

use super::text::{place, verdict};

const HEAD: &str = "# Claims, and what evidence says of them

This tool was built from documents that make claims about how kernels reach an AMD GPU. `sudo tracer verify --claims` tests
them on the GPU of a machine: it records workloads of `hsa-dispatch` and judges what was
seen. This file shows such runs. It is generated ([how](building.md)); don't edit it. The form of the reports is
[claims.schema.json](claims.schema.json).

    sudo tracer verify --claims                              # on the GPU of this machine
    sudo tracer verify --claims=C1,C5 --json mine.json       # some of them, also for programs
    tracer verify --claims --from mine.json --from other.json --format markdown   # a document such as this one

| verdict | meaning |
|---|---|
| holds | the evidence is there, and it is as the claim says |
| contradicted | the evidence is there, and it is otherwise |
| inconclusive | it was tested, and the evidence does not suffice; what was missing is said |
| not tested | nothing here could test it; what it takes is said |

Evidence alone decides. What the sources of the driver and the runtime say stands beside it, and decides nothing. A part of
a claim that is contradicted contradicts the claim; else one that is open leaves it open. Exit codes: 0 if every claim that
could be tested was decided, and as the sources say; 1 if one was decided otherwise; 3 if one is inconclusive.

That no job was seen on a ring proves something only where such jobs would be seen: `--control COMMAND` runs a command that
submits some. On a GPU whose scheduler or product a claim is not about, the claim is not tested.
";

/// Formats one document from all reports.
pub fn write(reports: &[Report]) -> String {
    let mut text = HEAD.to_owned();
    places(&mut text, reports);
    overview(&mut text, reports);
    for claim in &CLAIMS {
        one(&mut text, claim, reports);
    }
    text
}

/// Returns a report's name for tables: its GPUs, and whether they are real.
fn name(report: &Report) -> String {
    let gpus: Vec<&str> = report.place.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let real = match report.place.simulated {
        Some(_) => ", simulated",
        None => "",
    };
    Markdown(&format!("{}{real}", gpus.join(", "))).to_string()
}

fn find<'a>(report: &'a Report, claim: &Claim) -> Option<&'a ClaimVerdict> {
    report.claims.iter().find(|found| found.id == claim.id)
}

fn places(text: &mut String, reports: &[Report]) {
    text.push_str("\n## Where\n");
    for report in reports {
        let _ = writeln!(text, "\n**{}**\n", name(report));
        for (name, line) in place(&report.place) {
            let _ = writeln!(text, "- {name}: {}", Markdown(&line));
        }
    }
}

fn overview(text: &mut String, reports: &[Report]) {
    text.push_str("\n## Overview\n\n| | claim | sources say |");
    for report in reports {
        let _ = write!(text, " {} |", name(report));
    }
    text.push_str("\n|---|---|---|");
    text.push_str(&"---|".repeat(reports.len()));
    text.push('\n');
    for claim in &CLAIMS {
        if !reports.iter().any(|report| find(report, claim).is_some()) {
            continue;
        }
        let sources = claim.sources_verdict.map_or("nothing", |it| it.name());
        let _ = write!(
            text,
            "| [{0}](#{1}) | {2} | {sources} |",
            claim.id,
            claim.id.to_lowercase(),
            Markdown(claim.text)
        );
        for report in reports {
            let verdict = find(report, claim).map_or("", |found| found.verdict.name());
            let _ = write!(text, " {verdict} |");
        }
        text.push('\n');
    }
}

fn one(text: &mut String, claim: &Claim, reports: &[Report]) {
    let found: Vec<(&Report, &ClaimVerdict)> = reports
        .iter()
        .filter_map(|report| Some((report, find(report, claim)?)))
        .collect();
    if found.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## {}\n\n> {}\n", claim.id, Markdown(claim.text));
    let _ = writeln!(text, "Sources: {}\n", Markdown(claim.sources));
    let workload = claim.scenario.workload().join(" ");
    let _ = writeln!(text, "Scenario: `hsa-dispatch {workload}`\n");
    let _ = writeln!(text, "Checked: {}.\n", Markdown(claim.checked));
    text.push_str("| where | verdict | evidence |\n|---|---|---|\n");
    for (report, claim) in found {
        let mut lines: Vec<String> = Vec::new();
        for check in &claim.checks {
            let what = Markdown(&format!("{}: {}", check.what, check.evidence));
            lines.push(format!("**{}**: {what}", check.verdict.name()));
            for missing in &check.missing {
                lines.push(Markdown(&format!("missing: {}; to get it: {}", missing.source, missing.fix)).to_string());
            }
        }
        lines.extend(claim.notes.iter().map(|note| format!("note: {}", Markdown(note))));
        if let Some(simulated) = &claim.simulated {
            lines.push(format!("simulated: {}", Markdown(simulated)));
        }
        let machine = report.place.machine.as_deref().unwrap_or("machine unknown");
        let system = format!("Linux {} on {machine}", report.place.kernel);
        let rings = match report.place.ring_events {
            true => "ring events",
            false => "no ring events",
        };
        let _ = writeln!(
            text,
            "| {}<br>{}<br>{rings} | {} | {} |",
            name(report),
            Markdown(&system),
            Markdown(&verdict(claim)),
            lines.join("<br>")
        );
    }
}
