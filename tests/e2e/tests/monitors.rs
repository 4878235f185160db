//! Prometheus over `tracer serve`: it stores the truth, and every expression in `dashboards/` is valid in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tracer_core::metrics::CATALOG;
use tracer_e2e::{
    prometheus::{Prometheus, in_the_older_format, promtool},
    running::{Recorder, signal, wait_for},
    scenario::{Scenario, folder},
    truth::Truth,
};

use crate::serve::{address, get, series, serve};

fn dashboards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../dashboards")
        .canonicalize()
        .expect("they are there")
}

/// `tracer serve`, which is killed when its test ends.
struct Served {
    recorder: Option<Recorder>,
    address: String,
    /// The file that makes the program exit; `None` if it has exited.
    stop: Option<PathBuf>,
}

impl Served {
    fn of(command: Command, folder: &Path, stop: Option<PathBuf>) -> Self {
        let recorder = Recorder::of(command, folder);
        let address = address(&recorder);
        Self {
            recorder: Some(recorder),
            address,
            stop,
        }
    }

    /// Starts a program that runs until the value is dropped. tracer does not attach to it: a queue that existed before may have no
    /// known id, and then has no current numbers.
    fn running(folder: &Path) -> Self {
        let mut command = serve(&["--detail", "full", "--"]);
        command.args(Scenario::new("sid", "gfx942", &["steady"]).simulated(folder));
        let stop = folder.join("stop");
        command.arg("--until").arg(&stop);
        Self::of(command, folder, Some(stop))
    }

    /// Runs a program through HIP on the simulated GPU until it exits. The truth is in the folder.
    fn ended(folder: &Path) -> Self {
        let scenario = Scenario::hip("trixie", "gfx1100", &["mixed"]);
        let mut command = serve(&["--stay", "--detail", "full", "--"]);
        command.args(scenario.simulated(folder));
        let served = Self::of(command, folder, None);
        served.recorder.as_ref().expect("it runs").hears("ended      ");
        served
    }

    /// Returns the text that a scraper gets.
    fn text(&self) -> String {
        get(&self.address, "/metrics", "").1
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        match &self.stop {
            Some(stop) => {
                let _ = fs::write(stop, "");
            }
            None => signal(recorder.pid(), libc::SIGINT),
        }
        let _ = recorder.wait();
    }
}

/// Returns the expressions of panels with their places, with the variables filled in.
fn of_panels() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dashboards().join("grafana/dashboards")).expect("dashboards") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("it can be read");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let uid = dashboard["uid"].as_str().expect("an id");
        for panel in dashboard["panels"].as_array().expect("panels") {
            let title = panel["title"].as_str().expect("a title");
            for target in panel["targets"].as_array().expect("targets") {
                let mut expression = target["expr"].as_str().expect("an expression").to_owned();
                for variable in dashboard["templating"]["list"].as_array().expect("variables") {
                    // The value that Grafana inserts for `All`.
                    let name = format!("${}", variable["name"].as_str().expect("a name"));
                    expression = expression.replace(&name, ".*");
                }
                assert!(!expression.contains('$'), "{uid}: {expression} has an unknown variable");
                all.push((format!("{uid}: {title}"), expression));
            }
        }
    }
    assert!(all.len() > 30, "only {} panels were found", all.len());
    // Adds the examples of docs/metrics.md.
    all.extend(CATALOG.map(|metric| (format!("docs: {}", metric.name), metric.example.to_owned())));
    all
}

/// Expressions that are empty when there is no problem.
const MAY_BE_EMPTY: [&str; 2] = ["tracer-queue: Stuck now", "docs: tracer_events_lost"];

/// Returns the metrics that an expression needs, by their names in Prometheus.
fn metrics_in(expression: &str) -> BTreeSet<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = expression.split(|c| !word(c));
    words.filter(|word| word.starts_with("tracer_")).collect()
}

/// Waits until Prometheus has scraped every target this often, and has evaluated the rules on that.
fn has_scraped(prometheus: &Prometheus, targets: usize, times: u64) {
    let all = |expression: &str| {
        prometheus
            .number(&format!("count({expression})"))
            .is_some_and(|count| count == targets as f64)
    };
    wait_for("scrapes", || {
        all(&format!("count_over_time(up[5m]) >= {times}")).then_some(())
    });
    assert!(all("up == 1"), "{:?}", prometheus.query("up"));
}

