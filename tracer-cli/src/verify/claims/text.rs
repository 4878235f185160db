//! The report on claims for people.

use std::fmt::Write;

use tracer_claims::{ClaimVerdict, Place, Report};
use tracer_core::foreign::Terminal;
use tracer_core::words::Named;

/// Formats the claims with their results, then the place, then the counts by result, so that these are at the end of the output.
pub fn write(report: &Report) -> String {
    let mut text = String::new();
    for claim in &report.claims {
        one(&mut text, claim);
    }
    for (name, line) in place(&report.place) {
        let _ = writeln!(text, "{name:<12}{}", Terminal(&line));
    }
    let tally = report.tally;
    let _ = writeln!(
        text,
        "\n{} hold, {} contradicted, {} inconclusive, {} not tested; {} decided differently from the sources",
        tally.holds, tally.contradicted, tally.inconclusive, tally.not_tested, tally.against_sources
    );
    text
}

fn one(text: &mut String, claim: &ClaimVerdict) {
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(text, "{name:<17}{}", Terminal(what));
    };
    line(&claim.id, &claim.claim);
    line("  verdict", &verdict(claim));
    line("  sources say", &claim.sources);
    if let Some(scenario) = &claim.scenario {
        line("  ran", &format!("hsa-dispatch {scenario}"));
    }
    line("  checked", &claim.checked);
    for check in &claim.checks {
        line(
            &format!("  {}", check.verdict.name()),
            &format!("{}: {}", check.what, check.evidence),
        );
        for missing in &check.missing {
            line("", &format!("missing: {}; to get it: {}", missing.source, missing.fix));
        }
    }
    for note in &claim.notes {
        line("  note", note);
    }
    if let Some(simulated) = &claim.simulated {
        line("  simulated", simulated);
    }
    text.push('\n');
}

/// Returns the verdict, and how it relates to the sources.
pub fn verdict(claim: &ClaimVerdict) -> String {
    let name = claim.verdict.name();
    match claim.as_sources_say {
        Some(true) => format!("{name}, as the sources say"),
        Some(false) => format!(
            "{name}, AGAINST the sources, which say: {}",
            claim.sources_verdict.map_or("nothing", |it| it.name())
        ),
        None => name.to_owned(),
    }
}

/// Returns the properties of the place, by name.
pub fn place(place: &Place) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("time", place.time.clone()),
        ("tracer", place.tracer.clone()),
        ("kernel", place.kernel.clone()),
        ("machine", place.machine.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("dispatcher", place.dispatcher.clone()),
        ("runtime", place.runtime.clone().unwrap_or_else(|| "unknown".to_owned())),
    ];
    for gpu in &place.gpus {
        let product = gpu.product.as_deref().unwrap_or("product unknown");
        let scheduler = gpu.scheduler.as_deref().unwrap_or("unknown");
        lines.push((
            "gpu",
            format!(
                "{} ({product}), scheduler {scheduler}: {}",
                gpu.name,
                gpu.evidence.join("; ")
            ),
        ));
    }
    if let Some(sign) = &place.simulated {
        lines.push(("simulated", format!("{sign}: the GPU is not real")));
    }
    lines.push(("rings", rings(place)));
    lines
}

/// Returns whether jobs on rings of the driver were watched, and whether any could be seen.
fn rings(place: &Place) -> String {
    let watched = match place.ring_events {
        true => "jobs on rings of the kernel driver were watched",
        false => "jobs on rings of the kernel driver were not watched: the kernel had no gpu_scheduler events",
    };
    match &place.control {
        Some(control) => {
            let jobs = control
                .jobs
                .map_or_else(|| "an unknown number of".to_owned(), |jobs| jobs.to_string());
            format!(
                "{watched}; of the control command ({}), {jobs} were seen",
                control.command
            )
        }
        None => watched.to_owned(),
    }
}
