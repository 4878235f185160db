//! A booted virtual machine that runs commands.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;

use crate::command::{Command, Output, Stream};
use crate::config::Config;
use crate::kernel::Module;
use crate::protocol::{self, Booted, Exit, Kind, Request};
use crate::qemu::{self, Qemu};

/// The time within which a module must load; amdgpu takes 2 to 6 s on an idle machine.
const LOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// The time within which a folder must be mounted, and within which the machine must power off.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(30);
/// The size of a terminal whose size is not known.
const TERMINAL: (u16, u16) = (24, 80);

/// A running virtual machine; killed when dropped.
pub struct Vm {
    qemu: Qemu,
    port: UnixStream,
    frames: Receiver<(Kind, Vec<u8>)>,
    booted: Booted,
    boot_time: Duration,
    load_times: Vec<(Module, Duration)>,
}

impl Vm {
    /// Boots a machine, mounts its shared folders and loads its modules.
    ///
    /// Fails with the last console output if the machine stops or hangs.
    pub fn boot(config: &Config) -> Result<Self> {
        let started = Instant::now();
        let (qemu, port) = Qemu::start(config)?;
        let frames = receive(port.try_clone().context("cannot duplicate the agent's socket")?);
        let mut vm = Self {
            qemu,
            port,
            frames,
            booted: Booted {
                release: String::new(),
                uptime_s: 0.0,
            },
            boot_time: Duration::ZERO,
            load_times: Vec::new(),
        };
        vm.booted = vm
            .answer("boot", config.boot_timeout, Kind::Booted, &mut |_, _| {})
            .with_context(|| format!("kernel {} did not come up", config.kernel.release()))?;
        vm.boot_time = started.elapsed();
        for (number, path) in config.shared.iter().enumerate() {
            let tag = qemu::share_tag(number);
            let path = std::path::absolute(path).with_context(|| format!("no folder {}", path.display()))?;
            vm.send(&Request::Share { tag, path })?;
            vm.exit("mount", MOUNT_TIMEOUT)?;
        }
        for module in &config.modules {
            vm.load(config, *module)?;
        }
        Ok(vm)
    }

