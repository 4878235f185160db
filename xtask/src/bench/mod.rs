//! The cost and the speed of recording: figures with targets, each measured within one run.
//!
//! A figure is a ratio of two times, or a rate, so that it means the same on a slow and on a fast machine; only reports and queries of
//! long recordings have targets in seconds, and the cost of a doorbell one in nanoseconds. Tests assert orders and counts; only this module asserts times.

mod answers;
mod attach;
mod backends;
mod burst;
mod doorbell;
mod ends;
mod frame;
mod hip;
mod mappings;
mod model;
mod process;
mod rate;
mod recording;
mod row;
mod workload;
mod writer;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::build::{self, Profile};
use crate::clients;
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};
use row::{Benchmark, Limit, Row};

/// Options of `bench`.
#[derive(clap::Args)]
pub struct Bench {
    /// Print JSON (stable schema): {"rows":[{"name","value","target","unit","ok"}]}.
    #[arg(long)]
    json: bool,
    /// Measure only figures whose name contains this; repeatable.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measure optimised programs; else those of a development build, as the tests run them.
    #[arg(long)]
    release: bool,
}

/// Every figure, in the order of the table.
const BENCHMARKS: [Benchmark; 40] = [
    Benchmark {
        name: "doorbell program/empty program",
        unit: "",
        limit: Limit::AtMost(1.5),
        measure: doorbell::against_empty,
    },
    Benchmark {
        name: "each further packet of a doorbell",
        unit: "ns",
        limit: Limit::AtMost(50.0),
        measure: doorbell::packet_ns,
    },
    Benchmark {
        name: "burst: record/empty program",
        unit: "",
        limit: Limit::AtMost(1.4),
        measure: burst::against_empty,
    },
    Benchmark {
        name: "burst: record --detail full/empty program",
        unit: "",
        limit: Limit::AtMost(2.0),
        measure: burst::full_against_empty,
    },
    Benchmark {
        name: "burst: record/bpftrace",
        unit: "",
        limit: Limit::AtMost(1.0 / 30.0),
        measure: burst::against_bpftrace,
    },
    Benchmark {
        name: "burst: record/perf record",
        unit: "",
        limit: Limit::AtMost(1.0 / 8.0),
        measure: burst::against_perf,
    },
    Benchmark {
        name: "recorder, time of processors for 1M dispatches",
        unit: "s",
        limit: Limit::AtMost(0.6),
        measure: recording::cpu_seconds,
    },
    Benchmark {
        name: "recorder, memory",
        unit: "MiB",
        limit: Limit::AtMost(128.0),
        measure: recording::memory,
    },
    Benchmark {
        name: "trace, bytes per dispatch of a burst",
        unit: "bytes",
        limit: Limit::AtMost(6.0),
        measure: recording::bytes_per_dispatch,
    },
    Benchmark {
        name: "trace, bytes per dispatch through HIP",
        unit: "bytes",
        limit: Limit::AtMost(25.0),
        measure: hip::bytes_per_dispatch,
    },
    Benchmark {
        name: "dispatches with a row each, two programs for 60 s",
        unit: "dispatches/s",
        limit: Limit::AtLeast(500_000.0),
        measure: rate::with_rows,
    },
    Benchmark {
        name: "recorder, share of a processor if idle",
        unit: "%",
        limit: Limit::AtMost(0.1),
        measure: recording::idle_percent,
    },
    Benchmark {
        name: "record -- /bin/true, beyond the command",
        unit: "ms",
        limit: Limit::AtMost(150.0),
        measure: recording::added_to_nothing,
    },
    Benchmark {
        name: "end of a recording, usual probes",
        unit: "ms",
        limit: Limit::AtMost(100.0),
        measure: ends::usual,
    },
    Benchmark {
        name: "end of a recording, every function",
        unit: "ms",
        limit: Limit::AtMost(300.0),
        measure: ends::every_function,
    },
    Benchmark {
        name: "attach, to the first doorbell",
        unit: "ms",
        limit: Limit::AtMost(200.0),
        measure: attach::first_event,
    },
    Benchmark {
        name: "detach",
        unit: "ms",
        limit: Limit::AtMost(300.0),
        measure: attach::detach,
    },
    Benchmark {
        name: "HIP launch: --api none/empty program",
        unit: "",
        limit: Limit::AtMost(1.3),
        measure: hip::none_against_empty,
    },
    Benchmark {
        name: "HIP launch: --api hip,stats beyond none",
        unit: "ns",
        limit: Limit::AtMost(1000.0),
        measure: hip::stats_ns,
    },
    Benchmark {
        name: "HIP launch: --api hip beyond none",
        unit: "ns",
        limit: Limit::AtMost(1600.0),
        measure: hip::hip_ns,
    },
    Benchmark {
        name: "llama-bench: tokens/s, record/alone",
        unit: "",
        limit: Limit::AtLeast(0.95),
        measure: model::recorded,
    },
    Benchmark {
        name: "llama-bench: tokens/s, --api hip/alone",
        unit: "",
        limit: Limit::AtLeast(0.9),
        measure: model::with_calls,
    },
    Benchmark {
        name: "top: frame with 1,000 queues",
        unit: "ms",
        limit: Limit::AtMost(5.0),
        measure: frame::milliseconds,
    },
    Benchmark {
        name: "tracer --version",
        unit: "ms",
        limit: Limit::AtMost(10.0),
        measure: recording::version,
    },
    Benchmark {
        name: "report of a small trace",
        unit: "ms",
        limit: Limit::AtMost(100.0),
        measure: recording::small_report,
    },
    Benchmark {
        name: "added per doorbell, eBPF",
        unit: "ns",
        limit: Limit::AtMost(2500.0),
        measure: backends::by_ebpf,
    },
    Benchmark {
        name: "added per doorbell, perf",
        unit: "ns",
        limit: Limit::AtMost(2500.0),
        measure: backends::by_perf,
    },
    Benchmark {
        name: "added per doorbell, ftrace",
        unit: "ns",
        limit: Limit::AtMost(2500.0),
        measure: backends::by_ftrace,
    },
    Benchmark {
        name: "mmap without pause, recorded/alone",
        unit: "",
        limit: Limit::AtMost(1.3),
        measure: mappings::unmapped_at_once,
    },
    Benchmark {
        name: "mappings kept, recorded/alone",
        unit: "",
        limit: Limit::AtMost(1.3),
        measure: mappings::kept,
    },
    Benchmark {
        name: "rows that the writer keeps up with",
        unit: "rows/s",
        limit: Limit::AtLeast(200_000.0),
        measure: writer::rate,
    },
    Benchmark {
        name: "end of a recording, per library",
        unit: "s",
        limit: Limit::AtMost(0.1),
        measure: ends::per_library,
    },
    Benchmark {
        name: "report of 10M dispatches",
        unit: "s",
        limit: Limit::AtMost(4.0),
        measure: answers::report_seconds,
    },
    Benchmark {
        name: "report of 10M dispatches, memory",
        unit: "MiB",
        limit: Limit::AtMost(1024.0),
        measure: answers::report_memory,
    },
    Benchmark {
        name: "query of 10M dispatches",
        unit: "s",
        limit: Limit::AtMost(4.0),
        measure: answers::query_seconds,
    },
    Benchmark {
        name: "query of 10M dispatches, memory",
        unit: "MiB",
        limit: Limit::AtMost(1024.0),
        measure: answers::query_memory,
    },
    Benchmark {
        name: "report of 100M dispatches",
        unit: "s",
        limit: Limit::AtMost(60.0),
        measure: answers::long_report_seconds,
    },
    Benchmark {
        name: "report of 100M dispatches, memory",
        unit: "MiB",
        limit: Limit::AtMost(2048.0),
        measure: answers::long_report_memory,
    },
    Benchmark {
        name: "query of 100M dispatches",
        unit: "s",
        limit: Limit::AtMost(60.0),
        measure: answers::long_query_seconds,
    },
    Benchmark {
        name: "query of 100M dispatches, memory",
        unit: "MiB",
        limit: Limit::AtMost(2048.0),
        measure: answers::long_query_memory,
    },
];

