//! A simulated AMD GPU: /dev/kfd and DRM render nodes over FUSE, for AMD's unmodified runtime.
//!
//! README.md says what it simulates and what it does not.

mod aql;
mod asic;
mod blit;
mod card;
mod client;
mod clock;
mod descriptors;
mod dmabuf;
mod effects;
mod events;
mod fs;
mod hip_blit;
mod ioctl;
mod kernels;
mod loaded;
mod machine;
mod memory;
mod namespace;
mod options;
mod pm4;
mod process;
mod queue;
mod sdma;
mod signal;
mod topology;
mod truth;
mod vm;
mod waits;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use crate::kernels::Kernels;
use crate::machine::Machine;
use crate::options::Options;
use crate::truth::Truth;

/// The interval at which waits are checked for timeouts and signals, and processes for their exit.
const REAP_INTERVAL: Duration = Duration::from_millis(10);

/// The exit code if the simulator itself fails. It is the same as env(1)'s.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let options = Options::parse();
    let level = ["warn", "debug", "trace"][usize::from(options.verbose.min(2))];
    env_logger::Builder::new()
        .parse_filters(&format!("warn,kfd_sim={level}"))
        .init();
    match simulate(&options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("kfd-sim: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

fn simulate(options: &Options) -> Result<u8> {
    let mut kernels = Kernels::default();
    for folder in &options.kernels {
        kernels.add_folder(folder)?;
    }
    log::debug!("{} kernels with an effect", kernels.len());
    let root = options
        .root
        .as_ref()
        .map(|root| root.canonicalize())
        .transpose()
        .context("the root")?;
    namespace::enter()?;
    let truth = Arc::new(Truth::start(options.truth.as_deref())?);
    let gpus = usize::from(options.gpus);
    truth.line(|| {
        json!({
            "ev": "start", "asic": options.asic.name, "gpus": gpus, "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(), "time_ns": clock::monotonic_ns(),
        })
    });
    let machine = Arc::new(Machine::new(
        (options.asic, gpus),
        kernels,
        Duration::from_micros(options.dispatch_us),
        options.fail.clone(),
        Arc::clone(&truth),
        namespace::sysfs_proc(),
        options.vram,
    )?);
    namespace::make_sysfs(options.asic, gpus)?;
    let folder = namespace::make_devices(&machine, !options.no_passthrough)?;
    if let Some(root) = &root {
        let mut shared = options.bind.clone();
        if let Ok(here) = std::env::current_dir()
            && here.parent().is_some()
        {
            shared.push((here.clone(), here));
        }
        namespace::make_root(root, &shared)?;
    }
    let reaper = Arc::clone(&machine);
    std::thread::Builder::new().name("reaper".into()).spawn(move || {
        loop {
            std::thread::sleep(REAP_INTERVAL);
            reaper.reap();
        }
    })?;
    let code = client::run(&options.command, root.as_deref(), |channel| {
        channel.serve(&machine, folder)
    });
    for process in machine.processes() {
        process.tear_down(&machine);
    }
    truth.finish();
    code
}
