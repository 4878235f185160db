//! The emulator as a process: its command line, its console, its exit.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpriority_process};

use crate::config::Config;
use crate::kernel::Kernel;
use crate::protocol;

/// The number of console lines that an error shows.
const TAIL: usize = 40;

/// A running emulator; killed when dropped.
pub struct Qemu {
    child: Child,
    console: Arc<Mutex<Vec<u8>>>,
}

impl Qemu {
    /// Starts a machine. Also returns the host's end of the agent's port.
    pub fn start(config: &Config) -> Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        let (mut from, to) = io::pipe().context("cannot make a pipe")?;
        let mut command = command(config, &theirs)?;
        command.stderr(to.try_clone().context("cannot make a pipe")?);
        if config.interactive {
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        } else {
            command.stdin(Stdio::null()).stdout(to);
        }
        inherit(&mut command, OwnedFd::from(theirs));
        let console = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&console);
        let verbose = config.verbose;
        let (sender, started) = mpsc::channel();
        // The kernel sends the parent-death signal when the *thread* that started a child exits. This thread exits only after the
        // child has closed its output.
        thread::spawn(move || {
            let child = command.spawn();
            drop(command);
            if sender.send(child).is_ok() {
                copy_console(&mut from, &copy, verbose);
            }
        });
        let child = started
            .recv()
            .context("the thread that starts QEMU ended")?
            .context("cannot start QEMU")?;
        Ok((Self { child, console }, ours))
    }

    /// Returns the last lines of console output.
    pub fn tail(&self) -> String {
        let console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&console);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// Returns all console output.
    pub fn console(&self) -> String {
        let console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&console).into_owned()
    }

    /// Waits until the machine stops by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<()> {
        let steps = limit.as_millis() / 10;
        for _ in 0..steps {
            if self.child.try_wait().context("cannot wait for QEMU")?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the machine did not switch itself off");
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail only if it has exited and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the emulator's command line. Every option was tried on Debian's kernels 6.1, 6.12 and 7.2 with QEMU 7.2.
fn command(config: &Config, agent: &UnixStream) -> Result<Command> {
    let kernel = &config.kernel;
    let mut command = Command::new(Kernel::emulator()?);
    // One thread for all processors: with one thread each, a kernel that patches its own code crashed occasionally.
    command.args(["-M", "q35", "-accel", "tcg,thread=single,tb-size=512", "-cpu", "max"]);
    command.args([
        "-smp",
        &config.processors.to_string(),
        "-m",
        &config.memory_mib.to_string(),
    ]);
    if config.counts_instructions {
        ensure!(
            config.processors == 1,
            "instructions can be counted on one processor, not on {}",
            config.processors
        );
        command.args(["-icount", "shift=0,sleep=off"]);
    }
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command
        .arg("-kernel")
        .arg(kernel.image())
        .arg("-initrd")
        .arg(kernel.initrd());
    let agent_path = config.agent.display();
    command.args([
        "-append",
        &format!("console=ttyS0 quiet panic=-1 reboot=t tracer.agent={agent_path}"),
    ]);
    let signals = if config.interactive { "off" } else { "on" };
    command.args([
        "-chardev",
        &format!("stdio,id=console,signal={signals}"),
        "-serial",
        "chardev:console",
    ]);
    command.args(["-device", "virtio-serial-pci"]);
    command.args(["-chardev", &format!("socket,id=agent,fd={}", agent.as_raw_fd())]);
    command.args([
        "-device",
        &format!("virtserialport,chardev=agent,name={}", protocol::PORT),
    ]);
    let folders = std::iter::once(("host".to_owned(), "/".into(), ",readonly=on"));
    let shared = config.shared.iter().enumerate();
    let shared = shared.map(|(number, path)| (share_tag(number), path.to_string_lossy(), ""));
    for (tag, path, access) in folders.chain(shared) {
        // A comma in a value is written twice.
        let path = path.replace(',', ",,");
        let folder = format!("local,id={tag},path={path},security_model=none,multidevs=remap{access}");
        command.args(["-fsdev", &folder]);
        command.args(["-device", &format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}")]);
    }
    Ok(command)
}

/// Returns the mount tag of a shared folder.
pub fn share_tag(number: usize) -> String {
    format!("share{number}")
}

/// The lowest priority of a process (setpriority(2)).
const LAST: i32 = 19;

/// Makes a child keep a descriptor, and die with this process. It takes only the time of processors that nothing else needs: emulation
/// takes a processor for minutes, and tests beside it measure time.
fn inherit(command: &mut Command, descriptor: OwnedFd) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::empty())?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        setpriority_process(None, LAST)?;
        // The parent may have died before the call above.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes only system calls; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

fn copy_console(from: &mut impl Read, console: &Mutex<Vec<u8>>, verbose: bool) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        if verbose {
            // If the copy to standard error fails, the other copy still has the bytes.
            let _ = io::stderr().write_all(bytes);
        }
        console
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
    }
}
