//! Commands: the agent starts them, forwards their output, and waits for them and for orphans.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, WaitOptions, WaitStatus, ioctl_tiocsctty, setsid, wait};
use rustix::termios::{Winsize, tcsetwinsize};
use tracer_vm::protocol::Kind;

use crate::{Port, send};

/// How long the agent waits for output after the exit of a command whose own children keep its pipes open.
const LINGER: Duration = Duration::from_secs(1);

/// Returns a command as the host describes it.
pub fn command(argv: &[String], env: &BTreeMap<String, String>, cwd: &Path) -> Result<Command> {
    let (program, arguments) = argv.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).current_dir(cwd);
    Ok(command)
}

/// Runs a command with pipes for its output. Returns its exit code.
pub fn piped(port: &Port, mut command: Command) -> Result<i32> {
    let (from_stdout, stdout) = io::pipe()?;
    let (from_stderr, stderr) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let pid = start(&mut command)?;
    // Drops its ends of the pipes; otherwise the pipes would never end.
    drop(command);
    let (sender, ended) = mpsc::channel();
    forward(port, Kind::Stdout, from_stdout, sender.clone());
    forward(port, Kind::Stderr, from_stderr, sender);
    let code = wait_for(pid)?;
    // Fails once both pipes have ended, or after the time for output of processes that the command left behind.
    while ended.recv_timeout(LINGER).is_ok() {}
    Ok(code)
}

/// Runs a command with the console as its controlling terminal. Returns its exit code.
pub fn on_terminal(mut command: Command, (rows, columns): (u16, u16)) -> Result<i32> {
    let console = File::options()
        .read(true)
        .write(true)
        .open("/dev/ttyS0")
        .context("cannot open the console")?;
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&console, size).context("cannot set the terminal's size")?;
    command
        .stdin(console.try_clone()?)
        .stdout(console.try_clone()?)
        .stderr(console);
    let own_terminal = || {
        setsid()?;
        ioctl_tiocsctty(io::stdin().as_fd())?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes only system calls; standard input is not locked for its descriptor.
    unsafe { command.pre_exec(own_terminal) };
    let pid = start(&mut command)?;
    wait_for(pid)
}

fn start(command: &mut Command) -> Result<Pid> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    // The handle is not needed, because `wait_for` waits for every process.
    Pid::from_raw(child.id().cast_signed()).context("a process without an id")
}

/// Waits for one process, and also reaps orphans.
fn wait_for(wanted: Pid) -> Result<i32> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == wanted => return Ok(exit_code(status)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the command"),
        }
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or_default(),
    }
}

/// Forwards the data of a pipe, on a separate thread, and reports when the pipe ends.
fn forward(port: &Port, kind: Kind, mut from: impl Read + Send + 'static, ended: Sender<()>) {
    let port = Arc::clone(port);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if send(&port, kind, &buffer[..length]).is_err() {
                break;
            }
        }
        // The receiver is gone once the time for lingering output is over.
        let _ = ended.send(());
    });
}