#[test]
fn what_prometheus_stores_is_the_truth() {
    let dir = folder();
    let served = Served::ended(dir.path());
    let rules = dashboards().join("prometheus/tracer.rules.yml");
    let prometheus = Prometheus::start(dir.path(), &[&served.address], &rules);
    has_scraped(&prometheus, 1, 1);
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    let number = |expression: &str| prometheus.number(expression).map(|number| number as u64);
    assert!(truth.dispatches() > 0);
    assert_eq!(number("sum(tracer_dispatches_total)"), Some(truth.dispatches()));
    assert_eq!(
        number("sum(tracer_dispatches_total{path=\"doorbell\"})"),
        Some(truth.dispatches())
    );
    for (aql, metric) in [(true, "tracer_doorbells_total"), (false, "tracer_copies_total")] {
        let queues = || truth.queues.iter().filter(|queue| queue.is_aql() == aql);
        let rung: usize = queues().map(|queue| queue.doorbells.len()).sum();
        assert!(rung > 0, "{metric}");
        // The device polls doorbells: of several stores in a row it may see only the last.
        assert!(
            number(&format!("sum({metric})")) >= Some(rung as u64),
            "{metric}: {rung}"
        );
    }
    let mut ioctls: BTreeMap<&str, u64> = BTreeMap::new();
    for ioctl in truth.ioctls.iter().filter(|ioctl| ioctl.dev == "kfd") {
        *ioctls.entry(ioctl.name.as_deref().expect("a known one")).or_default() += 1;
    }
    assert!(!ioctls.is_empty());
    for (name, count) in ioctls {
        let expression = format!("tracer_kfd_ioctl_seconds_count{{ioctl=\"{name}\"}}");
        assert_eq!(number(&expression), Some(count), "{name}");
    }
    // Sources that are watched start at 0, not without a value. Sources that are not watched have no series.
    let lost = |source: &str| number(&format!("tracer_events_lost_total{{source=\"{source}\"}}"));
    for source in [
        "doorbell-ring",
        "packets-ring",
        "reserve-ring",
        "ioctl-ring",
        "sdma-ring",
    ] {
        assert_eq!(lost(source), Some(0), "{source}");
    }
    assert_eq!(lost("api-ring"), None);
    assert_eq!(number("tracer_build_info{simulated=\"true\"}"), Some(1));
    // Everything else arrived as it was served.
    let text = served.text();
    let served = series(&text);
    assert!(served.len() > 50, "{text}");
    for (name, expected) in &served {
        assert_eq!(prometheus.number(name), Some(*expected), "{name}");
    }
}

#[test]
fn every_panel_and_rule_has_its_series() {
    let dir = folder();
    let ended = Served::ended(dir.path());
    let other = folder();
    let running = Served::running(other.path());
    let rules = dashboards().join("prometheus/tracer.rules.yml");
    let prometheus = Prometheus::start(dir.path(), &[&ended.address, &running.address], &rules);
    // A rate needs two scrapes.
    has_scraped(&prometheus, 2, 3);
    let of_running = format!("{{instance=\"{}\"}}", running.address);
    let rate = format!("sum(rate(tracer_dispatches_total{of_running}[1m])) > 0");
    wait_for("a rate", || prometheus.number(&rate));

    let names = |text: &str| -> BTreeSet<String> {
        let of = |name: &String| name.split('{').next().unwrap_or_default().to_owned();
        series(text).keys().map(of).collect()
    };
    let there: BTreeSet<String> = [names(&ended.text()), names(&running.text())]
        .into_iter()
        .flatten()
        .collect();
    let without = |expression: &str| -> Vec<String> {
        let missing = metrics_in(expression).into_iter().filter(|name| !there.contains(*name));
        missing.map(str::to_owned).collect()
    };
    for (place, expression) in of_panels() {
        let found = prometheus
            .query(&expression)
            .unwrap_or_else(|error| panic!("{place}: {expression}: {error}"));
        if !found.is_empty() || MAY_BE_EMPTY.contains(&place.as_str()) {
            continue;
        }
        // A simulated GPU has no driver with rings.
        let missing = without(&expression);
        assert_eq!(
            missing,
            ["tracer_ring_jobs_total"],
            "{place}: {expression} has no series"
        );
    }

    let rules = wait_for("every rule", || {
        let answer = prometheus.ask("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().expect("groups").clone();
        let rules: Vec<Value> = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().expect("rules").clone())
            .collect();
        rules.iter().all(|rule| rule["health"] != "unknown").then_some(rules)
    });
    assert!(rules.len() > 10, "{rules:?}");
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        let name = rule["name"].as_str().expect("a name");
        if rule["type"] == "recording" && !name.contains("ring_jobs") {
            wait_for(name, || prometheus.query(name).ok().filter(|found| !found.is_empty()));
        } else {
            // There is no problem here.
            assert_ne!(rule["state"], "firing", "{rule}");
        }
    }
}

