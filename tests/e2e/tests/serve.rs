//! `tracer serve`: a scraper reads the truth.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use serde_json::{Value, json};
use tracer_e2e::{
    place,
    running::{Program, Recorder, signal, wait_for},
    scenario::{Scenario, folder},
    truth::Truth,
};

pub fn serve(words: &[&str]) -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command.args(["-v", "serve", "--listen", "127.0.0.1:0"]).args(words);
    command
}

/// Returns the address that it reports.
pub fn address(server: &Recorder) -> String {
    let line = server.hears("serving    ");
    let url = line.split_whitespace().nth(1).expect("an address");
    url.strip_prefix("http://").expect("no TLS").to_owned()
}

/// Returns status and body of a response.
pub fn get(address: &str, path: &str, more: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// Returns every series with its number.
pub fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, number) = line.rsplit_once(' ').expect("a series and its number");
        (name.to_owned(), number.parse().expect("a number"))
    });
    parsed.collect()
}

/// Returns the sum of the series of a metric that have these labels.
pub fn sum(series: &BTreeMap<String, f64>, metric: &str, labels: &[&str]) -> u64 {
    let of = |name: &str| {
        let (own, rest) = name.split_once('{').unwrap_or((name, ""));
        own == metric && labels.iter().all(|label| rest.contains(label))
    };
    series.iter().filter(|(name, _)| of(name)).map(|(_, n)| *n as u64).sum()
}

#[test]
fn what_is_scraped_is_the_truth() {
    let dir = folder();
    let scenario = Scenario::hip("trixie", "gfx1100", &["mixed"]);
    let mut command = serve(&["--stay", "--detail", "full", "--"]);
    command.args(scenario.simulated(dir.path()));
    let server = Recorder::of(command, dir.path());
    let address = address(&server);
    assert_eq!(get(&address, "/healthz", "").1, "ok\n");
    server.hears("ended      ");
    let (status, text) = get(&address, "/metrics", "");
    assert_eq!(status, 200);
    let series = series(&text);
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    assert!(truth.dispatches() > 0);
    assert_eq!(
        sum(&series, "tracer_dispatches_total", &["path=\"doorbell\""]),
        truth.dispatches()
    );
    assert_eq!(sum(&series, "tracer_dispatches_total", &[]), truth.dispatches());
    for queue in &truth.queues {
        let labels = [
            format!("kfd_process_id=\"{}\"", queue.pid),
            format!("queue_id=\"{}\"", queue.queue_id),
        ];
        let labels = labels.each_ref().map(String::as_str);
        // The device polls doorbells: of several stores in a row it may see only the last.
        let metric = if queue.is_aql() {
            "tracer_doorbells_total"
        } else {
            "tracer_copies_total"
        };
        assert!(
            sum(&series, metric, &labels) >= queue.doorbells.len() as u64,
            "{queue:?}"
        );
        if queue.is_aql() {
            let of = |kernels: bool| {
                let packets = queue.packets.iter();
                packets
                    .filter(|packet| (packet.kind == "kernel_dispatch") == kernels)
                    .count() as u64
            };
            assert_eq!(sum(&series, "tracer_dispatches_total", &labels), of(true), "{queue:?}");
            assert_eq!(
                sum(&series, "tracer_other_packets_total", &labels),
                of(false),
                "{queue:?}"
            );
        }
    }
    let mut ioctls: BTreeMap<&str, u64> = BTreeMap::new();
    for ioctl in truth.ioctls.iter().filter(|ioctl| ioctl.dev == "kfd") {
        *ioctls.entry(ioctl.name.as_deref().expect("a known one")).or_default() += 1;
    }
    assert!(!ioctls.is_empty());
    for (name, count) in ioctls {
        let label = format!("ioctl=\"{name}\"");
        assert_eq!(
            sum(&series, "tracer_kfd_ioctl_seconds_count", &[&label]),
            count,
            "{name}"
        );
    }
    assert_eq!(sum(&series, "tracer_events_lost_total", &[]), 0);
    assert_eq!(sum(&series, "tracer_watched", &["what=\"doorbells\""]), 1);
    assert_eq!(sum(&series, "tracer_build_info", &["simulated=\"true\""]), 1);
    let (_, live) = get(&address, "/api/live", "");
    let live: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(live["totals"]["dispatches"], truth.dispatches());
    assert!(live["simulated"].is_string(), "{}", live["simulated"]);
    // The capture has ended, and a simulated GPU has no driver with rings: their number is unknown here as in a report.
    assert_eq!(live["complete"], true);
    let paths = json!({ "doorbell": truth.dispatches(), "ring": null, "thunk": 0, "unseen": 0 });
    assert_eq!(live["totals"]["by_path"], paths);
    assert_eq!(sum(&series, "tracer_watched", &["what=\"kernel_rings\""]), 0);
    assert!(!text.contains("path=\"ring\""), "{text}");
    // The capture is over, and the server says so.
    assert_eq!(get(&address, "/healthz", "").0, 503);
    signal(server.pid(), libc::SIGINT);
    let _ = server.wait().expect_success();
}

#[test]
fn counters_of_a_program_that_runs_grow() {
    let program = Program::steady("sid", "gfx942", &[]);
    let pid = program.pid().to_string();
    program.goes_on(100);
    let server = Recorder::of(serve(&["-p", &pid]), program.dir.path());
    let address = address(&server);
    let count = || {
        let (_, text) = get(&address, "/metrics", "");
        sum(&series(&text), "tracer_dispatches_total", &[])
    };
    let first = wait_for("dispatches", || Some(count()).filter(|&count| count > 0));
    program.goes_on(500);
    wait_for("more dispatches", || (count() >= first + 500).then_some(()));
    program.stop();
    // All processes that it watched have exited.
    let _ = server.wait().expect_success();
    let mut program = program;
    assert!(program.wait().success());
}

#[test]
fn the_exit_code_is_the_commands() {
    let mut command = serve(&["--", "sh", "-c", "exit 7"]);
    assert_eq!(command.output().expect("tracer runs").status.code(), Some(7));
    assert_eq!(
        serve(&["--", "/no/such"]).output().expect("tracer runs").status.code(),
        Some(127)
    );
}

#[test]
fn an_open_address_needs_a_secret() {
    let tracer = || Command::new(place::programs().join("tracer"));
    let output = tracer()
        .args(["serve", "--listen", "0.0.0.0:0", "--", "true"])
        .output()
        .expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(said.contains("--token-file"), "{said}");
    let output = serve(&[]).output().expect("tracer runs");
    assert_eq!(output.status.code(), Some(2));
}
