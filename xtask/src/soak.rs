//! Runs `tracer serve` for minutes while processes and queues come and go. Its memory, its descriptors and its number of series must
//! not grow for ever.

mod system;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::build::{self, Profile};
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::simulated;
use system::Ran;

/// Interval between two samples.
const LOOK: Duration = Duration::from_secs(15);
/// Maximum ratio of the average in the last quarter of the time to the average in the third quarter. Memory that is freed late is
/// not a leak, and a value that grows for ever grows by a third from one quarter to the other.
const GROWTH: f64 = 1.1;
/// A script that runs one process after the other until the time is up, each with short-lived queues.
const CHURN: &str = r#"end=$(($(date +%s) + $0)); while [ "$(date +%s)" -lt "$end" ]; do "$@" churn --queues 20; done"#;

/// Options of `soak`.
#[derive(clap::Args)]
pub struct Soak {
    /// How long.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Record the whole machine, while programs with copies of the runtime and processes without a GPU come and go.
    #[arg(long)]
    system: bool,
    /// How many copies of the runtime, one after the other.
    #[arg(long, default_value_t = 500, requires = "system")]
    copies: u64,
    /// How many processes without a GPU, if there is time for them.
    #[arg(long, default_value_t = 1_000_000, requires = "system")]
    processes: u64,
}

/// The values of one sample.
struct Look {
    seconds: u64,
    rss_kib: u64,
    descriptors: u64,
    series: u64,
    bytes: u64,
    dispatches: u64,
    lost: u64,
}

/// Builds everything, runs the server, prints each sample as a row of a table, and judges the samples.
pub fn run(project: &Project, options: &Soak) -> Result<()> {
    ensure!(cmd::is_root()?, "capturing needs root: run `cargo xtask soak` as root");
    setup::run(project, &Part::DEMO)?;
    build::run(project, Profile::Dev)?;
    let seconds = options.minutes * 60;
    let mut server = if options.system {
        serve_all(project)
    } else {
        serve(project, seconds)
    }
    .spawn()
    .context("starting tracer")?;
    let (ran, id) = (Ran::default(), server.id().to_string());
    let looks = thread::scope(|scope| {
        let load = options.system.then(|| {
            scope.spawn(|| {
                // The server begins to watch before the load does.
                thread::sleep(LOOK);
                let limits = (options.copies, options.processes);
                let done = system::load(project, &ran, limits, Duration::from_secs(seconds));
                // This interrupts a server that has not been waited for.
                let _ = Command::new("kill").args(["-INT", &id]).status();
                done
            })
        });
        let looks = watch(&mut server);
        if looks.is_err() {
            let _ = server.kill();
        }
        ran.stop();
        load.map_or(Ok(()), |load| load.join().map_err(|_| anyhow!("the load panicked"))?)?;
        looks
    });
    let status = server.wait()?;
    let looks = looks?;
    ensure!(status.success(), "tracer serve ended with {status}");
    if options.system {
        let rate = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64 / seconds as f64;
        let (copies, processes) = (&ran.copies, &ran.processes);
        println!(
            "{} copies of the runtime, {:.1} per second",
            copies.load(Ordering::Relaxed),
            rate(copies)
        );
        println!(
            "{} other processes, {:.0} per second",
            processes.load(Ordering::Relaxed),
            rate(processes)
        );
    }
    judge(&looks)
}

/// Returns the server that watches the whole machine.
fn serve_all(project: &Project) -> Command {
    let mut command = Command::new(project.bin_dir().join("tracer"));
    command.args(["serve", "--all", "--listen", "127.0.0.1:0"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Returns the server with programs that run one after the other.
fn serve(project: &Project, seconds: u64) -> Command {
    let mut command = Command::new(project.bin_dir().join("tracer"));
    command.args(["serve", "--as-root", "--listen", "127.0.0.1:0", "--"]);
    command.args(["/bin/sh", "-ec", CHURN, &seconds.to_string()]);
    let program = simulated::dispatcher(project, &project.bin_dir());
    command.arg(program.get_program()).args(program.get_args());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn watch(server: &mut Child) -> Result<Vec<Look>> {
    let mut said = BufReader::new(server.stderr.take().context("its words")?).lines();
    let address = loop {
        let line = said.next().context("tracer serve ended before it answered")??;
        if let Some(rest) = line.strip_prefix("serving    http://") {
            break rest.split(' ').next().unwrap_or_default().to_owned();
        }
        eprintln!("{line}");
    };
    // A full pipe would stop the server.
    let rest = std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
    println!(
        "| s | RSS, KiB | descriptors | series | bytes of /metrics | dispatches | lost |\n|---|---|---|---|---|---|---|"
    );
    let began = Instant::now();
    let mut looks = Vec::new();
    loop {
        std::thread::sleep(LOOK);
        if server.try_wait()?.is_some() {
            break;
        }
        // The server may exit in between.
        let Ok(look) = look(server.id(), &address, began) else {
            break;
        };
        let Look {
            seconds,
            rss_kib,
            descriptors,
            series,
            bytes,
            dispatches,
            lost,
        } = look;
        println!("| {seconds} | {rss_kib} | {descriptors} | {series} | {bytes} | {dispatches} | {lost} |");
        looks.push(look);
    }
    let _ = rest.join();
    Ok(looks)
}

fn look(pid: u32, address: &str, began: Instant) -> Result<Look> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let rss = rss
        .and_then(|rss| rss.split_whitespace().next())
        .context("its memory")?;
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, text) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let sum = |metric: &str| -> u64 {
        let of = series.iter().filter(|line| line.starts_with(metric));
        of.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .map(|n| n as u64)
            .sum()
    };
    Ok(Look {
        seconds: began.elapsed().as_secs(),
        rss_kib: rss.parse()?,
        descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
        series: series.len() as u64,
        bytes: text.len() as u64,
        dispatches: sum("tracer_dispatches_total"),
        lost: sum("tracer_events_lost_total"),
    })
}

fn judge(looks: &[Look]) -> Result<()> {
    let quarter = looks.len() / 4;
    ensure!(quarter > 0, "too short to judge: {} samples", looks.len());
    let mean = |looks: &[Look], of: fn(&Look) -> u64| looks.iter().map(of).sum::<u64>() as f64 / looks.len() as f64;
    let (third, fourth) = (
        &looks[looks.len() - 2 * quarter..looks.len() - quarter],
        &looks[looks.len() - quarter..],
    );
    for (what, of) in [
        ("memory", (|look| look.rss_kib) as fn(&Look) -> u64),
        ("descriptors", |look| look.descriptors),
        ("series", |look| look.series),
    ] {
        let growth = mean(fourth, of) / mean(third, of);
        println!("{what}: the last quarter has {growth:.3} times what the third had");
        if growth > GROWTH {
            bail!("{what} grows: {growth:.3} times from one quarter to the next");
        }
    }
    let counted = looks.last().map_or(0, |look| look.dispatches);
    ensure!(counted > 0, "nothing was counted");
    Ok(())
}
