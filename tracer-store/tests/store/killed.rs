//! Recorders that are killed at any moment.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use tracer_core::tables::{Fact, Table};
use tracer_store::manifest::ClockSnapshot;
use tracer_store::{State, Trace, TraceWriter};

use crate::support::{dispatch, index, manifest, queue};

const DIR: &str = "TRACER_STORE_TEST_DIR";
const ROWS: &str = "TRACER_STORE_TEST_ROWS";

/// The time that a killed recorder may lose. This is the promise of the format.
const PROMISED: Duration = Duration::from_secs(1);

/// The additional time on a machine that is busy with other tests.
const SLACK: Duration = Duration::from_secs(2);

/// The recorder that the tests kill: this program again. It records forever, or records some rows in many parts and then ends.
#[test]
#[ignore = "run by the other tests, as a program of its own"]
fn recorder() {
    let Some(dir) = env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let mut writer = TraceWriter::create(&dir, manifest(), false).unwrap();
    println!("\nrecording");
    match env::var(ROWS).ok().map(|rows| rows.parse::<u64>().unwrap()) {
        None => {
            for step in 0.. {
                record_now(&mut writer, step);
            }
        }
        Some(rows) => {
            let mut now = Instant::now();
            for index in 0..rows {
                writer.push(&dispatch(index, index));
                now += Duration::from_secs(1);
                writer.tick(now).unwrap();
            }
            println!("finishing");
            writer.finish(|manifest| manifest.complete = true).unwrap();
            println!("finished");
        }
    }
}

fn record_now(writer: &mut TraceWriter, step: u64) {
    let now = ClockSnapshot::now().monotonic_ns;
    (0..100).for_each(|row| writer.push(&dispatch(step * 100 + row, now)));
    writer.push(&Fact::Queue(queue(0, 1, step)));
    writer.tick(Instant::now()).unwrap();
    thread::sleep(Duration::from_millis(20));
}

/// A running [`recorder`], and its output.
struct Recorder {
    process: Child,
    output: BufReader<ChildStdout>,
}

/// Starts a recorder and waits until it prints `word`.
fn start(dir: &Path, rows: Option<u64>, word: &str) -> Recorder {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "killed::recorder", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped());
    command.envs(rows.map(|rows| (ROWS, rows.to_string())));
    let mut process = command.spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut lines = output.by_ref().lines().map_while(Result::ok);
    assert!(lines.any(|line| line == word), "the recorder ended before {word}");
    Recorder { process, output }
}

fn kill(mut recorder: Recorder) {
    recorder.process.kill().unwrap();
    recorder.process.wait().unwrap();
    drop(recorder.output);
}

#[test]
fn at_most_the_last_second_is_missing() {
    for milliseconds in [0, 150, 450, 900, 1300, 2100] {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("app.trace");
        let begun = ClockSnapshot::now().monotonic_ns;
        let recorder = start(&dir, None, "recording");
        thread::sleep(Duration::from_millis(milliseconds));
        let killed = ClockSnapshot::now().monotonic_ns;
        kill(recorder);

        let trace = Trace::open(&dir).unwrap();
        assert_eq!(trace.state(), State::Interrupted);
        assert_eq!(trace.damage().unwrap(), []);
        let facts: Vec<_> = trace.facts(&[Table::Dispatches]).unwrap().map(Result::unwrap).collect();
        assert!(
            facts.iter().map(index).eq(0..facts.len() as u64),
            "a gap or a row twice"
        );
        let last = match facts.last() {
            Some(Fact::Dispatch(dispatch)) => dispatch.time_ns,
            _ => begun,
        };
        let missing = Duration::from_nanos(killed.saturating_sub(last));
        println!(
            "killed after {milliseconds} ms: {} rows, the last {missing:?} missing",
            facts.len()
        );
        assert!(missing < PROMISED + SLACK, "{missing:?} are missing");
        let queues = trace.facts(&[Table::Queues]).unwrap().count();
        assert!(queues == 1 || facts.is_empty(), "{queues} rows of one queue");
    }
}

#[test]
fn no_row_is_missing_or_twice_whenever_a_recorder_is_killed_in_its_end() {
    const PARTS: u64 = 300;
    let mut interrupted = 0;
    for step in 0..12 {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("app.trace");
        let recorder = start(&dir, Some(PARTS), "finishing");
        thread::sleep(Duration::from_millis(step * step * 2));
        kill(recorder);

        let trace = Trace::open(&dir).unwrap();
        let facts: Vec<_> = trace.facts(&[Table::Dispatches]).unwrap().map(Result::unwrap).collect();
        assert!(
            facts.iter().map(index).eq(0..facts.len() as u64),
            "a gap or a row twice"
        );
        let scanned = trace.frame(Table::Dispatches).unwrap().frame;
        assert_eq!(scanned.height(), facts.len());
        interrupted += u64::from(trace.state() == State::Interrupted);
        if trace.state() == State::Complete {
            assert_eq!(facts.len() as u64, PARTS);
        }
    }
    println!("{interrupted} of 12 were killed in time");
}
