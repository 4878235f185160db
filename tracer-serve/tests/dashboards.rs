//! Tests that every metric that a dashboard or a rule names is served, with the suffix of its kind, and with labels that it has.

use std::{fs, path::PathBuf};

use serde_json::Value;
use tracer_core::metrics::{CATALOG, Definition, Kind};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../dashboards")
}

/// Returns every expression of the dashboards, with its location.
fn of_dashboards() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder().join("grafana/dashboards")).expect("dashboards") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("it can be read");
        let dashboard: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{}.json", dashboard["uid"].as_str().expect("an id")), name);
        for panel in dashboard["panels"].as_array().expect("panels") {
            for target in panel["targets"].as_array().expect("targets") {
                all.push((name.clone(), target["expr"].as_str().expect("an expression").to_owned()));
            }
        }
        for variable in dashboard["templating"]["list"].as_array().expect("variables") {
            if let Some(query) = variable["query"]["query"].as_str() {
                all.push((name.clone(), query.to_owned()));
            }
        }
    }
    all
}

/// Returns the lines of the rules that contain expressions.
fn of_rules() -> Vec<(String, String)> {
    let name = "prometheus/tracer.rules.yml";
    let text = fs::read_to_string(folder().join(name)).expect("rules");
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    code.map(|line| (name.to_owned(), line.to_owned())).collect()
}

/// Returns the words that begin like the name of a metric.
fn named(expression: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    expression
        .split(|c| !word(c))
        .filter(|word| word.starts_with("tracer_"))
        .collect()
}

/// Returns the metric behind an exposed name.
fn served(name: &str) -> Option<&'static Definition> {
    CATALOG.iter().find(|definition| {
        let suffixes: &[&str] = match definition.kind {
            Kind::Counter => &["_total"],
            Kind::Gauge => &[""],
            Kind::Histogram => &["_bucket", "_count", "_sum"],
        };
        suffixes
            .iter()
            .any(|suffix| name.strip_suffix(suffix) == Some(definition.name))
    })
}

#[test]
fn every_metric_of_dashboards_and_rules_is_served() {
    let mut count = 0;
    for (place, expression) in of_dashboards().into_iter().chain(of_rules()) {
        for name in named(&expression) {
            count += 1;
            assert!(served(name).is_some(), "{place}: nobody serves {name}: {expression}");
        }
    }
    assert!(count > 50, "only {count} names were found");
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let all = of_dashboards();
    for definition in &CATALOG {
        let shown = all
            .iter()
            .flat_map(|(_, expression)| named(expression))
            .any(|name| served(name) == Some(definition));
        assert!(shown, "no dashboard shows {}", definition.name);
    }
}

#[test]
fn labels_in_braces_are_the_metrics_own() {
    // Labels that Prometheus itself adds.
    let added = ["instance", "job", "le"];
    for (place, expression) in of_dashboards() {
        for (at, _) in expression.match_indices("tracer_") {
            let rest = &expression[at..];
            let Some((name, labels)) = rest.split_once('{') else {
                continue;
            };
            let (Some(definition), Some((labels, _))) = (served(name), labels.split_once('}')) else {
                continue;
            };
            for label in labels.split(',').filter(|label| label.contains('=')) {
                let label = label.split(['=', '!']).next().unwrap_or_default();
                assert!(
                    added.contains(&label) || definition.labels.contains(&label),
                    "{place}: {name} has no label {label}"
                );
            }
        }
    }
}
