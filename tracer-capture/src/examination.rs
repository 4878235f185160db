//! The holder: a thread that is notified of paused processes, and has them examined and probed. It reads nothing of them itself:
//! while a process is examined, it has a thread of its own, which asks readers. The keeper resumes the processes.

pub(crate) mod discoveries;
mod retry;
mod threads;
mod work;

use std::{
    os::fd::AsFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use aya::maps::{MapData, RingBuf};
use tracer_common::record::Hold;

use crate::{decode, probes::Prober, sys, wake::Waker};
use threads::Threads;
use work::{Job, scan};

pub use work::{Work, scan::Ask};

/// The interval at which the holder wakes up when nothing happens, for what is due again: that has seconds.
const IDLE: Duration = Duration::from_millis(200);
/// The same if nothing else wakes it for requests, and for the end.
const IDLE_CHANNEL: Duration = Duration::from_millis(50);
/// The time for which the end of the session waits for processes that are being examined.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process of work that is not about a process: no process has this number.
const NOBODY: u32 = 0;

/// The resources of the holder.
pub struct Examiner {
    /// Announces paused processes.
    pub holds: Holds,
    /// Examines and probes the paused processes.
    pub work: Arc<Work>,
    /// Requests from the session.
    pub asked: mpsc::Receiver<Ask>,
    /// Wakes the holder for a request, and for the end.
    pub waker: Waker,
    /// Set when the session ends.
    pub stop: Arc<AtomicBool>,
}

/// The announcements of paused processes.
pub enum Holds {
    /// From the eBPF programs.
    Ring(RingBuf<MapData>),
    /// From the thread that reads samples, and the first one that was received while waiting.
    Channel(mpsc::Receiver<Hold>, Option<Hold>),
}

impl Holds {
    fn next(&mut self) -> Option<Hold> {
        match self {
            Self::Ring(ring) => ring.next().and_then(|item| decode::hold(&item)),
            Self::Channel(receiver, first) => first.take().or_else(|| receiver.try_recv().ok()),
        }
    }

    /// Waits for the next one or the waker, for [`IDLE`] at most.
    fn wait(&mut self, waker: &Waker) {
        match self {
            Self::Ring(ring) => {
                waker.wait(Some(ring.as_fd()), IDLE);
            }
            Self::Channel(receiver, first) => match receiver.recv_timeout(IDLE_CHANNEL) {
                Ok(hold) => *first = Some(hold),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                // The sender ends with the session, which sets `stop` soon.
                Err(mpsc::RecvTimeoutError::Disconnected) => std::thread::sleep(IDLE_CHANNEL),
            },
        }
    }
}

/// Locks a mutex, also after a panic elsewhere: the data in these mutexes, as in the inventory's, is complete after each step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Examiner {
    /// Works until the session ends. Returns the prober; dropping it detaches the probes.
    pub fn run(mut self) -> Option<Prober> {
        sys::let_others_stop();
        let work = Arc::clone(&self.work);
        let threads = Threads::new(move |job| work.run(job));
        loop {
            let ended = self.stop.load(Ordering::Acquire);
            while let Ok(ask) = self.asked.try_recv() {
                scan::spread(&threads, ask);
            }
            while let Some(hold) = self.holds.next() {
                threads.push(hold.header.tgid, Job::Hold(hold));
            }
            for (pid, generation) in self.work.due() {
                threads.push(pid, Job::Again(pid, generation));
            }
            if self.work.looks_for_unused() {
                threads.push(NOBODY, Job::Unused);
            }
            if ended {
                for job in threads.finish(PATIENCE) {
                    self.work.give_up(&job);
                }
                self.work.say_goodbye();
                // Threads that are still at work find no prober, and attach no more probes.
                return self.work.take_prober();
            }
            self.holds.wait(&self.waker);
        }
    }
}
