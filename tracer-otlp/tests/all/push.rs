//! The pusher against collectors that are slow, hostile or gone.

use std::{
    net::TcpListener,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::{ExportMetricsPartialSuccess, ExportMetricsServiceResponse},
    metrics::v1::{metric::Data, number_data_point},
};
use prost::Message;
use tracer_core::metrics::{CATALOG, Family, Sample, Value};
use tracer_otlp::{Counts, Limits, Pusher};

use crate::collector::{Answer, Collector, Got, ok, origin, target};

/// What was logged. Each test is a process of its own under nextest; under cargo's own harness, the tests of this file take turns.
static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
static TURN: Mutex<()> = Mutex::new(());

/// Locks a value, also after a test failed.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target().starts_with("tracer_otlp") && record.level() == log::Level::Warn {
            lock(&LOG).push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Begins a test: returns its turn, and empties the log.
fn turn() -> MutexGuard<'static, ()> {
    let turn = lock(&TURN);
    let _ = log::set_logger(&Log);
    log::set_max_level(log::LevelFilter::Warn);
    lock(&LOG).clear();
    turn
}

fn warnings() -> Vec<String> {
    lock(&LOG).clone()
}

/// A counter whose number a test changes, with no other metric.
#[derive(Clone, Default)]
struct Number(Arc<AtomicU64>);

impl Number {
    fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    fn families(&self) -> impl FnMut() -> Vec<Family> + Send + 'static {
        let number = self.clone();
        move || {
            let definition = CATALOG.iter().find(|one| one.name == "tracer_dispatches_aggregated");
            vec![Family {
                definition: definition.expect("it is in the catalogue"),
                samples: vec![Sample {
                    labels: Vec::new(),
                    value: Value::Number(number.0.load(Ordering::Relaxed)),
                }],
            }]
        }
    }
}

/// Returns the number in a request.
fn number(got: &Got) -> i64 {
    let message = got.message();
    let Some(Data::Sum(sum)) = &message.resource_metrics[0].scope_metrics[0].metrics[0].data else {
        panic!("{message:?}");
    };
    match sum.data_points[0].value {
        Some(number_data_point::Value::AsInt(n)) => n,
        other => panic!("{other:?}"),
    }
}

