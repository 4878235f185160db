//! The keeper: a thread of the recorder that gives signs of life and ends pauses.
//!
//! It reads nothing of the paused processes except what the kernel says about them in /proc, so that no process can keep it from
//! resuming another one. A pause ends when the recorder has done what the process waits for, and at the limit in any case.

use std::{
    collections::HashSet,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tracer_common::pause::HEARTBEAT_NS;

use super::{
    entries::{Entries, Paused},
    resume::{Outcome, Step, resume},
};
use crate::{CaptureError, sys};

/// The time between two rounds when nothing happens: half of what the programs expect, since a round takes a moment.
const IDLE: Duration = Duration::from_nanos(HEARTBEAT_NS / 2);
/// The time between two rounds while a process is about to stop, which takes some 10 us.
const SOON: Duration = Duration::from_micros(30);
/// The time between two rounds while a process has not stopped for a while.
const LATER: Duration = Duration::from_millis(1);
/// The time for which a stop is awaited every [`SOON`].
const PROMPT_NS: u64 = 5_000_000;
/// The time for which the end of the session waits for pauses to be over.
const PATIENCE: Duration = Duration::from_secs(5);

/// The data that the keeper shares with the threads that work for it.
#[derive(Debug)]
pub struct Pauses {
    /// The entries.
    pub entries: Entries,
    limit_ns: u64,
    is_woken: Mutex<bool>,
    woken: Condvar,
    stop: AtomicBool,
    /// Set when the last round could not resume a process.
    is_helpless: AtomicBool,
    cut_short: AtomicU64,
    /// Held by a round, and while the recorder stops a process itself.
    turn: Mutex<()>,
    /// Tokens of pauses that reached the limit, until the recorder comes to them.
    limited: Mutex<HashSet<u64>>,
}

/// The running thread.
pub struct Keeper {
    pauses: Arc<Pauses>,
    thread: Option<JoinHandle<()>>,
}

impl Pauses {
    /// Prepares pauses for these entries. `limit` is the maximum length of a pause.
    pub fn new(entries: Entries, limit: Duration) -> Self {
        entries.begin(sys::monotonic_ns());
        Self {
            entries,
            limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            is_woken: Mutex::new(false),
            woken: Condvar::new(),
            stop: AtomicBool::new(false),
            is_helpless: AtomicBool::new(false),
            cut_short: AtomicU64::new(0),
            turn: Mutex::default(),
            limited: Mutex::default(),
        }
    }

    /// Marks the work that the thread of this entry waits for as done.
    pub fn serve(&self, slot: u32, token: u64) {
        let was_limited = self.limited().remove(&token);
        // A guardian resumes the process if the recorder got no processor for too long.
        if !was_limited && !self.entries.has(slot, token) {
            self.cut_short.fetch_add(1, Ordering::Relaxed);
        }
        self.entries.serve(slot, token);
        self.wake();
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limited(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of pauses, since the last call, that ended before the recorder had done its work for them.
    pub fn take_cut_short(&self) -> u64 {
        self.cut_short.swap(0, Ordering::Relaxed)
    }

    pub(super) fn wake(&self) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }

    fn wait(&self, timeout: Duration) {
        let is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.woken.wait_timeout_while(is_woken, timeout, |is_woken| !*is_woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Checks all paused processes once. Returns the time until the next round, and whether any process is left.
    fn round(&self) -> (Duration, bool) {
        let now_ns = sys::monotonic_ns();
        // Without a sign of life the guardians resume the processes that have an entry: guardians have descriptors of their own.
        if self.is_helpless.swap(false, Ordering::Relaxed) {
            self.entries.stop_beating();
        } else {
            self.entries.beat(now_ns);
        }
        let _turn = self.turn();
        let mut next = IDLE;
        let mut any = false;
        for (pid, threads) in self.entries.by_process() {
            any = true;
            let age = |thread: &Paused| now_ns.saturating_sub(thread.time_ns);
            let open: Vec<&Paused> = threads.iter().filter(|thread| !thread.served).collect();
            let left = open.iter().map(|thread| self.limit_ns.saturating_sub(age(thread)));
            match left.min() {
                None => {}
                Some(0) => {
                    log::warn!(
                        "process {pid} continues before tracer attached all probes: its pause reached the limit of {} ms (--pause-limit)",
                        self.limit_ns / 1_000_000
                    );
                    self.cut_short.fetch_add(open.len() as u64, Ordering::Relaxed);
                    self.limited().extend(open.iter().map(|thread| thread.token));
                    open.iter()
                        .for_each(|thread| self.entries.serve(thread.slot, thread.token));
                }
                Some(left) => {
                    next = next.min(Duration::from_nanos(left));
                    continue;
                }
            }
            match resume(&threads, &self.entries, now_ns) {
                Err(error) => {
                    log::debug!("the recorder cannot resume process {pid}: {error}");
                    self.is_helpless.store(true, Ordering::Relaxed);
                    next = next.min(LATER);
                }
                Ok(Step::Later) => {
                    let is_prompt = threads.iter().any(|thread| age(thread) < self.limit_ns + PROMPT_NS);
                    next = next.min(if is_prompt { SOON } else { LATER });
                }
                Ok(Step::Over(outcome)) => {
                    log_outcome(pid, outcome);
                    threads.iter().for_each(|thread| self.entries.clear(thread));
                }
            }
        }
        (next, any)
    }

    fn run(&self) {
        sys::run_first();
        let mut last = None;
        loop {
            let (next, any) = self.round();
            if self.stop.load(Ordering::Acquire) {
                let last = *last.get_or_insert_with(|| Instant::now() + PATIENCE);
                if !any || Instant::now() >= last {
                    break;
                }
            }
            self.wait(next);
        }
        self.entries.stop_beating();
    }
}

/// Logs an outcome whose reason only a user can know.
fn log_outcome(pid: u32, outcome: Outcome) {
    match outcome {
        Outcome::LeftStopped => {
            log::info!("process {pid} stays stopped: something else has stopped it while tracer paused it");
        }
        Outcome::NotStopped => log::debug!("process {pid} did not stop, or was resumed by something else"),
        Outcome::Resumed | Outcome::Gone => {}
    }
}

impl Keeper {
    /// Starts the thread: from now on programs pause processes.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if the thread can't be created.
    pub fn start(pauses: Pauses) -> Result<Self, CaptureError> {
        let pauses = Arc::new(pauses);
        let own = Arc::clone(&pauses);
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || own.run())
            .map_err(|error| CaptureError::system("starting a thread", error))?;
        let thread = Some(thread);
        Ok(Self { pauses, thread })
    }

    /// Returns the data through which other threads notify the keeper.
    pub fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    /// Waits until no pause is left. Programs must not begin new pauses any more.
    pub fn finish(&mut self) {
        self.pauses.stop.store(true, Ordering::Release);
        self.pauses.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::warn!("the keeper's thread panicked");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.finish();
    }
}
