//! The first program of a virtual machine after `init.sh`: it takes requests from the host and runs commands.
//!
//! It is a program of the host, like those that it runs. When it exits, the machine stops.

mod modules;
mod mounts;
mod run;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::system::{RebootCommand, reboot};
use tracer_vm::protocol::{self, Booted, Exit, Kind, PORT, Request};

/// The agent's port. Frames of several threads must not mix.
type Port = Arc<Mutex<File>>;

fn main() -> ExitCode {
    if let Err(error) = serve() {
        eprintln!("vm-agent: {error:#}");
    }
    // The kernel panics now, and the machine stops.
    ExitCode::FAILURE
}

fn serve() -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this is the first program of a virtual machine, not one to be called"
    );
    mounts::mount_all()?;
    let path = find_port()?;
    let open = || File::options().read(true).write(true).open(&path);
    let requests = open().with_context(|| format!("cannot open {}", path.display()))?;
    let port: Port = Arc::new(Mutex::new(requests.try_clone()?));
    let booted = Booted {
        release: rustix::system::uname().release().to_string_lossy().into_owned(),
        uptime_s: uptime()?,
    };
    send_json(&port, Kind::Booted, &booted)?;
    while let Some((_, payload)) = protocol::read(&requests)? {
        let request: Request = serde_json::from_slice(&payload).context("the host said something unknown")?;
        let started = Instant::now();
        match carry_out(&port, &request) {
            Ok(code) => {
                let exit = Exit {
                    code,
                    seconds: started.elapsed().as_secs_f64(),
                };
                send_json(&port, Kind::Exit, &exit)?;
            }
            Err(error) => send(&port, Kind::Failed, format!("{error:#}").as_bytes())?,
        }
    }
    Ok(())
}

/// Performs a request of the host. Returns a command's exit code, else 0.
fn carry_out(port: &Port, request: &Request) -> Result<i32> {
    match request {
        Request::Share { tag, path } => mounts::share(tag, path).map(|()| 0),
        Request::Load { files, parameters } => modules::load(files, parameters).map(|()| 0),
        Request::Unload { name } => modules::unload(name).map(|()| 0),
        Request::Run {
            argv,
            env,
            cwd,
            terminal: None,
        } => run::piped(port, run::command(argv, env, cwd)?),
        Request::Run {
            argv,
            env,
            cwd,
            terminal: Some(size),
        } => run::on_terminal(run::command(argv, env, cwd)?, *size),
        Request::PowerOff => {
            reboot(RebootCommand::PowerOff).context("cannot switch off")?;
            Ok(0)
        }
    }
}

fn send(port: &Port, kind: Kind, payload: &[u8]) -> io::Result<()> {
    let port = port.lock().map_err(|_| io::ErrorKind::BrokenPipe)?;
    protocol::write(&*port, kind, payload)
}

fn send_json(port: &Port, kind: Kind, value: &impl serde::Serialize) -> Result<()> {
    Ok(send(port, kind, &serde_json::to_vec(value)?)?)
}

/// Returns the device of the port, found by its name. Its driver may not have probed it yet.
fn find_port() -> Result<PathBuf> {
    let started = Instant::now();
    loop {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            let device = PathBuf::from("/dev").join(entry.file_name());
            if name.trim() == PORT && device.exists() {
                return Ok(device);
            }
        }
        ensure!(started.elapsed() < Duration::from_secs(10), "there is no port {PORT}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the seconds since the kernel started.
fn uptime() -> Result<f64> {
    let text = fs::read_to_string("/proc/uptime").context("cannot read /proc/uptime")?;
    let first = text.split_whitespace().next().context("/proc/uptime is empty")?;
    first.parse().context("/proc/uptime holds no number")
}