    /// Returns the kernel's release, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.booted.release
    }

    /// Returns the time from the start of QEMU until the agent answered, and the kernel's own clock at that moment.
    pub fn boot_time(&self) -> (Duration, Duration) {
        (self.boot_time, Duration::from_secs_f64(self.booted.uptime_s))
    }

    /// Returns how long each module took to load, with its dependencies.
    pub fn load_times(&self) -> &[(Module, Duration)] {
        &self.load_times
    }

    /// Returns the console output so far, mostly kernel messages.
    pub fn console(&self) -> String {
        self.qemu.console()
    }

    /// Runs a command and returns its output. An exit code other than 0 is not an error.
    ///
    /// # Errors
    /// Fails if the command cannot be started, if the machine stops, or if the command takes too long, with the last console
    /// output. The machine is not usable afterwards.
    pub fn run(&mut self, command: &Command) -> Result<Output> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let output = self.stream(command, &mut |stream, bytes| match stream {
            Stream::Stdout => stdout.extend_from_slice(bytes),
            Stream::Stderr => stderr.extend_from_slice(bytes),
        });
        match output {
            Ok(output) => Ok(Output {
                stdout,
                stderr,
                ..output
            }),
            Err(error) => Err(error.context(format!(
                "it had printed\n{}{}",
                String::from_utf8_lossy(&stdout),
                String::from_utf8_lossy(&stderr)
            ))),
        }
    }

    /// Like [`Self::run`], but forwards the output as it comes.
    pub fn stream(&mut self, command: &Command, sink: &mut dyn FnMut(Stream, &[u8])) -> Result<Output> {
        self.send(&command.request(None))?;
        let exit: Exit = self.answer(&command.shown(), command.limit(), Kind::Exit, sink)?;
        Ok(Output {
            code: exit.code,
            duration: Duration::from_secs_f64(exit.seconds),
            ..Output::default()
        })
    }

    /// Runs a command on the console, which must be this process's terminal ([`Config::interactive`]), without a time limit. Then
    /// powers the machine off, so that QEMU restores the terminal. Returns the exit code.
    pub fn terminal(mut self, command: &Command) -> Result<i32> {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| (size.ws_row, size.ws_col));
        let size = size
            .ok()
            .filter(|(rows, columns)| *rows > 0 && *columns > 0)
            .unwrap_or(TERMINAL);
        self.send(&command.request(Some(size)))?;
        let exit: Exit = self.answer(&command.shown(), Duration::MAX, Kind::Exit, &mut |_, _| {})?;
        self.send(&Request::PowerOff)?;
        self.qemu.wait(MOUNT_TIMEOUT)?;
        Ok(exit.code)
    }

    /// Unloads a module, which must not be in use. Its dependencies stay loaded.
    pub fn unload(&mut self, module: Module) -> Result<()> {
        let name = module.name().to_owned();
        let what = format!("unloading {name}");
        self.send(&Request::Unload { name })?;
        self.exit(&what, LOAD_TIMEOUT).map(drop)
    }

    fn load(&mut self, config: &Config, module: Module) -> Result<()> {
        let rings = match module {
            Module::Mock if !config.rings.is_empty() => format!("rings={}", config.rings),
            _ => String::new(),
        };
        self.send(&Request::Load {
            files: config.kernel.files(module)?,
            parameters: rings,
        })?;
        let exit = self.exit(&format!("loading {module:?}"), LOAD_TIMEOUT)?;
        self.load_times.push((module, Duration::from_secs_f64(exit.seconds)));
        Ok(())
    }

    fn send(&mut self, request: &Request) -> Result<()> {
        protocol::write_json(&self.port, Kind::Request, request)
            .map_err(|error| self.blame(anyhow!(error).context("the machine takes no requests")))
    }

    fn exit(&mut self, what: &str, limit: Duration) -> Result<Exit> {
        self.answer(what, limit, Kind::Exit, &mut |_, _| {})
    }

    /// Waits for a frame of the wanted kind. Output of a command before it goes to the sink.
    fn answer<T: DeserializeOwned>(
        &mut self,
        what: &str,
        limit: Duration,
        wanted: Kind,
        sink: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<T> {
        let deadline = Instant::now().checked_add(limit);
        loop {
            let received = match deadline {
                Some(deadline) => self
                    .frames
                    .recv_timeout(deadline.saturating_duration_since(Instant::now())),
                None => self.frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let (kind, payload) = match received {
                Ok(frame) => frame,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.blame(anyhow!("`{what}` took longer than {:.0} s", limit.as_secs_f64())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.blame(anyhow!("the machine ended during `{what}`")));
                }
            };
            match kind {
                Kind::Stdout => sink(Stream::Stdout, &payload),
                Kind::Stderr => sink(Stream::Stderr, &payload),
                Kind::Failed => bail!("`{what}` in the machine: {}", String::from_utf8_lossy(&payload)),
                _ if kind == wanted => {
                    return serde_json::from_slice(&payload).context("the agent said something unknown");
                }
                _ => bail!("the agent answered `{what}` with {kind:?}"),
            }
        }
    }

    /// Adds the console output to an error.
    fn blame(&self, error: anyhow::Error) -> anyhow::Error {
        match self.qemu.tail() {
            tail if tail.is_empty() => error.context("the machine's console is empty"),
            tail => anyhow!("{error:#}; its console said last:\n{tail}"),
        }
    }
}

/// Reads the agent's frames on a separate thread, which exits with the machine.
fn receive(port: UnixStream) -> Receiver<(Kind, Vec<u8>)> {
    let (sender, frames) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(Some(frame)) = protocol::read(&port) {
            if sender.send(frame).is_err() {
                break;
            }
        }
    });
    frames
}
