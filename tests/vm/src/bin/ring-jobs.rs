//! Pushes jobs through a ring of the mock scheduler from this process, and prints what was counted as JSON.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::{Value, json};

/// The device of the module drm-sched-mock.
const DEVICE: &str = "/dev/drm-sched-mock";

/// Push jobs through rings of the mock scheduler, and print its counts before and after as JSON.
///
/// The scheduler's events show this process as the submitter; its id and the thread's are in the output.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The ring's name, or several: each gets the jobs, one command after the other.
    #[arg(required = true, value_name = "RING")]
    rings: Vec<String>,
    /// Number of jobs for each ring.
    #[arg(short = 'n', long, default_value_t = 1)]
    count: u32,
    /// Time that the hardware takes for a job, microseconds.
    #[arg(short, long, default_value_t = 0)]
    us: u32,
    /// Client id in the events (Linux 6.17 and later); amdgpu's codes for its own jobs are 2^64 - n.
    #[arg(short, long, default_value_t = 0)]
    client: u64,
    /// Let each job wait for the one before, of whatever ring.
    #[arg(long)]
    dependent: bool,
    /// The errno that each job ends with.
    #[arg(long, default_value_t = 0)]
    error: i32,
    /// Do not wait for the end of the jobs.
    #[arg(long)]
    no_wait: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ring-jobs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<Value> {
    let mut device = File::options()
        .read(true)
        .write(true)
        .open(DEVICE)
        .with_context(|| format!("cannot open {DEVICE} (is the module drm-sched-mock loaded?)"))?;
    let before = counts()?;
    for ring in &cli.rings {
        let command = format!(
            "ring={ring} count={} us={} client={} error={} dep={} wait={}",
            cli.count,
            cli.us,
            cli.client,
            cli.error,
            u8::from(cli.dependent),
            u8::from(!cli.no_wait),
        );
        device
            .write_all(command.as_bytes())
            .with_context(|| format!("{DEVICE} refuses `{command}`"))?;
    }
    Ok(json!({
        "pid": std::process::id(),
        "tid": rustix::thread::gettid().as_raw_nonzero().get(),
        "before": before["rings"],
        "after": counts()?["rings"],
    }))
}

/// Returns the counts of all rings since the module was loaded.
fn counts() -> Result<Value> {
    let mut text = String::new();
    let mut device = File::open(DEVICE).with_context(|| format!("cannot open {DEVICE}"))?;
    device
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {DEVICE}"))?;
    serde_json::from_str(&text).with_context(|| format!("{DEVICE} says something unknown: {text}"))
}
