//! What a process needs while it runs: time, processors and memory, as the kernel counts them.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How often the kernel's counts are read.
const LOOK: Duration = Duration::from_millis(5);

/// What a process needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Need {
    /// From its start to its end.
    pub seconds: f64,
    /// Time of processors, of all its threads and none of its children, at the last look.
    pub cpu_seconds: f64,
    /// The peak of its resident memory at the last look.
    pub mib: f64,
}

/// Runs a command to its end, which must be a success, and returns its output too.
pub fn run(command: &mut Command) -> Result<(Need, String)> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let mut need = Need::default();
    let status = loop {
        need = look(&child).unwrap_or(need);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(LOOK);
    };
    need.seconds = began.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?} failed ({status})");
    let printed = std::io::read_to_string(child.stdout.take().context("no output")?)?;
    Ok((need, printed))
}

/// Does the same for a command whose output must contain `expected`.
pub fn run_for(command: &mut Command, expected: &str) -> Result<Need> {
    let (need, printed) = run(command)?;
    if !printed.contains(expected) {
        bail!("{command:?} did not print {expected}:\n{printed}");
    }
    eprintln!("    {:.2} s, {:.0} MiB", need.seconds, need.mib);
    Ok(need)
}

/// Returns what the process needed so far; `None` once it has ended.
pub fn look(child: &Child) -> Option<Need> {
    let file = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id())).ok();
    Some(Need {
        seconds: 0.0,
        cpu_seconds: cpu_ticks(&file("stat")?)? / rustix::param::clock_ticks_per_second() as f64,
        mib: peak_kib(&file("status")?)? / 1024.0,
    })
}

/// Returns utime and stime of `/proc/PID/stat` (proc_pid_stat(5)): fields 14 and 15, after a name that may contain spaces.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

/// Returns the peak of the resident memory, in KiB.
fn peak_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_the_memory_is_found() {
        assert_eq!(
            peak_kib("Name:\ttracer\nVmHWM:\t   85148 kB\nVmRSS:\t 9 kB\n"),
            Some(85_148.0)
        );
        assert_eq!(peak_kib("Name:\tzombie\n"), None);
    }

    #[test]
    fn the_time_of_processors_follows_a_name_with_spaces() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 30 12 5 6 20 0 1 0";
        assert_eq!(cpu_ticks(stat), Some(42.0));
    }
}
