//! Podman and Docker at work: in namespaces of mounts and networks of their own, with a simulated GPU.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cmd;
use crate::project::Project;

/// Makes the namespaces and the root.
const ENTER: &str = include_str!("enter.sh");
/// The socket of Docker's daemon, which listens nowhere else.
const SOCKET: &str = "unix:///run/docker.sock";
/// The cgroups that the engines leave behind, by the end of their paths.
const CGROUPS: [&str; 3] = ["libpod_parent", "buildah-buildah", "tracer-trial"];
/// How long a program may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The engines. Dropped, they end with all their containers.
pub struct Engines {
    simulator: Child,
    docker: Option<Child>,
    /// Cgroups of such names that were there before.
    others: Vec<PathBuf>,
}

impl Engines {
    /// Starts a simulated GPU in the namespaces. `folder` takes what the engines write.
    pub fn start(project: &Project, folder: &Path, gpu: &str, truth: &Path) -> Result<Self> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--net", "--propagation=private", "sh", "-ec", ENTER, "enter"])
            .args([&project.engines_dir(), &folder.join("engines"), project.target()])
            .arg(project.bin_dir().join("kfd-sim"))
            .args(["--asic", gpu, "--kernels"])
            .arg(project.gpu_kernels())
            .arg("--truth")
            .arg(truth)
            .args(["--", "sleep", "infinity"]);
        let simulator = command.spawn().context("cannot start unshare, of util-linux")?;
        let engines = Self {
            simulator,
            docker: None,
            others: cgroups(),
        };
        let device = PathBuf::from(format!("/proc/{}/root/dev/kfd", engines.simulator.id()));
        wait_for("the simulated GPU", || Ok(device.exists().then_some(())))?;
        cmd::read(&mut engines.command(&["ip", "link", "set", "lo", "up"])).context("no loopback address")?;
        Ok(engines)
    }

    /// Starts Docker's daemon.
    pub fn start_docker(&mut self, log: &Path) -> Result<()> {
        let words = [
            "dockerd",
            "--host",
            SOCKET,
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--cgroup-parent=/tracer-trial",
        ];
        let file = File::create(log)?;
        let mut daemon = self.command(&words);
        daemon.stdout(file.try_clone()?).stderr(file);
        eprintln!("$ {} &", shown(&words));
        self.docker = Some(daemon.spawn().context("cannot start nsenter, of util-linux")?);
        wait_for("Docker's daemon", || {
            let answers = self.output(&["docker", "version"])?.status.success();
            Ok(answers.then_some(()))
        })
    }

    /// Returns a command among the engines.
    fn command(&self, words: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.simulator.id().to_string(), "--mount", "--net", "--"])
            .args(["env", "--ignore-environment", "HOME=/root", "PATH=/usr/sbin:/usr/bin"])
            .arg(format!("DOCKER_HOST={SOCKET}"))
            // Debian's Docker has the older builder only.
            .args(["DOCKER_BUILDKIT=0", "PODMAN_IGNORE_CGROUPSV1_WARNING=1"])
            .args(words.iter().map(AsRef::as_ref))
            .stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[impl AsRef<str>]) -> Result<Output> {
        self.command(words)
            .output()
            .context("cannot start nsenter, of util-linux")
    }

    /// Shows and runs a command. Returns its exit code, and what it said.
    pub fn says(&self, words: &[impl AsRef<str>]) -> Result<(Option<i32>, String)> {
        eprintln!("$ {}", shown(words));
        let output = self.output(words)?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said += &String::from_utf8_lossy(&output.stderr);
        Ok((output.status.code(), said))
    }

    /// Shows and runs a command, which must succeed. Returns what it said.
    pub fn run(&self, words: &[impl AsRef<str>]) -> Result<String> {
        let (code, said) = self.says(words)?;
        ensure!(code == Some(0), "`{}` ended with {code:?}: {said}", shown(words));
        Ok(said)
    }

    /// Waits until a container has said something.
    pub fn hears(&self, engine: &str, container: &str, wanted: &str) -> Result<()> {
        wait_for(&format!("{wanted:?} of {container}"), || {
            let output = self.output(&[engine, "logs", container])?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok(said.contains(wanted).then_some(()))
        })
    }

    /// Returns the process id of a container.
    pub fn process(&self, engine: &str, container: &str) -> Result<u32> {
        let output = self.output(&[engine, "inspect", "--format", "{{.State.Pid}}", container])?;
        let text = String::from_utf8(output.stdout)?;
        text.trim()
            .parse()
            .with_context(|| format!("{engine} inspect {container} says {text:?}"))
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        // What has ended is no longer there to be ended.
        let _ = self.output(&["podman", "rm", "--all", "--force", "--time=2"]);
        let _ = self.output(&["podman", "pod", "rm", "--all", "--force", "--time=2"]);
        for child in self.docker.iter_mut().chain([&mut self.simulator]) {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
        for cgroup in cgroups().iter().filter(|cgroup| !self.others.contains(cgroup)) {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// Returns the cgroups that engines leave behind, inner ones first.
fn cgroups() -> Vec<PathBuf> {
    let mut find = Command::new("find");
    find.args(["/sys/fs/cgroup", "-depth", "-type", "d"]);
    let found = find.output().map(|output| output.stdout).unwrap_or_default();
    let found = String::from_utf8_lossy(&found).into_owned();
    let is_one = |path: &&str| CGROUPS.iter().any(|name| path.contains(&format!("/{name}")));
    found.lines().filter(is_one).map(PathBuf::from).collect()
}

fn shown(words: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = words.iter().map(|word| cmd::shell_quote(word.as_ref())).collect();
    words.join(" ")
}

/// Asks until there is an answer.
pub fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(answer) = answer()? {
            return Ok(answer);
        }
        if started.elapsed() > PATIENCE {
            bail!("no sign of {what} within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Gets a page at the loopback address of a process's network, as text with its headers.
pub fn get(process: u32, path: &str, token: Option<&str>) -> Result<String> {
    let network = File::open(format!("/proc/{process}/ns/net"))?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{}\r\n",
        authorization.unwrap_or_default()
    );
    // A thread of its own: only that thread enters the network.
    let asked = thread::spawn(move || -> Result<String> {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        let mut stream = TcpStream::connect("127.0.0.1:9478")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    match asked.join() {
        Ok(answer) => answer,
        Err(_) => bail!("the thread that asked for {path} panicked"),
    }
}
