//! Exhausted resources: connections and file descriptors.

use tracer_core::family::Family;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracer_e2e::{
    place,
    running::{Program, Recorder, signal, wait_for},
    scenario::{Scenario, folder},
    truth::Truth,
    verdict,
};
use tracer_faults::{Attack, tries};
use tracer_store::Trace;

/// Returns `tracer` with this many file descriptors. It cannot raise this without raising a limit that the administrator set.
fn limited(descriptors: u64, words: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={descriptors}:{descriptors}"));
    command.arg(place::programs().join("tracer")).args(words);
    command
}

/// Returns the address that the server reports.
fn address(server: &Recorder) -> String {
    let line = server.hears("serving    ");
    let url = line.split_whitespace().nth(1).expect("an address");
    url.strip_prefix("http://").expect("no TLS").to_owned()
}

/// Returns the metrics, once the server answers.
fn metrics(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(answer)
}

/// Returns the sum of the series that have all these parts.
fn sum(text: &str, parts: &[&str]) -> u64 {
    let lines = text.lines().filter(|line| parts.iter().all(|part| line.contains(part)));
    let numbers = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    numbers.sum::<f64>() as u64
}

/// 1096 idle connections once exhausted the descriptors of `serve -a`: it saw 0 of 500 dispatches, and reported no loss.
#[test]
fn idle_connections_take_nothing_from_capture() {
    let own = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: own.maximum,
        ..own
    };
    setrlimit(Resource::Nofile, all).expect("it may be raised so far");
    let mut attack = Attack::new("1096 idle connections to `serve -a`, limit 1024");
    for _ in 0..tries(1, 10) {
        let words = ["-v", "serve", "-a", "--listen", "127.0.0.1:0"];
        let server = Recorder::of(limited(1024, &words), Path::new(""));
        let address = address(&server);
        let idle: Vec<TcpStream> = (0..1096).filter_map(|_| TcpStream::connect(&address).ok()).collect();
        let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "500"]);
        let dir = folder();
        let words = scenario.simulated(dir.path());
        let mut program = Program::start(dir, &words);
        assert!(program.wait().success());
        let truth = Truth::read(&program.dir.path().join("truth.jsonl"));
        let pid = truth.queues.first().expect("a queue").pid;
        let label = format!("kfd_process_id=\"{pid}\"");
        let seen = || metrics(&address).map(|text| sum(&text, &["tracer_dispatches_total{", &label]));
        wait_for("an answer", seen);
        let began = std::time::Instant::now();
        while seen() != Some(truth.dispatches()) && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let descriptors = fs::read_dir(format!("/proc/{}/fd", server.pid()))
            .expect("it runs")
            .count();
        let lost = metrics(&address).map(|text| sum(&text, &["tracer_events_lost_total{"]));
        let found = (seen(), lost, descriptors < 1024 - 32);
        attack.count(if found == (Some(truth.dispatches()), Some(0), true) {
            Ok(())
        } else {
            Err(format!("{found:?}, {descriptors} descriptors"))
        });
        drop(idle);
        signal(server.pid(), libc::SIGINT);
        let _ = server.wait();
    }
    attack.finish();
}

/// Copies a runtime. Each copy is a separate library.
fn copies(dir: &Path, count: usize) -> Vec<PathBuf> {
    let library = place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let copy = |number| {
        let to = dir.join(format!("libhsa-runtime64.{number}.so"));
        fs::copy(&library, &to).expect("it can be copied");
        to
    };
    (0..count).map(copy).collect()
}

/// With 160 descriptors and nine libraries, HTTP once stopped answering, and the missing probes were not reported.
#[test]
fn probes_without_descriptors_are_a_warning_and_a_loss() {
    let mut attack = Attack::new("nine libraries, `serve` with 160 descriptors");
    for _ in 0..tries(1, 10) {
        let dir = folder();
        let words = ["-v", "serve", "--stay", "--as-root", "--listen", "127.0.0.1:0", "--"];
        let mut command = limited(160, &words);
        command
            .arg(place::programs().join("loader"))
            .arg("--kfd")
            .args(copies(dir.path(), 9));
        let server = Recorder::of(command, dir.path());
        let address = address(&server);
        server.hears("ended      ");
        let text = wait_for("an answer", || metrics(&address));
        let lost = sum(&text, &["tracer_events_lost_total{source=\"unattached-doorbell\""]);
        let watched = sum(&text, &["tracer_watched{what=\"doorbells\"}"]);
        signal(server.pid(), libc::SIGINT);
        let ended = server.wait();
        let warned = ended.said().contains("probes are missing");
        attack.count(if (lost > 0, watched, warned) == (true, 0, true) {
            Ok(())
        } else {
            Err(format!(
                "lost {lost}, watched {watched}, warned {warned}:\n{}",
                ended.said()
            ))
        });
    }
    attack.finish();
}

/// Without a descriptor for its doorbell probes, `verify` once said fail: "52 packets, and no doorbell was seen".
#[test]
fn verify_does_not_fail_for_want_of_probes() {
    let mut attack = Attack::new("`record` with ever more descriptors until all probes find one, then `verify`");
    // Doorbell probes are attached first. They are missing only at limits just above those at which no recording starts at all.
    let (mut partial, mut whole) = (0, false);
    for descriptors in 100..=400 {
        if whole {
            break;
        }
        let dir = folder();
        let trace = dir.path().join("t.trace");
        let mut command = limited(descriptors, &["record", "--as-root", "-o"]);
        command.arg(&trace).arg("--");
        let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "50"]);
        let output = command
            .args(scenario.simulated(dir.path()))
            .output()
            .expect("prlimit runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(125) {
            // tracer reports it, and claims nothing.
            attack.count(Ok(()));
            continue;
        }
        let manifest = Trace::open(&trace).unwrap_or_else(|error| panic!("{error}: {said}"));
        let manifest = manifest.manifest().clone();
        let missing = manifest.probes.iter().filter(|probe| !probe.attached);
        partial += usize::from(missing.clone().count() > 0);
        let doorbells = missing.filter(|probe| probe.family == Family::Doorbell).count() as u64;
        let (code, judged) = verdict::verdict("doorbell-bypass", &trace);
        let counted = manifest.losses.get("unattached-doorbell").copied().unwrap_or(0) == doorbells
            && (doorbells == 0 || !manifest.warnings.is_empty());
        let right = if doorbells > 0 {
            code == Some(3) && counted
        } else {
            let has = |family: Family| manifest.probes.iter().any(|probe| probe.family == family);
            whole = has(Family::Doorbell) && manifest.probes.iter().all(|probe| probe.attached);
            code != Some(1) && counted
        };
        attack.count(if right {
            Ok(())
        } else {
            Err(format!(
                "{descriptors} descriptors, {doorbells} doorbell probes missing, verify ended with {code:?}, {:?}, losses {:?}",
                verdict::amiss(&judged),
                manifest.losses
            ))
        });
    }
    assert!(
        partial > 0 && whole,
        "{partial} recordings lacked probes, one was whole: {whole}"
    );
    attack.finish();
}