/// Builds everything, measures, and prints the table. The exit code is 1 if a figure misses its target.
pub fn run(project: &Project, options: &Bench) -> Result<ExitCode> {
    ensure!(cmd::is_root()?, "capturing needs root: run `cargo xtask bench` as root");
    let wanted: Vec<&Benchmark> = BENCHMARKS
        .iter()
        .filter(|one| is_wanted(one.name, &options.only))
        .collect();
    if wanted.is_empty() {
        let names = BENCHMARKS.map(|one| format!("\"{}\"", one.name)).join(", ");
        bail!("no figure has such a name; there are {names}");
    }
    setup::run(project, &Part::BENCH)?;
    if wanted.iter().any(|one| one.name.starts_with("llama-bench")) {
        clients::download_llama(project)?;
    }
    let profile = if options.release {
        Profile::Release
    } else {
        Profile::Dev
    };
    build::with_examples(project, profile)?;
    let place = Place {
        project,
        programs: project.target().join(profile.folder()),
        dir: project.target().join("bench"),
        doorbell: OnceCell::new(),
        burst: OnceCell::new(),
        recording: OnceCell::new(),
        launch: OnceCell::new(),
        attach: OnceCell::new(),
        model: OnceCell::new(),
    };
    let mut rows = Vec::new();
    for one in wanted {
        eprintln!("==> measuring {}", one.name);
        cmd::remove_all(&place.dir)?;
        std::fs::create_dir_all(&place.dir).with_context(|| format!("cannot create {}", place.dir.display()))?;
        let row = one
            .row(&place)
            .with_context(|| format!("cannot measure {}", one.name))?;
        // A later measurement may fail, or take long.
        eprint!("    {}", row.line());
        rows.push(row);
    }
    cmd::remove_all(&place.dir)?;
    if options.json {
        println!("{}", row::json(&rows)?);
    } else {
        print!("{}", row::table(&rows));
    }
    Ok(exit_code(&rows))
}

