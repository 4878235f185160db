//! Threads that examine processes. They do one piece of work at a time for a process, in order, and no process waits for another.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::lock;

/// The maximum number of threads: as many as readers can be blocked, and some that work.
const MAX_THREADS: usize = 72;
/// The time after which a thread without work exits.
const IDLE: Duration = Duration::from_secs(10);

/// The threads. They exit when the threads and all work is gone.
pub struct Threads<J> {
    shared: Arc<Shared<J>>,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// Notified when there is work, or when there will be none any more.
    work: Condvar,
    /// Notified when a piece of work is done.
    done: Condvar,
    run: Box<dyn Fn(J) + Send + Sync>,
}

struct State<J> {
    /// Processes with work, at which no thread works.
    ready: VecDeque<u32>,
    /// The work of each process that a thread works at, or that is ready. A piece that is under way is the first one.
    jobs: HashMap<u32, VecDeque<J>>,
    threads: usize,
    idle: usize,
    ended: bool,
}

impl<J: Clone> State<J> {
    /// Takes the next piece of work, if there is any.
    fn take(&mut self) -> Option<(u32, J)> {
        let pid = self.ready.pop_front()?;
        let job = self.jobs.get(&pid)?.front()?;
        Some((pid, job.clone()))
    }

    /// Marks the piece of work of this process that was under way as done.
    fn finish(&mut self, pid: u32) {
        if let Entry::Occupied(mut jobs) = self.jobs.entry(pid) {
            jobs.get_mut().pop_front();
            if jobs.get().is_empty() {
                jobs.remove();
            } else {
                self.ready.push_back(pid);
            }
        }
    }
}

impl<J> Shared<J> {
    fn state(&self) -> MutexGuard<'_, State<J>> {
        lock(&self.state)
    }
}

impl<J: Clone> Shared<J> {
    fn run(&self, pid: u32, job: J) {
        // A panic over one process must not cost another process its turn.
        if catch_unwind(AssertUnwindSafe(|| (self.run)(job))).is_err() {
            log::warn!("cannot examine process {pid}: the thread panicked");
        }
        self.state().finish(pid);
        self.done.notify_all();
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some((pid, job)) = state.take() {
                drop(state);
                self.run(pid, job);
                state = self.state();
                continue;
            }
            if state.ended {
                break;
            }
            state.idle += 1;
            let (woken, waited) = self
                .work
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.ready.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

impl<J: Clone + Send + 'static> Threads<J> {
    /// Prepares for work, without a thread yet; `run` does a piece of work.
    pub fn new(run: impl Fn(J) + Send + Sync + 'static) -> Self {
        let state = State {
            ready: VecDeque::new(),
            jobs: HashMap::new(),
            threads: 0,
            idle: 0,
            ended: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work: Condvar::new(),
                done: Condvar::new(),
                run: Box::new(run),
            }),
        }
    }

    /// Adds a piece of work for a process, after its earlier work.
    pub fn push(&self, pid: u32, job: J) {
        let mut state = self.shared.state();
        let jobs = state.jobs.entry(pid).or_default();
        jobs.push_back(job);
        if jobs.len() > 1 {
            // A thread works at this process, or will do so.
            return;
        }
        state.ready.push_back(pid);
        if state.idle >= state.ready.len() {
            self.shared.work.notify_one();
        } else if state.threads < MAX_THREADS {
            state.threads += 1;
            let shared = Arc::clone(&self.shared);
            let spawned = thread::Builder::new()
                .name("examiner".to_owned())
                .spawn(move || shared.work());
            if spawned.is_err() {
                state.threads -= 1;
                // If there are no threads at all, the work is done here.
                if state.threads == 0
                    && let Some((pid, job)) = state.take()
                {
                    drop(state);
                    self.shared.run(pid, job);
                }
            }
        }
    }

    /// Waits until no work is left, or time is up. Returns the work that is not done by then. Work that a thread has begun
    /// continues.
    pub fn finish(&self, patience: Duration) -> Vec<J> {
        let until = Instant::now() + patience;
        let mut state = self.shared.state();
        while !state.jobs.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.ready.clear();
        state.jobs.values_mut().flat_map(std::mem::take).collect()
    }
}

impl<J> Drop for Threads<J> {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.work.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn work_of_a_process_is_done_in_order_and_others_wait_for_none_of_it() {
        let (sender, receiver) = channel();
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let threads = Threads::new(move |(pid, number): (u32, u32)| {
            // The first piece waits as long as the test wants.
            if (pid, number) == (1, 0) {
                let _ = gate.lock().unwrap().recv();
            }
            sender.send((pid, number)).unwrap();
        });
        for number in 0..3 {
            threads.push(1, (1, number));
        }
        for pid in 2..20 {
            threads.push(pid, (pid, 0));
            threads.push(pid, (pid, 1));
        }
        let mut others: Vec<(u32, u32)> = (0..36).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
        let order = others.clone();
        others.sort_unstable();
        assert_eq!(others, (2..20).flat_map(|pid| [(pid, 0), (pid, 1)]).collect::<Vec<_>>());
        for pid in 2..20 {
            let own: Vec<u32> = order
                .iter()
                .filter(|(of, _)| *of == pid)
                .map(|(_, number)| *number)
                .collect();
            assert_eq!(own, [0, 1]);
        }
        open.send(()).unwrap();
        let own: Vec<(u32, u32)> = (0..3).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
        assert_eq!(own, [(1, 0), (1, 1), (1, 2)]);
        assert!(threads.finish(LONG).is_empty());
    }

    #[test]
    fn a_panic_costs_its_own_work_only_and_what_is_not_done_is_given_back() {
        let (sender, receiver) = channel();
        let (_open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let threads = Threads::new(move |number: u32| match number {
            0 => panic!("as the test wants it"),
            1 => sender.send(1).unwrap(),
            _ => drop(gate.lock().unwrap().recv()),
        });
        threads.push(1, 0);
        threads.push(1, 1);
        assert_eq!(receiver.recv_timeout(LONG), Ok(1));
        threads.push(2, 2);
        threads.push(2, 3);
        threads.push(2, 4);
        let mut left = threads.finish(Duration::from_millis(200));
        left.sort_unstable();
        assert_eq!(left, [2, 3, 4]);
    }
}
