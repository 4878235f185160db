//! Programs that run during a test, and recorders that attach to them.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    place,
    scenario::{Run, Scenario, folder},
};

/// Waits until `look` finds something. It waits for an event, not for a time; after half a minute it fails.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the state letter of a process, or `None` if the process is gone.
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: the arguments are plain integers.
    let done = unsafe { libc::kill(i32::try_from(pid).expect("a process id"), signal) };
    assert_eq!(done, 0, "signal {signal} to {pid}");
}

/// Returns the processes of that name among a process and its descendants.
#[must_use]
pub fn descendants(pid: u32, name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name) {
        found.push(pid);
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            found.extend(descendants(child, name));
        }
    }
    found
}

/// A running dispatcher on a simulated GPU.
pub struct Program {
    /// The folder with every file of the run.
    pub dir: TempDir,
    simulator: Child,
}

impl Program {
    /// Starts `steady` with more arguments. It runs until [`Self::stop`].
    #[must_use]
    pub fn steady(suite: &'static str, asic: &'static str, more: &[&'static str]) -> Self {
        let mut workload = vec!["steady"];
        workload.extend(more);
        Self::of(folder(), &Scenario::new(suite, asic, &workload))
    }

    /// Starts a scenario of `steady` with its files in that folder. It runs until [`Self::stop`].
    #[must_use]
    pub fn of(dir: TempDir, scenario: &Scenario) -> Self {
        let mut words = scenario.simulated(dir.path());
        for (option, file) in [("--until", "stop"), ("--progress", "progress")] {
            words.extend([option.into(), dir.path().join(file).into_os_string()]);
        }
        Self::spawn(dir, &words, &scenario.env)
    }

    /// Starts a simulator with its arguments, which write a report into the folder.
    #[must_use]
    pub fn start(dir: TempDir, words: &[OsString]) -> Self {
        Self::spawn(dir, words, &[])
    }

    fn spawn(dir: TempDir, words: &[OsString], env: &[(&str, OsString)]) -> Self {
        let simulator = Command::new(&words[0])
            .args(&words[1..])
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .spawn()
            .expect("the simulator runs");
        Self { dir, simulator }
    }

    /// Returns the simulator's process, the parent of the dispatcher's.
    #[must_use]
    pub fn simulator(&self) -> u32 {
        self.simulator.id()
    }

    /// Returns the dispatcher's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        wait_for("the dispatcher", || {
            descendants(self.simulator.id(), "hsa-dispatch").first().copied()
        })
    }

    /// Returns the number of dispatches that it has completed.
    #[must_use]
    pub fn progress(&self) -> u64 {
        let text = fs::read_to_string(self.dir.path().join("progress")).unwrap_or_default();
        text.parse().unwrap_or(0)
    }

    /// Waits until it has completed this many more.
    pub fn goes_on(&self, more: u64) {
        let before = self.progress();
        wait_for("dispatches", || (self.progress() >= before + more).then_some(()));
    }

    /// Creates a file that it waits for.
    pub fn make(&self, file: &str) {
        fs::write(self.dir.path().join(file), "").expect("it can be written");
    }

    /// Makes it exit.
    pub fn stop(&self) {
        self.make("stop");
    }

    /// Waits for its exit and returns its status.
    pub fn wait(&mut self) -> ExitStatus {
        self.simulator.wait().expect("the simulator ends")
    }

    /// Attaches while it runs, and lets it run until it exits.
    #[must_use]
    pub fn to_the_end(self, options: &[&str]) -> Run {
        self.goes_on(500);
        let trace = self.dir.path().join("t.trace");
        let recorder = Recorder::attach(&trace, &[self.pid()], options);
        // Doorbells of the round that was being completed at the attach may all be earlier.
        self.goes_on(1000 + LARGEST_ROUND);
        self.stop();
        self.read(recorder.wait().expect_success())
    }

    /// Returns the results of the program and of its recording. Panics unless the program reports success.
    #[must_use]
    pub fn read(mut self, recorded: Recorded) -> Run {
        let status = self.wait();
        assert!(status.success(), "the program ended with {status}");
        let dir = std::mem::replace(&mut self.dir, folder());
        let run = Run::read_trace(dir, &recorded.trace, recorded.output);
        assert_eq!(run.did()["results"], "ok");
        run
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.simulator.try_wait().is_ok_and(|status| status.is_none()) {
            for pid in descendants(self.simulator.id(), "hsa-dispatch") {
                signal(pid, libc::SIGKILL);
            }
            let _ = self.simulator.wait();
        }
    }
}

