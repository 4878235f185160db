//! Judges claims from hand-made recordings.

mod decided;
mod open;
mod support;

use super::{CLAIMS, Claim, Report, Scenario, Standing};
use support::*;

#[test]
fn claims_are_numbered_and_say_everything() {
    for (number, claim) in CLAIMS.iter().enumerate() {
        assert_eq!(claim.id, format!("C{}", number + 1));
        for text in [claim.text, claim.sources, claim.checked] {
            assert!(!text.is_empty() && !text.contains("  "), "{claim:?}");
        }
        assert!(!claim.simulated.is_empty(), "{claim:?}");
        assert_eq!(Claim::by_id(&claim.id.to_lowercase()), Some(claim));
    }
    assert_eq!(Claim::by_id("C13"), None);
}

/// The numbers that the words of a workload request, according to the README of the dispatcher.
#[test]
fn scenarios_ask_for_what_their_words_say() {
    for &scenario in Scenario::ALL {
        let words = scenario.workload();
        let option = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse::<u64>().ok()
        };
        let n = option("-n").unwrap_or(0);
        let (dispatches, copies, queues) = match words[0] {
            "compute-only" | "cooperative" => (n, 0, 1),
            "copy-only" => (0, 2 * n, 0),
            "churn" => (option("--queues").unwrap(), 0, option("--queues").unwrap()),
            "inference" => (n * option("--dispatches").unwrap(), 2 * n, 1),
            _ => continue,
        };
        let asked = scenario.asked();
        assert_eq!(
            (asked.dispatches, asked.copies, asked.queues),
            (dispatches, copies, queues)
        );
    }
}

#[test]
fn a_report_counts_its_verdicts_and_contradictions_of_the_sources() {
    let report = Report::new(Default::default(), all(&mes(|_, _, _| {})));
    let tally = report.tally;
    assert_eq!(
        (tally.holds, tally.contradicted, tally.inconclusive, tally.not_tested),
        (6, 3, 0, 3)
    );
    assert_eq!(tally.against_sources, 0);
    let against = Report::new(Default::default(), all(&mes(job_on_compute_ring)));
    let ids: Vec<&str> = against
        .claims
        .iter()
        .filter(|claim| claim.as_sources_say == Some(false))
        .map(|claim| claim.id.as_str())
        .collect();
    assert_eq!(ids, ["C1", "C4", "C7"]);
    assert_eq!(against.tally.against_sources, 3);
}

#[test]
fn the_worst_part_decides() {
    use Standing::*;
    let order = [Holds, NotTested, Inconclusive, Contradicted];
    assert!(order.is_sorted());
    assert_eq!(order.map(Standing::decided), [true, false, false, true]);
}