fn wait_for(what: &str, mut found: impl FnMut() -> bool) {
    let began = Instant::now();
    while !found() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A job that is shorter than the interval.
#[test]
fn the_last_values_arrive_although_no_push_was_due() {
    let _turn = turn();
    let collector = Collector::start(|_| ok());
    let values = Number::default();
    let pusher = Pusher::start(&target(&collector.url, 3_600_000), origin(), values.families()).unwrap();
    values.set(41);
    let counts = pusher.finish().unwrap();
    let expected = Counts {
        taken: 1,
        failed: 0,
        refused_points: 0,
        has_last: true,
    };
    assert_eq!(counts, expected);
    assert_eq!(number(&collector.next()), 41);
    assert!(collector.requests.try_recv().is_err());
    assert_eq!(warnings(), [""; 0]);
}

/// The second push waits for the first, which takes until its limit, and the end takes the limit of the last push.
#[test]
fn a_collector_that_never_answers_delays_nothing() {
    let _turn = turn();
    let collector = Collector::start(|_| Answer::Never);
    let values = Number::default();
    let began = Instant::now();
    let impatient = target(&collector.url, 50).with_limits(Limits {
        push: Duration::from_millis(500),
        last: Duration::from_secs(2),
        ..Limits::default()
    });
    let pusher = Pusher::start(&impatient, origin(), values.families()).unwrap();
    assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
    for n in 1..=3 {
        values.set(n);
        collector.next();
    }
    let elapsed = began.elapsed();
    // Two pushes have failed, and the third is under way.
    assert!(elapsed >= Duration::from_millis(1_000), "{elapsed:?}");
    values.set(77);
    let ends = Instant::now();
    let counts = pusher.finish().unwrap();
    let took = ends.elapsed();
    let range = Duration::from_millis(1_900)..Duration::from_millis(3_000);
    assert!(range.contains(&took), "{took:?}");
    let expected = Counts {
        taken: 0,
        failed: 3,
        refused_points: 0,
        has_last: false,
    };
    assert_eq!(counts, expected);
    assert_eq!(number(&collector.next()), 77);
    assert_eq!(
        warnings(),
        [format!(
            "{}/v1/metrics does not take the metrics: no answer within 0.5 s; tracer goes on trying",
            collector.url
        )]
    );
}

/// An answer that would clear a terminal, start a command of a CI system, or fill memory.
#[test]
fn hostile_bytes_are_shown_as_text() {
    let _turn = turn();
    let mut body = b"\x1b[2J\n::error::broken \xff\xe2\x80\xae".to_vec();
    body.resize(1_000_000, b'x');
    let collector = Collector::start(move |_| Answer::Body("500 No", "text/plain", body.clone()));
    let values = Number::default();
    let pusher = Pusher::start(&target(&collector.url, 20), origin(), values.families()).unwrap();
    for _ in 0..3 {
        collector.next();
    }
    let counts = pusher.finish().unwrap();
    assert!(
        counts.taken == 0 && counts.failed >= 3 && !counts.has_last,
        "{counts:?}"
    );
    let warnings = warnings();
    let [only] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    let start = format!(
        "{}/v1/metrics does not take the metrics: status 500: \\u{{1b}}[2J\\n::error::broken \\xff\\u{{202e}}x",
        collector.url
    );
    assert!(only.starts_with(&start), "{only}");
    assert!(only.ends_with("xxx...; tracer goes on trying"), "{only}");
    assert!(only.len() < 400, "{}", only.len());
}

/// An endless answer is read to a limit, by bytes and by time.
#[test]
fn an_answer_without_end_has_one() {
    let _turn = turn();
    let endless = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nno way\r\n".to_vec();
    let mut head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    head.resize(1_000_000, b'y');
    for (bytes, why) in [(endless, "status 404: no way"), (head, "message head is too large")] {
        lock(&LOG).clear();
        let collector = Collector::start(move |_| Answer::Bytes(bytes.clone()));
        let pusher = Pusher::start(
            &target(&collector.url, 3_600_000),
            origin(),
            Number::default().families(),
        )
        .unwrap();
        let counts = pusher.finish().unwrap();
        assert_eq!((counts.taken, counts.failed), (0, 1), "{why}");
        let warnings = warnings();
        assert!(warnings.len() == 1 && warnings[0].contains(why), "{warnings:?}");
    }
}

#[test]
fn each_change_of_state_is_logged_once() {
    let _turn = turn();
    let refused = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too\told".to_owned(),
        }),
    };
    let refused = Answer::Body("200 OK", "application/x-protobuf", refused.encode_to_vec());
    // google.rpc.Status with the code 16 and a message.
    let status = b"\x08\x10\x12\x08no token".to_vec();
    let denied = Answer::Body("401 Unauthorized", "application/x-protobuf", status);
    let script = [
        ok(),
        ok(),
        Answer::Close,
        Answer::Close,
        ok(),
        denied.clone(),
        denied,
        refused.clone(),
        refused,
    ];
    let length = script.len();
    let collector = Collector::start(move |n| script.get(n).cloned().unwrap_or_else(ok));
    let pusher = Pusher::start(&target(&collector.url, 20), origin(), Number::default().families()).unwrap();
    for _ in 0..=length {
        collector.next();
    }
    let counts = pusher.finish().unwrap();
    // The push that is under way at the end may be lost, and is not counted.
    assert!(counts.taken >= 6 && counts.has_last, "{counts:?} {:#?}", warnings());
    assert_eq!((counts.failed, counts.refused_points), (4, 6));
    let warnings = warnings();
    let url = format!("{}/v1/metrics", collector.url);
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    let closed = format!("{url} does not take the metrics: client error (");
    assert!(warnings[0].starts_with(&closed), "{}", warnings[0]);
    assert_eq!(
        warnings[1..],
        [
            format!("{url} takes the metrics again"),
            format!("{url} does not take the metrics: status 401: no token; tracer goes on trying"),
            format!("{url} refuses 3 points of the metrics: too\\told"),
            format!("{url} takes the metrics again"),
        ]
    );
}

#[test]
fn nobody_listens() {
    let _turn = turn();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let pusher = Pusher::start(
        &target(&format!("http://{free}"), 20),
        origin(),
        Number::default().families(),
    );
    let pusher = pusher.unwrap();
    wait_for("a warning", || !warnings().is_empty());
    let began = Instant::now();
    let counts = pusher.finish().unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(counts.failed >= 2 && counts.taken == 0, "{counts:?}");
    let warnings = warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("Connection refused"),
        "{warnings:?}"
    );
}

/// A pusher that is dropped, because capture failed, pushes nothing more and waits for nothing.
#[test]
fn dropping_a_pusher_takes_no_time() {
    let _turn = turn();
    let collector = Collector::start(|_| Answer::Never);
    let pusher = Pusher::start(&target(&collector.url, 20), origin(), Number::default().families()).unwrap();
    collector.next();
    let began = Instant::now();
    drop(pusher);
    assert!(began.elapsed() < Duration::from_millis(100));
    let next = collector.requests.recv_timeout(Duration::from_millis(700));
    assert!(next.is_err(), "{next:?}");
}

/// An overloaded collector is left alone for as long as it demands, but gets the last values.
#[test]
fn a_demanded_pause_is_kept() {
    let _turn = turn();
    let busy = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 600\r\nContent-Length: 0\r\n\r\n".to_vec();
    let collector = Collector::start(move |_| Answer::Bytes(busy.clone()));
    let pusher = Pusher::start(&target(&collector.url, 20), origin(), Number::default().families()).unwrap();
    collector.next();
    let next = collector.requests.recv_timeout(Duration::from_millis(500));
    assert!(next.is_err(), "{next:?}");
    let counts = pusher.finish().unwrap();
    assert_eq!((counts.taken, counts.failed), (0, 2));
    collector.next();
}
