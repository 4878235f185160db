//! Doorbells: words of memory that clients store to, and the watch that wakes idle queues when one changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::clock::use_precise_naps;
use crate::memory::SharedFile;

/// How long the watch sleeps between two samples of the doorbells of idle queues.
const NAP: Duration = Duration::from_micros(70);

/// A queue's doorbell, and the queue's thread if it sleeps.
pub struct Bell {
    file: Arc<SharedFile>,
    offset: u64,
    /// The value that the queue's thread knows.
    known: AtomicU64,
    sleeping: AtomicBool,
    sleeper: Mutex<Sleeper>,
}

/// The thread to wake.
#[derive(Default)]
struct Sleeper {
    /// The queue's thread, from its first sleep on.
    thread: Option<Thread>,
    /// Whether the thread was woken before its first sleep, which then must not begin.
    woken: bool,
}

impl Bell {
    /// Returns the doorbell at `offset` of the doorbell file, with the value `initial`.
    pub fn new(file: Arc<SharedFile>, offset: u64, initial: u64) -> Self {
        let bell = Self {
            file,
            offset,
            known: AtomicU64::new(initial),
            sleeping: AtomicBool::new(false),
            sleeper: Mutex::default(),
        };
        bell.word().store(initial, Ordering::Release);
        bell
    }

    fn word(&self) -> &AtomicU64 {
        static NOWHERE: AtomicU64 = AtomicU64::new(0);
        match self.file.at(self.offset, 8) {
            // SAFETY: 8 mapped bytes, aligned because doorbells are allocated by index; the mapping lives as long as the file,
            // which `self` holds. The client only ever stores to it, as to a device register.
            Some(at) => unsafe { AtomicU64::from_ptr(at.cast()) },
            None => &NOWHERE,
        }
    }

    /// Returns the value, and whether it has changed since the last call.
    pub fn look(&self) -> (u64, bool) {
        let value = self.word().load(Ordering::Acquire);
        let changed = value != self.known.load(Ordering::Relaxed);
        if changed {
            self.known.store(value, Ordering::Relaxed);
        }
        (value, changed)
    }

    fn is_rung(&self) -> bool {
        self.word().load(Ordering::Acquire) != self.known.load(Ordering::Relaxed)
    }

    /// Sleeps until the doorbell changes, `wake` is called or `limit` has passed. May also return spuriously. Returns whether all
    /// of `limit` passed.
    pub fn sleep(&self, limit: Option<Duration>) -> bool {
        let begin = Instant::now();
        {
            let mut sleeper = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
            sleeper.thread = Some(std::thread::current());
            if std::mem::take(&mut sleeper.woken) {
                return false;
            }
        }
        self.sleeping.store(true, Ordering::SeqCst);
        if !self.is_rung() {
            match limit {
                Some(limit) => std::thread::park_timeout(limit),
                None => std::thread::park(),
            }
        }
        self.sleeping.store(false, Ordering::SeqCst);
        limit.is_some_and(|limit| begin.elapsed() >= limit) && !self.is_rung()
    }

    /// Wakes the queue's thread, whatever the doorbell's value is.
    pub fn wake(&self) {
        let mut sleeper = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
        match &sleeper.thread {
            Some(thread) => thread.unpark(),
            None => sleeper.woken = true,
        }
    }
}

/// One thread that samples the doorbells of all sleeping queues. The cost of idle queues thus does not depend on their number.
#[derive(Default)]
pub struct BellWatch {
    bells: Mutex<Vec<Arc<Bell>>>,
    some: Condvar,
}

impl BellWatch {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Arc<Self>> {
        let watch = Arc::new(Self::default());
        let own = Arc::clone(&watch);
        std::thread::Builder::new()
            .name("doorbells".into())
            .spawn(move || own.run())?;
        Ok(watch)
    }

    /// Watches one more doorbell.
    pub fn add(&self, bell: &Arc<Bell>) {
        self.bells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(bell));
        self.some.notify_one();
    }

    /// Stops watching a doorbell.
    pub fn remove(&self, bell: &Arc<Bell>) {
        self.bells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|known| !Arc::ptr_eq(known, bell));
    }

    fn run(&self) {
        use_precise_naps();
        loop {
            let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
            let bells = self
                .some
                .wait_while(bells, |bells| bells.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            for bell in bells
                .iter()
                .filter(|bell| bell.sleeping.load(Ordering::SeqCst) && bell.is_rung())
            {
                bell.wake();
            }
            drop(bells);
            std::thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Destroys a queue before its thread first sleeps. If the wake were lost, the thread would sleep on and its destroyer would
    /// wait for it.
    #[test]
    fn a_wake_before_the_first_sleep_is_not_lost() {
        let file = Arc::new(SharedFile::new("test", 1 << 20).unwrap());
        let bell = Arc::new(Bell::new(file, 64, u64::MAX));
        bell.wake();
        let sleeper = std::thread::spawn(move || {
            bell.sleep(None);
        });
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while !sleeper.is_finished() {
            assert!(std::time::Instant::now() < deadline, "it sleeps on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_store_wakes_the_sleeper() {
        let file = Arc::new(SharedFile::new("test", 1 << 20).unwrap());
        let bell = Arc::new(Bell::new(Arc::clone(&file), 64, u64::MAX));
        let watch = BellWatch::start().unwrap();
        watch.add(&bell);
        let sleeper = {
            let bell = Arc::clone(&bell);
            std::thread::spawn(move || {
                loop {
                    if let (value, true) = bell.look() {
                        return value;
                    }
                    bell.sleep(None);
                }
            })
        };
        std::thread::sleep(Duration::from_millis(5));
        bell.word().store(0, Ordering::Release);
        assert_eq!(sleeper.join().unwrap(), 0);
        watch.remove(&bell);
    }
}
