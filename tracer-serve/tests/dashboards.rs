//! Tests that every metric that a dashboard or a rule names is served, with the suffix of its kind, and with labels that it has; and
//! that dashboards are what Grafana's schema allows, and explain what they show.

mod grafana;

use std::{collections::BTreeSet, fs, path::PathBuf};

use grafana::{Dashboard, LinkType, Mapping, PanelType, SpecialMatch, ThresholdsMode};
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

/// Returns the dashboards, as Grafana's schema describes them.
fn dashboards() -> Vec<Dashboard> {
    let entries = fs::read_dir(folder().join("grafana/dashboards")).expect("dashboards");
    let all = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("it can be read");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    all.collect()
}

#[test]
fn dashboards_are_what_the_schema_of_grafana_allows() {
    let dashboards = dashboards();
    assert_eq!(dashboards.len(), 5);
    for dashboard in &dashboards {
        let uid = &dashboard.uid;
        assert!((8..=40).contains(&uid.len()), "{uid}");
        assert!(dashboard.graph_tooltip <= 2, "{uid}");
        let mut cells = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for panel in &dashboard.panels {
            let place = format!("{uid}: {}", panel.title);
            panel.check_options().unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!(ids.insert(panel.id), "{place}: its id is another's");
            let at = &panel.grid_pos;
            assert!(at.w > 0 && at.h > 0 && at.x + at.w <= 24, "{place}: {at:?}");
            for cell in (at.x..at.x + at.w).flat_map(|x| (at.y..at.y + at.h).map(move |y| (x, y))) {
                assert!(cells.insert(cell), "{place} overlaps another at {cell:?}");
            }
            if let Some(thresholds) = &panel.field_config.defaults.thresholds {
                assert_eq!(thresholds.mode, ThresholdsMode::Absolute, "{place}");
                // The first step has no value: it begins at minus infinity.
                let steps: Vec<Option<f64>> = thresholds.steps.iter().map(|step| step.value).collect();
                assert!(steps[0].is_none() && steps.is_sorted(), "{place}: {steps:?}");
            }
            let mut names = BTreeSet::new();
            assert!(!panel.targets.is_empty(), "{place}");
            for target in &panel.targets {
                assert!(names.insert(&target.ref_id), "{place}: {target:?}");
            }
        }
    }
}

#[test]
fn every_panel_explains_itself() {
    let dashboards = dashboards();
    let uids: BTreeSet<&str> = dashboards.iter().map(|dashboard| &*dashboard.uid).collect();
    for dashboard in &dashboards {
        // The others are in a menu.
        let [menu] = &dashboard.links[..] else {
            panic!("{}: {:?}", dashboard.uid, dashboard.links)
        };
        assert_eq!(menu.r#type, LinkType::Dashboards);
        assert!(menu.keep_time && menu.include_vars && dashboard.tags.contains(&menu.tags[0]));
        for panel in &dashboard.panels {
            let place = format!("{}: {}", dashboard.uid, panel.title);
            assert!(
                panel.description.len() > 20 && panel.description.ends_with('.'),
                "{place}"
            );
            let defaults = &panel.field_config.defaults;
            assert!(!defaults.unit.is_empty(), "{place}");
            // What has no value is unknown, and not 0.
            assert_eq!(defaults.no_value, "?", "{place}");
            let unknown = defaults.mappings.iter().any(|mapping| {
                let Mapping::Special(special) = mapping else {
                    return false;
                };
                special.r#match == SpecialMatch::NullAndNan && special.result.text == "?"
            });
            assert!(unknown, "{place}");
            assert_eq!(panel.r#type == PanelType::Graph, defaults.custom.is_some(), "{place}");
            for target in &panel.targets {
                assert!(!target.legend_format.is_empty(), "{place}");
                let table = panel.r#type == PanelType::Table;
                assert_eq!(
                    target.instant,
                    table.then_some(true),
                    "{place}: a table shows the present"
                );
            }
            for link in panel.links.iter().flatten() {
                let to = link.url.strip_prefix("/d/").and_then(|rest| rest.split('?').next());
                assert!(to.is_some_and(|to| uids.contains(to)), "{place}: {}", link.url);
            }
        }
    }
}

/// Numbers that stand for words are shown as these words.
#[test]
fn numbers_that_are_states_have_words() {
    let text = |title: &str| {
        let panels = dashboards().into_iter().flat_map(|dashboard| dashboard.panels);
        let panel = panels.into_iter().find(|panel| panel.title == title).expect("a panel");
        format!("{:?}", panel.field_config)
    };
    for (title, words) in [
        ("What is watched", ["\"watched\"", "\"not watched\""]),
        ("Stuck now", ["\"stuck\"", "\"advances\""]),
        ("Answers to scrapes", ["\"answers\"", "\"no answer\""]),
        ("Versions", ["\"simulated GPU\"", "\"no simulated GPU found\""]),
    ] {
        let config = text(title);
        assert!(words.iter().all(|word| config.contains(word)), "{title}: {config}");
    }
}
