//! `tracer serve --otlp`: what a real database receives is what `/metrics` shows, and a collector that does not work changes
//! nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tracer_core::metrics::{CATALOG, Definition, Family, Kind, Sample, Value};
use tracer_e2e::{
    prometheus::{Labels, Prometheus},
    running::{Recorder, signal, wait_for},
    scenario::{Scenario, folder},
    truth::Truth,
};
use tracer_otlp::{Origin, Pusher, Target};

use crate::serve::{address, get, serve};

/// Labels without a name, each once, and the number.
type Stored = BTreeMap<Labels, f64>;

/// Adds a series. A bound of a bucket is a number, which the two ways write differently, and an empty label is none.
fn insert(all: &mut Stored, mut labels: Labels, number: f64) {
    if let Some(bound) = labels.get_mut("le") {
        *bound = bound.parse::<f64>().expect("a bound").to_string();
    }
    labels.retain(|_, value| !value.is_empty());
    let before = all.insert(labels, number);
    assert!(before.is_none(), "a series is there twice");
}

/// The labels that VictoriaMetrics makes of the resource.
const RESOURCE: [&str; 4] = ["service.name", "service.version", "service.instance.id", "host.name"];

/// Returns every series that a database has, and the labels of its resource, which is the same for each.
fn stored(database: &Prometheus) -> (Stored, BTreeSet<[String; 4]>) {
    let found = database.query("{__name__!=\"\"}").expect("an answer");
    let mut all = Stored::new();
    let mut resources = BTreeSet::new();
    for (mut labels, number) in found {
        let mut take = |name: &str| labels.remove(name).or_else(|| labels.remove(&name.replace('.', "_")));
        resources.insert(RESOURCE.map(|name| take(name).unwrap_or_else(|| panic!("{name} is missing"))));
        insert(&mut all, labels, number);
    }
    (all, resources)
}

/// Waits until a database has these series, and no others. Returns the labels of the only resource.
fn has(database: &Prometheus, expected: &Stored) -> [String; 4] {
    let began = Instant::now();
    loop {
        database.flush();
        let (all, resources) = stored(database);
        if all == *expected {
            assert_eq!(resources.len(), 1, "{resources:?}");
            return resources.into_iter().next().expect("there is one");
        }
        if began.elapsed() > Duration::from_secs(30) {
            // Shows the difference.
            assert_eq!(all, *expected);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the series in the text of `/metrics`.
fn shown(text: &str) -> Stored {
    let mut all = Stored::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, number) = line.rsplit_once(' ').expect("a series and its number");
        let (name, mut rest) = series.split_once('{').unwrap_or((series, "}"));
        let mut labels = Labels::from([("__name__".to_owned(), name.to_owned())]);
        while let Some((label, quoted)) = rest.split_once("=\"") {
            let mut escaped = false;
            let end = quoted.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.expect("a closing quote");
            // The escapes are those of JSON: \\, \" and \n.
            let value = serde_json::from_str(&format!("\"{}\"", &quoted[..end])).expect("a value");
            labels.insert(label.trim_start_matches(',').to_owned(), value);
            rest = &quoted[end + 1..];
        }
        insert(&mut all, labels, number.parse().expect("a number"));
    }
    all
}

#[test]
fn what_is_pushed_is_what_is_served() {
    let dir = folder();
    let database = Prometheus::victoria(dir.path(), true);
    let mut command = serve(&["--stay", "--detail", "full", "--otlp", &database.otlp()]);
    command.args(["--otlp-interval", "1", "--"]);
    command.args(Scenario::hip("trixie", "gfx1100", &["mixed"]).simulated(dir.path()));
    let server = Recorder::of(command, dir.path());
    let address = address(&server);
    server.hears("ended      ");
    let all = shown(&get(&address, "/metrics", "").1);
    assert!(all.len() > 50, "{all:?}");
    let [name, version, instance, host] = has(&database, &all);
    assert_eq!(name, "tracer");
    let build = database.query("tracer_build_info").expect("an answer");
    assert_eq!(build[0].0["version"], version);
    let port = address.rsplit_once(':').expect("a port").1;
    assert_eq!(instance, format!("{host}:{port}"));
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    assert!(truth.dispatches() > 0);
    let dispatches = database.number("sum(tracer_dispatches_total)");
    assert_eq!(dispatches, Some(truth.dispatches() as f64));
    // A source that is not watched is unknown, not 0.
    let watched = database
        .number("tracer_watched{what=\"kernel_rings\"}")
        .expect("a value");
    let jobs = database.number("sum(tracer_ring_jobs_total)");
    assert_eq!(jobs.is_some(), watched > 0.0, "{jobs:?}, watched {watched}");
    signal(server.pid(), libc::SIGINT);
    let ended = server.wait();
    let output = ended.said();
    assert!(!output.contains("does not take"), "{output}");
    assert!(output.contains("pushed     "), "{output}");
    let _ = ended.expect_success();
}

#[test]
fn the_values_of_a_short_job_are_pushed_at_its_end() {
    let dir = folder();
    let database = Prometheus::victoria(dir.path(), true);
    let mut command = serve(&["--detail", "full", "--otlp", &database.otlp()]);
    command.args(["--otlp-interval", "3600", "--"]);
    command.args(Scenario::hip("trixie", "gfx1100", &["mixed"]).simulated(dir.path()));
    let _ = Recorder::of(command, dir.path()).wait().expect_success();
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    wait_for("the last values", || {
        database.flush();
        let dispatches = database.number("sum(tracer_dispatches_total)");
        (dispatches == Some(truth.dispatches() as f64)).then_some(())
    });
}

/// Two collectors: one takes connections and never answers, the other answers with bytes that would be commands of a CI system.
#[test]
fn a_collector_that_does_not_work_changes_nothing() {
    for answer in [None, Some(&b"HTTP/1.1 500 No\r\n\r\n\x1b[2J\n::error::x"[..])] {
        let dir = folder();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                // The answer to the beginning of a request has no end. The other side closes.
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.unwrap_or_default());
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let mut command = serve(&[
            "--stay",
            "--detail",
            "full",
            "--otlp",
            &url,
            "--otlp-interval",
            "1",
            "--",
        ]);
        command.args(Scenario::hip("trixie", "gfx1100", &["mixed"]).simulated(dir.path()));
        let server = Recorder::of(command, dir.path());
        let address = address(&server);
        server.hears("ended      ");
        let all = shown(&get(&address, "/metrics", "").1);
        let of_dispatches = all
            .iter()
            .filter(|(labels, _)| labels["__name__"] == "tracer_dispatches_total");
        let dispatches: f64 = of_dispatches.map(|(_, number)| number).sum();
        let truth = Truth::read(&dir.path().join("truth.jsonl"));
        assert_eq!(dispatches, truth.dispatches() as f64);
        let began = Instant::now();
        signal(server.pid(), libc::SIGINT);
        let ended = server.wait();
        // The last push takes three seconds at most, and the server's own end two. One that waits for the collector never ends.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let output = ended.said();
        let _ = ended.expect_success();
        assert_eq!(output.matches("does not take the metrics").count(), 1, "{output}");
        assert!(output.contains("misses the last values"), "{output}");
        assert!(output.contains("pushed     0 of "), "{output}");
        assert!(
            !output.contains('\u{1b}') && !output.contains("\n::error::"),
            "{output}"
        );
    }
}

