//! The common parts of these attacks: dice, programs that are killed with their test, and the processes of a try.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tracer_e2e::{
    place,
    running::{signal, state, wait_for},
};

/// A pseudo-random sequence that is the same in every run, so that detecting a regression does not depend on luck.
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Returns the next time below `end` milliseconds.
    pub fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

/// A process that is killed and waited for when dropped, whatever the test's result is.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns `tracer`, set up to run silently.
pub fn tracer() -> Command {
    let mut tracer = Command::new(place::programs().join("tracer"));
    tracer.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    tracer
}

/// A process that the user has stopped, and that only the user may continue.
pub struct Stranger(Ended);

impl Stranger {
    pub fn stopped() -> Self {
        let child = Command::new("/bin/sleep").arg("10000").spawn().expect("sleep");
        signal(child.id(), libc::SIGSTOP);
        wait_for("its stop", || (state(child.id()) == Some('T')).then_some(()));
        Self(Ended(child))
    }

    /// Fails if it has been continued.
    pub fn stays_stopped(&self) -> Result<(), String> {
        match state(self.0.0.id()) {
            Some('T') => Ok(()),
            other => Err(format!("a stranger was continued: its state is {other:?}")),
        }
    }
}

/// Kills a process if it still exists.
pub fn kill(pid: u32) {
    if state(pid).is_some() {
        // SAFETY: the arguments are plain integers. The process may have exited since.
        unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    }
}

/// Returns every process of the machine with this text among its arguments. Zombies have none.
pub fn with_text(text: &str) -> Vec<u32> {
    by_arguments(|line| String::from_utf8_lossy(line).contains(text))
}

/// Returns every process of the machine whose last argument is this word.
pub fn with_last_argument(word: &str) -> Vec<u32> {
    by_arguments(|line| {
        line.strip_suffix(b"\0")
            .and_then(|line| line.rsplit(|&byte| byte == 0).next())
            == Some(word.as_bytes())
    })
}

fn by_arguments(fits: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let arguments = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|&pid| fits(&arguments(pid))).collect()
}

/// Kills everything with this text among its arguments until no such process is left, and no new one starts.
pub fn kill_all(text: &str) {
    wait_for("the end of a try's processes", || {
        let left = with_text(text);
        left.iter().copied().for_each(kill);
        left.is_empty().then_some(())
    });
}

/// Waits a while, then fails with the processes of `all` that are still stopped.
pub fn left_stopped(all: impl Fn() -> Vec<u32>) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let stopped: Vec<u32> = all().into_iter().filter(|&pid| state(pid) == Some('T')).collect();
        // No process twice in a row, because a stop may have been about to take effect.
        if stopped.is_empty() && began.elapsed() > Duration::from_millis(600) {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(15) {
            let described: Vec<String> = stopped.iter().map(|pid| describe(*pid)).collect();
            return Err(format!("left stopped: {}", described.join("; ")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns every descendant of a process.
pub fn below(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let texts = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let number = |word: &str| word.parse().ok();
    let direct = texts.flat_map(|text| text.split_whitespace().filter_map(number).collect::<Vec<u32>>());
    direct.flat_map(|pid| [pid].into_iter().chain(below(pid))).collect()
}

fn describe(pid: u32) -> String {
    let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    format!("{pid} {} at {}", text("comm").trim(), text("syscall").trim())
}
