//! The load of `soak --system`: programs with copies of the runtime, each a file of its own, and processes that use no GPU.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::project::Project;
use crate::setup::Rootfs;

/// The runtime in a root file system.
const RUNTIME: &str = "usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";

/// What ran.
#[derive(Debug, Default)]
pub struct Ran {
    /// Programs, each with another copy of the runtime.
    pub copies: AtomicU64,
    /// Processes that use no GPU.
    pub processes: AtomicU64,
    stop: AtomicBool,
}

/// Runs both until the time is up, or until `stop` is called.
pub fn load(project: &Project, ran: &Ran, limits: (u64, u64), duration: Duration) -> Result<()> {
    let (copies, processes) = limits;
    let until = Instant::now() + duration;
    let goes_on = || !ran.stop.load(Ordering::Acquire) && Instant::now() < until;
    let folder = project.target().join("soak");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while goes_on() && ran.processes.load(Ordering::Relaxed) < processes {
                // A process that cannot start does not count.
                let ended = Command::new("/bin/true").status().is_ok_and(|status| status.success());
                ran.processes.fetch_add(u64::from(ended), Ordering::Relaxed);
            }
        });
        (0..copies).try_for_each(|number| {
            if !goes_on() {
                return Ok(());
            }
            let library = copy(project, &folder, number)?;
            let status = program(project, &library).status().context("starting a program")?;
            ensure!(
                status.success(),
                "the program with {} ended with {status}",
                library.display()
            );
            ran.copies.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    });
    if done.is_err() {
        ran.stop();
    }
    fs::remove_dir_all(&folder)?;
    done
}

impl Ran {
    /// Ends the load early.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Copies the runtime. Each copy has other bytes at its end, where they belong to no section.
fn copy(project: &Project, folder: &Path, number: u64) -> Result<PathBuf> {
    let own = folder.join(number.to_string());
    fs::create_dir_all(&own)?;
    let library = own.join("libhsa-runtime64.so.1");
    fs::copy(Rootfs::stable(project).dir().join(RUNTIME), &library)?;
    let mut file = OpenOptions::new().append(true).open(&library)?;
    file.write_all(&number.to_le_bytes())?;
    Ok(library)
}

fn program(project: &Project, library: &Path) -> Command {
    let mut command = crate::simulated::dispatcher(project, &project.bin_dir());
    command.args(["churn", "--queues", "2", "--library"]).arg(library);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
