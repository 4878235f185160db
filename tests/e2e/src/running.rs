//! Programs that run while a test does something, and recorders that attach to them.

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

/// Waits until `look` finds something: an event, not a time. Half a minute later something is wrong.
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

/// The state letter of a process, `None` once it is gone.
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: plain integers.
    let done = unsafe { libc::kill(i32::try_from(pid).expect("a process id"), signal) };
    assert_eq!(done, 0, "signal {signal} to {pid}");
}

/// Processes of that name below a process, itself included.
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

/// A dispatcher on a simulated GPU that runs.
pub struct Program {
    /// Holds every file of the run.
    pub dir: TempDir,
    simulator: Child,
}

impl Program {
    /// Starts `steady` with more words; it goes on until [`Self::stop`].
    #[must_use]
    pub fn steady(suite: &'static str, asic: &'static str, more: &[&'static str]) -> Self {
        let mut workload = vec!["steady"];
        workload.extend(more);
        Self::of(folder(), &Scenario::new(suite, asic, &workload))
    }

    /// Starts a scenario of `steady` with its files in that folder; it goes on until [`Self::stop`].
    #[must_use]
    pub fn of(dir: TempDir, scenario: &Scenario) -> Self {
        let mut words = scenario.simulated(dir.path());
        for (option, file) in [("--until", "stop"), ("--progress", "progress")] {
            words.extend([option.into(), dir.path().join(file).into_os_string()]);
        }
        Self::spawn(dir, &words, &scenario.env)
    }

    /// Starts a simulator with its words, which write what they did into the folder.
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

    /// The simulator's process, above the dispatcher's.
    #[must_use]
    pub fn simulator(&self) -> u32 {
        self.simulator.id()
    }

    /// The dispatcher's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        wait_for("the dispatcher", || {
            descendants(self.simulator.id(), "hsa-dispatch").first().copied()
        })
    }

    /// Dispatches that it has completed.
    #[must_use]
    pub fn progress(&self) -> u64 {
        let text = fs::read_to_string(self.dir.path().join("progress")).unwrap_or_default();
        text.parse().unwrap_or(0)
    }

    /// Waits until it has completed so many more.
    pub fn goes_on(&self, more: u64) {
        let before = self.progress();
        wait_for("dispatches", || (self.progress() >= before + more).then_some(()));
    }

    /// Makes a file that it waits for.
    pub fn make(&self, file: &str) {
        fs::write(self.dir.path().join(file), "").expect("it can be written");
    }

    /// Lets it come to its end.
    pub fn stop(&self) {
        self.make("stop");
    }

    /// How it ended.
    pub fn wait(&mut self) -> ExitStatus {
        self.simulator.wait().expect("the simulator ends")
    }

    /// Attaches in the middle, and lets it come to its end.
    #[must_use]
    pub fn to_the_end(self, options: &[&str]) -> Run {
        self.goes_on(500);
        let trace = self.dir.path().join("t.trace");
        let recorder = Recorder::attach(&trace, &[self.pid()], options);
        self.goes_on(1000);
        self.stop();
        self.read(recorder.wait().expect_success())
    }

    /// What came of it and of a recording of it: panics unless the program says that all went well.
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

/// A recorder that attaches.
pub struct Recorder {
    child: Child,
    trace: PathBuf,
    lines: mpsc::Receiver<String>,
    reader: Option<JoinHandle<String>>,
}

/// What a recorder left.
pub struct Recorded {
    /// Exit code and what it said.
    pub output: Output,
    /// Its trace.
    pub trace: PathBuf,
}

impl Recorder {
    /// Starts `tracer record` with these words; the trace goes to that folder.
    #[must_use]
    pub fn start(trace: &Path, words: &[String]) -> Self {
        let mut command = Command::new(place::programs().join("tracer"));
        command.args(["-v", "record", "-o"]).arg(trace).args(words);
        Self::of(command, trace)
    }

    /// Starts a command of tracer that says on standard error how far it is.
    #[must_use]
    pub fn of(mut command: Command, trace: &Path) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("tracer runs");
        let (tell, lines) = mpsc::channel();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let reader = std::thread::spawn(move || {
            let mut said = String::new();
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|n| n > 0) {
                said.push_str(&line);
                let _ = tell.send(std::mem::take(&mut line));
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

    /// Attaches to processes, and waits until it has.
    #[must_use]
    pub fn attach(trace: &Path, pids: &[u32], more: &[&str]) -> Self {
        let mut words: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        words.extend(pids.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
        let recorder = Self::start(trace, &words);
        recorder.hears("attached   ");
        recorder
    }

    /// Waits for a line that begins so.
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

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the recording, as a user does.
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

    /// Waits for its end.
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
    /// A test that fails leaves nobody who watches, and no probes.
    fn drop(&mut self) {
        let began = Instant::now();
        // The first signal is for its command, the next one for itself.
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if began.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
            }
            // SAFETY: the child has not been waited for: the id is its own.
            unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Recorded {
    /// What it said.
    #[must_use]
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Panics, with what was said, unless all went well.
    #[must_use]
    pub fn expect_success(self) -> Self {
        assert!(self.output.status.success(), "{}:\n{}", self.output.status, self.said());
        self
    }
}