/// Returns the bounds (exclusive, inclusive) in seconds of the bucket that holds the quantile of a histogram, and of all buckets that
/// hold anything. `name` is the metric, `label` a label that its series have.
fn buckets(series: &BTreeMap<String, f64>, name: &str, label: &str, quantile: f64) -> [(f64, f64); 2] {
    let start = format!("{name}_bucket{{");
    let mut all: Vec<(f64, f64)> = series
        .iter()
        .filter(|(key, _)| key.starts_with(&start) && key.contains(label))
        .map(|(key, count)| {
            let end = key.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
            (end.expect("a bound").parse().expect("a number"), *count)
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let &(last, total) = all.last().expect("buckets");
    assert!(last.is_infinite() && total > 0.0, "{name}: {all:?}");
    assert_eq!(
        series[&format!(
            "{name}_count{}",
            if label.is_empty() {
                String::new()
            } else {
                format!("{{{label}}}")
            }
        )],
        total
    );
    let index = |wanted: f64| {
        all.iter()
            .position(|(_, count)| *count >= wanted)
            .expect("the last has all")
    };
    let bounds = |first: usize, last: usize| (first.checked_sub(1).map_or(0.0, |at| all[at].0), all[last].0);
    let place = index(quantile * total);
    [bounds(place, place), bounds(index(1.0), index(total))]
}

/// Both panels of quantiles, and quantiles of what the program did: the numbers are those of the buckets that hold them. Without the
/// bucket `+Inf`, Prometheus computes no number.
#[test]
fn quantiles_are_those_of_the_durations() {
    let dir = folder();
    let running = Served::running(dir.path());
    let rules = dashboards().join("prometheus/tracer.rules.yml");
    let prometheus = Prometheus::start(dir.path(), &[&running.address], &rules);
    has_scraped(&prometheus, 1, 3);
    let (reserves, ioctls) = ("tracer_submit_latency_seconds", "tracer_kfd_ioctl_seconds");
    // The program creates its queue at its start: the durations of this call do not change any more once they are stored.
    let create = "ioctl=\"CREATE_QUEUE\"";
    let count = format!("{ioctls}_count{{{create}}}");
    for quantile in [0.5, 0.99] {
        let (number, served) = wait_for("the same calls here and there", || {
            let stored = prometheus.number(&count)?;
            let number = prometheus.number(&format!("histogram_quantile({quantile}, {ioctls}_bucket{{{create}}})"))?;
            let served = series(&running.text());
            (served.get(&count) == Some(&stored)).then_some((number, served))
        });
        let [(above, up_to), _] = buckets(&served, ioctls, create, quantile);
        assert!(
            above < number && number <= up_to,
            "{quantile}: {number} in {above}..{up_to}"
        );
    }
    // The panels show rates: each number lies among the durations that there were.
    let panels: Vec<_> = of_panels()
        .into_iter()
        .filter(|(place, _)| place.ends_with(", p99"))
        .collect();
    let places: Vec<&str> = panels.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    for (place, expression) in &panels {
        let found = wait_for("a rate", || {
            prometheus
                .query(expression)
                .ok()
                .filter(|found| found.iter().any(|(_, number)| !number.is_nan()))
        });
        let text = series(&running.text());
        let mut busy = 0;
        for (labels, number) in found {
            let name = if expression.contains(reserves) {
                reserves
            } else {
                ioctls
            };
            let label = labels
                .get("ioctl")
                .map_or_else(String::new, |ioctl| format!("ioctl=\"{ioctl}\""));
            // Calls that were made only before the first scrape have the rate 0, and so no quantile.
            let rate = format!("sum(rate({name}_count{{{label}}}[1m]))");
            if prometheus.number(&rate).is_none_or(|rate| rate == 0.0) {
                continue;
            }
            busy += 1;
            let [_, (above, up_to)] = buckets(&text, name, &label, 0.99);
            assert!(
                number.is_finite() && above < number && number <= up_to,
                "{place} {labels:?}: {number} in {above}..{up_to}"
            );
        }
        assert!(busy > 0, "{place}: nothing happens");
    }
}

#[test]
fn promtool_has_no_complaints() {
    let passes = |folder: &Path, words: &[&str], input: &str| {
        let output = promtool(folder, words, input);
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "promtool {words:?}: {}\n{said}", output.status);
    };
    let dir = folder();
    as_installed(dir.path());
    passes(dir.path(), &["check", "config", "prometheus.yml"], "");
    passes(dir.path(), &["check", "rules", "tracer.rules.yml"], "");
    passes(dir.path(), &["test", "rules", "tracer.rules.test.yml"], "");
    let served = Served::ended(dir.path());
    passes(dir.path(), &["check", "metrics"], &in_the_older_format(&served.text()));
}

/// Installs `dashboards/prometheus` as on a machine, with a folder instead of `/etc/prometheus`.
fn as_installed(folder: &Path) {
    for entry in fs::read_dir(dashboards().join("prometheus")).expect("files") {
        let entry = entry.expect("an entry");
        let text = fs::read_to_string(entry.path()).expect("it can be read");
        let text = text.replace("/etc/prometheus/", &format!("{}/", folder.display()));
        fs::write(folder.join(entry.file_name()), text).expect("it can be written");
    }
    fs::write(folder.join("tracer.token"), "a secret").expect("it can be written");
    fs::create_dir(folder.join("targets")).expect("a folder");
    let example = folder.join("targets.example.json");
    fs::rename(example, folder.join("targets/example.json")).expect("there is an example");
}
