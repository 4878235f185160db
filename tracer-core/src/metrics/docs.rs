//! Generates docs/metrics.md from the catalogue.

use std::fmt::Write as _;

use super::catalog::{CATALOG, Definition, Kind, LABELS};
use crate::words::Named;

const INTRODUCTION: &str = "\
# Metrics of `tracer serve`

This file is generated from the catalogue in `tracer-core/src/metrics`; to write it anew:
`UPDATE_DOCS=1 cargo test -p tracer-core --test docs`.

Names are as Prometheus stores them. The format is OpenMetrics. docs/serve.md describes how to scrape it.

- Unknown is not 0. A count that is not known has no series. `tracer_watched` tells it apart from a count that is 0: without
  `tracer_watched{what=\"packets\"} 1` there are no dispatches and packets, without `doorbells` no doorbells, without
  `sdma_doorbells` no copies, and without `kernel_rings`, `thunk` or `unseen` nothing on that path. tracer watches a source only if
  every library has its probes. A queue without counters beside `tracer_queues` takes commands that tracer does not read (PM4); one
  with `tracer_doorbells_total` and without `tracer_dispatches_total` has no dispatches, or has vendor packets of an unknown format.
  A label whose value is not known is `unknown`; one that does not apply is empty.
- Counters count from the start of `tracer serve` and never fall while it runs: what a queue counted goes to
  `queue_id=\"ended\"` of its GPU five minutes after its end.
- The series of a path, a ring, an ioctl begins with its first event: `increase()` does not see that one. Series of queues
  begin with the queue.
- `tracer_events_lost_total` is 0 from the start for each source that is counted: buffers and maps of the programs whose probes
  are in, and limits of the model. Sources that begin with `missed-` (programs that the kernel did not run) appear with their first
  loss only, because kernels before 6.7 do not report all.
- `tracer_build_info{simulated=\"true\"}` marks numbers of a GPU that a program plays. They are numbers of that program.
- Series are bounded: 1000 queues at once, 128 names of anything else; what is beyond has the label `other`.
";

/// Returns the document.
#[must_use]
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|"
    );
    for definition in &CATALOG {
        let labels = definition.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let (name, kind, unit) = (stored(definition), definition.kind.name(), definition.unit);
        let _ = writeln!(text, "| `{name}` | {kind} | {unit} | {labels} | {} |", definition.help);
    }
    let _ = writeln!(
        text,
        "\nA histogram `NAME` has the series `NAME_bucket` (with `le`, in seconds), `NAME_sum` and `NAME_count`."
    );
    let _ = writeln!(text, "\n## Labels\n\n| label | meaning |\n|---|---|");
    for (label, meaning) in LABELS {
        let _ = writeln!(text, "| `{label}` | {meaning} |");
    }
    let _ = writeln!(text, "\n## Questions");
    for definition in &CATALOG {
        let _ = writeln!(text, "\n`{}`\n\n    {}", stored(definition), definition.example);
    }
    text
}

/// Returns the name of the metric in Prometheus.
fn stored(definition: &Definition) -> String {
    let suffix = match definition.kind {
        Kind::Counter => "_total",
        Kind::Gauge | Kind::Histogram => "",
    };
    format!("{}{suffix}", definition.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_has_a_meaning_and_every_example_asks_for_its_metric() {
        for definition in &CATALOG {
            assert!(definition.example.contains(&stored(definition)), "{definition:?}");
            for label in definition.labels {
                assert!(LABELS.iter().any(|(name, _)| name == label), "{label}");
            }
        }
        for (label, _) in LABELS {
            assert!(
                CATALOG.iter().any(|definition| definition.labels.contains(&label)),
                "{label}"
            );
        }
    }
}