/// The runtime library in a folder of Debian's.
const RUNTIME: &str = "usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";

/// The folders of a measurement, and what was measured for several figures.
struct Place<'a> {
    project: &'a Project,
    /// The folder of the programs that are measured.
    programs: PathBuf,
    /// An empty folder for this measurement alone.
    dir: PathBuf,
    doorbell: OnceCell<doorbell::Cost>,
    burst: OnceCell<burst::Burst>,
    recording: OnceCell<recording::Recording>,
    launch: OnceCell<hip::Launch>,
    attach: OnceCell<attach::Attach>,
    model: OnceCell<model::Speed>,
}

impl Place<'_> {
    /// Returns the runtime library of a folder of Debian's, and the file offset of the probe that `record` puts into its doorbell
    /// function.
    fn doorbell_site(&self, root: &Path) -> Result<(PathBuf, u64)> {
        let library = root.join(RUNTIME);
        let library = std::fs::canonicalize(&library).with_context(|| format!("cannot find {}", library.display()))?;
        let mut doctor = Command::new(self.programs.join("tracer"));
        let output = doctor.args(["doctor", "--json", "--library"]).arg(&library).output();
        // Its exit code says that rings would not be captured here.
        let found: serde_json::Value = serde_json::from_slice(&output.context("cannot start tracer")?.stdout)?;
        let site = found["libraries"][0]["doorbells"][0]["file_offset"].as_u64();
        let site = site.with_context(|| format!("tracer finds no doorbell function in {}", library.display()))?;
        Ok((library, site))
    }

    /// Returns the measurement of the programs in a loop, which several figures are taken from.
    fn doorbell(&self) -> Result<doorbell::Cost> {
        once(&self.doorbell, || doorbell::measure(self))
    }

    /// Returns the measurement of bursts, which several figures are taken from.
    fn burst(&self) -> Result<burst::Burst> {
        once(&self.burst, || burst::measure(self))
    }

    /// Returns the measurement of HIP's launches, which several figures are taken from.
    fn launch(&self) -> Result<hip::Launch> {
        once(&self.launch, || hip::measure(self))
    }

    /// Returns the measurement of recordings of a running program, which several figures are taken from.
    fn attach(&self) -> Result<attach::Attach> {
        once(&self.attach, || attach::measure(self))
    }

    /// Returns the measurement of llama-bench, which several figures are taken from.
    fn model(&self) -> Result<model::Speed> {
        once(&self.model, || model::measure(self))
    }

    /// Returns the measurement of a long recording, which several figures are taken from.
    fn recording(&self) -> Result<recording::Recording> {
        once(&self.recording, || recording::measure(self))
    }
}

/// Returns what the cell contains, or measures it first.
fn once<T: Copy>(cell: &OnceCell<T>, measure: impl FnOnce() -> Result<T>) -> Result<T> {
    if let Some(&known) = cell.get() {
        return Ok(known);
    }
    let measured = measure()?;
    Ok(*cell.get_or_init(|| measured))
}

fn is_wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|part| name.contains(part.as_str()))
}

fn exit_code(rows: &[Row]) -> ExitCode {
    if rows.iter().all(|row| row.ok) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the median of several measurements: one disturbed measurement does not move it.
fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("nothing was measured")
}

/// Returns the number after `name=` in the output of a program.
fn number(printed: &str, name: &str) -> Result<f64> {
    let words = printed.split_whitespace();
    let found = words
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .next();
    let found = found.with_context(|| format!("no {name} in {printed:?}"))?;
    found.parse().with_context(|| format!("{name} is no number: {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_chosen_by_a_part_of_it() {
        let only = ["kept".to_owned(), "per library".to_owned()];
        let chosen: Vec<&str> = BENCHMARKS
            .iter()
            .map(|one| one.name)
            .filter(|name| is_wanted(name, &only))
            .collect();
        assert_eq!(
            chosen,
            ["mappings kept, recorded/alone", "end of a recording, per library"]
        );
        assert!(BENCHMARKS.iter().all(|one| is_wanted(one.name, &[])));
    }

    #[test]
    fn numbers_are_found_by_their_names() {
        assert_eq!(number("x\nmapped_ns=12 ended_ns=7\n", "ended_ns").unwrap(), 7.0);
        assert!(number("mapped_ns=12", "ns").is_err() && number("ns=a", "ns").is_err());
        assert_eq!(median(vec![3.0, 1.0, 2.0]).unwrap(), 2.0);
        assert!(median(Vec::new()).is_err());
    }
}