/// A family with two series. Their labels and numbers differ from those of any other series.
fn family(definition: &'static Definition, number: u64) -> Family {
    let sample = |number: u64| {
        let label = |(at, &name): (usize, &&'static str)| (name, format!("{number} {at} \\ \" ü\n."));
        let value = match definition.kind {
            Kind::Counter | Kind::Gauge => Value::Number(number),
            Kind::Histogram => Value::Histogram {
                sum_ns: number * 1_000_000_007,
                count: 3 * number + 6,
                buckets: vec![(Some(100), number), (Some(500_000), 2 * number + 1), (None, 5)],
            },
        };
        Sample {
            labels: definition.labels.iter().enumerate().map(label).collect(),
            value,
        }
    };
    let mut samples = vec![sample(number)];
    if !definition.labels.is_empty() {
        samples.push(sample(number + 1));
    }
    Family { definition, samples }
}

fn origin() -> Origin {
    Origin {
        version: "1.2.3".to_owned(),
        host: "node1".to_owned(),
        instance: "node1:9478".to_owned(),
    }
}

/// Every metric, also those that a simulated GPU does not have, with labels of any text; in a database that makes names as
/// Prometheus does, and in one that leaves names as they are.
#[test]
fn every_metric_has_its_name_and_numbers_in_a_database() {
    let families = || -> Vec<Family> {
        let numbered = CATALOG.iter().zip((1_000..).step_by(10));
        numbered
            .map(|(definition, number)| family(definition, number))
            .collect()
    };
    let all = shown(&tracer_serve::text(families()).expect("text"));
    assert!(all.len() > 40, "{all:?}");
    for naming in [true, false] {
        let dir = folder();
        let database = Prometheus::victoria(dir.path(), naming);
        let target = Target::new(&database.otlp(), Duration::from_secs(3_600)).expect("a URL");
        let pusher = Pusher::start(&target, origin(), families).expect("a thread");
        let counts = pusher.finish().expect("it ends");
        assert_eq!((counts.taken, counts.failed, counts.refused_points), (1, 0, 0));
        assert_eq!(has(&database, &all), ["tracer", "1.2.3", "node1:9478", "node1"]);
    }
}

/// A database would show the last value of a series for five minutes after it. A counter goes on from where it was.
#[test]
fn a_series_ends_when_its_value_is_not_known_any_more() {
    let dir = folder();
    let database = Prometheus::victoria(dir.path(), true);
    let find = |name: &str| {
        CATALOG
            .iter()
            .find(|definition| definition.name == name)
            .expect("it is there")
    };
    let (depth, total) = (find("tracer_queue_depth_packets"), find("tracer_events_lost"));
    let known = Arc::new(AtomicBool::new(true));
    let number = Arc::new(AtomicU64::new(10));
    let (own_known, own_number) = (Arc::clone(&known), Arc::clone(&number));
    let families = move || {
        let mut all = vec![family(total, own_number.load(Ordering::Relaxed))];
        if own_known.load(Ordering::Relaxed) {
            all.push(family(depth, 20));
        }
        // The labels of the counter do not change with its number.
        all[0].samples.truncate(1);
        all[0].samples[0].labels[0].1 = "ring".to_owned();
        all
    };
    let target = Target::new(&database.otlp(), Duration::from_millis(100)).expect("a URL");
    let pusher = Pusher::start(&target, origin(), families).expect("a thread");
    let shows = |what: &str, depth: Option<f64>, total: f64| {
        wait_for(what, || {
            database.flush();
            let numbers =
                ["sum(tracer_queue_depth_packets)", "tracer_events_lost_total"].map(|name| database.number(name));
            (numbers == [depth, Some(total)]).then_some(())
        });
    };
    shows("the values", Some(41.0), 10.0);
    known.store(false, Ordering::Relaxed);
    number.store(13, Ordering::Relaxed);
    shows("the end of a series", None, 13.0);
    known.store(true, Ordering::Relaxed);
    shows("the values again", Some(41.0), 13.0);
    let counts = pusher.finish().expect("it ends");
    assert_eq!((counts.failed, counts.refused_points), (0, 0));
}