/// Most dispatches in a round of `steady`, of which each thread reports only the end.
const LARGEST_ROUND: u64 = 1024;

/// A recorder that attaches.
pub struct Recorder {
    child: Child,
    trace: PathBuf,
    lines: mpsc::Receiver<String>,
    reader: Option<JoinHandle<String>>,
}

/// The results of a recorder.
pub struct Recorded {
    /// The exit code and output.
    pub output: Output,
    /// The trace.
    pub trace: PathBuf,
}

impl Recorder {
    /// Starts `tracer record` with these arguments. The trace goes to that folder.
    #[must_use]
    pub fn start(trace: &Path, words: &[String]) -> Self {
        let mut command = Command::new(place::programs().join("tracer"));
        command.args(["-v", "record", "-o"]).arg(trace).args(words);
        Self::of(command, trace)
    }

    /// Starts a command of tracer that reports its progress on standard error.
    #[must_use]
    pub fn of(mut command: Command, trace: &Path) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("tracer runs");
        let (sender, lines) = mpsc::channel();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let reader = std::thread::spawn(move || {
            let mut said = String::new();
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|n| n > 0) {
                said.push_str(&line);
                let _ = sender.send(std::mem::take(&mut line));
            }
            let _ = stderr.read_to_string(&mut said);
            said
        });
        Self {
            child,
            trace: trace.to_owned(),
            lines,
            reader: Some(reader),
        }
    }

    /// Attaches to processes, and waits until the recorder is attached.
    #[must_use]
    pub fn attach(trace: &Path, pids: &[u32], more: &[&str]) -> Self {
        let mut words: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        words.extend(pids.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
        let recorder = Self::start(trace, &words);
        recorder.hears("attached   ");
        recorder
    }

    /// Waits for a line that begins with `start`.
    pub fn hears(&self, start: &str) -> String {
        let mut before = String::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line.starts_with(start) => return line,
                Ok(line) => before.push_str(&line),
                Err(error) => panic!("{error} before {start:?}; the recorder said:\n{before}"),
            }
        }
    }

    /// Returns its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts the recording, as a user does.
    #[must_use]
    pub fn interrupt(self) -> Recorded {
        signal(self.child.id(), libc::SIGINT);
        self.wait()
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for its exit.
    #[must_use]
    pub fn wait(mut self) -> Recorded {
        let status = self.child.wait().expect("tracer ends");
        let reader = self.reader.take().expect("it is waited for once");
        let said = reader.join().expect("the reader");
        Recorded {
            output: Output {
                status,
                stdout: Vec::new(),
                stderr: said.into_bytes(),
            },
            trace: std::mem::take(&mut self.trace),
        }
    }
}

impl Drop for Recorder {
    /// Stops the recorder. A failing test leaves no recorder and no probes behind.
    fn drop(&mut self) {
        let began = Instant::now();
        // The recorder passes the first signal on to its command, and takes the next one itself.
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if began.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
            }
            // SAFETY: the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Recorded {
    /// Returns its output.
    #[must_use]
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Panics with the output unless the recorder succeeded.
    #[must_use]
    pub fn expect_success(self) -> Self {
        assert!(self.output.status.success(), "{}:\n{}", self.output.status, self.said());
        self
    }
}
