//! Tests of exit codes, and of docs/claims.md.

use std::{fs, path::Path};

use tracer_claims::{CLAIMS, Evidence, Report, Standing};

use super::{code, markdown, text};

/// Returns a report on claims with these verdicts; `false` means against the sources.
fn report(verdicts: &[(Standing, Option<bool>)]) -> Report {
    let claims = CLAIMS.iter().zip(verdicts).map(|(claim, (verdict, as_sources_say))| {
        let mut found = tracer_claims::judge(claim, &Evidence::default());
        found.verdict = *verdict;
        found.as_sources_say = *as_sources_say;
        found
    });
    Report::new(Default::default(), claims.collect())
}

#[test]
fn exit_codes_tell_what_is_open_and_what_is_against_the_sources() {
    use Standing::*;
    let (as_said, against, open) = (Some(true), Some(false), None);
    for (verdicts, plain, strict) in [
        (&[(Holds, as_said), (Contradicted, as_said)][..], 0, 0),
        (&[(Holds, as_said), (NotTested, open)], 0, 3),
        (&[(Holds, as_said), (Inconclusive, open)], 3, 3),
        (&[(Holds, against), (Inconclusive, open)], 1, 1),
        (&[(Contradicted, against)], 1, 1),
        (&[(NotTested, open)], 3, 3),
        (&[], 3, 3),
    ] {
        let report = report(verdicts);
        assert_eq!(
            (code(&report, false), code(&report, true)),
            (plain, strict),
            "{verdicts:?}"
        );
    }
}

#[test]
fn a_verdict_against_the_sources_catches_the_eye() {
    let text = text::write(&report(&[(Standing::Contradicted, Some(false))]));
    assert!(
        text.contains("verdict        contradicted, AGAINST the sources, which say: holds"),
        "{text}"
    );
    assert!(text.contains("1 decided differently from the sources"), "{text}");
}

#[test]
fn names_of_a_machine_break_no_table_and_reach_no_terminal() {
    let mut report = report(&[(Standing::Holds, Some(true))]);
    report.place.kernel = "6|\u{1b}[31m\n# x".to_owned();
    for form in [markdown::write(&[report.clone()]), text::write(&report)] {
        assert!(!form.contains('\u{1b}') && !form.contains("\n# x"), "{form}");
    }
    assert!(!markdown::write(&[report]).contains("6|"));
}

/// `cargo xtask claims` gets the reports from virtual machines, and the document is generated from them.
#[test]
fn claims_md_shows_the_reports_beside_it() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let reports: Vec<Report> = ["gfx1100", "gfx942", "gfx90a"]
        .map(|asic| {
            let text = fs::read(docs.join(format!("claims/{asic}.json"))).expect("the report is there");
            serde_json::from_slice(&text).expect("the report has the form of this version: `cargo xtask claims`")
        })
        .into();
    for report in &reports {
        let ids: Vec<&str> = report.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(
            ids,
            CLAIMS.map(|claim| claim.id),
            "a claim is missing: `cargo xtask claims`"
        );
        assert!(
            report.place.simulated.is_some()
                && report
                    .claims
                    .iter()
                    .all(|c| c.simulated.is_some() || c.scenario.is_none())
        );
    }
    let document = markdown::write(&reports);
    let fix = "`UPDATE_DOCS=1 cargo xtask test -- claims_md`, or `cargo xtask claims` to run them again";
    crate::docs::is("claims.md", &document, fix);
}
