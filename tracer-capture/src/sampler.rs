//! Samples queues: how far their producers and the GPU are. On request reads completion signals, which say when a packet ran.
//!
//! The sampler has a thread of its own, because a read waits while the process changes its mappings, and the recorder must not
//! wait. Reader processes do the reads, because a process can make its memory block for ever. The sampler samples a queue often
//! while its indexes move, and ever less often while they do not. It spends at most a twentieth of a processor and a fixed number
//! of reads per second, however many queues there are: with more queues, it samples each less often.

mod memory;
mod signals;
mod taken;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tracer_core::{
    event::{Event, Occasion, Progress, Signal},
    model::Position,
};

use crate::{
    CaptureError,
    confined::Readers,
    sampler::{
        memory::{Scattered, Seen},
        taken::Taken,
    },
    wake::Waker,
};

/// Time between two samples of a queue whose indexes move.
const FAST: Duration = Duration::from_millis(2);
/// Time between two samples of a queue whose indexes have not moved for long.
const SLOW: Duration = Duration::from_millis(256);
/// The sampler works for one of this many parts of its time.
const SHARE: u32 = 20;
/// Least time that a sample counts as: at most 20 000 samples per second.
const LEAST: Duration = Duration::from_micros(50);
/// Most completion signals read at a time, and most that wait to be read: the caller asks again for the others.
const SIGNALS: usize = 1024;
/// Most samples that wait for the recorder. With that many waiting, the recorder is behind, and more would not help it.
const WAITING: usize = 8192;

/// Most reads of packets (up to 32 KiB each) that wait for the recorder.
const TAKEN_WAITING: usize = 64;

/// A sample.
#[derive(Clone, Debug)]
pub enum Sample {
    /// A sample of a queue.
    Queue(Progress),
    /// A sample of a completion signal.
    Signal(Signal),
    /// Packets that the GPU had taken.
    Taken(Taken),
}

impl Sample {
    /// Returns the event that the model takes.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        match self {
            Self::Queue(progress) => Event::Progress(*progress),
            Self::Signal(signal) => Event::Signal(*signal),
            Self::Taken(taken) => Event::Taken(taken.packets()),
        }
    }
}

/// The sampling thread.
pub struct Sampler {
    shared: Arc<Shared>,
    samples: Receiver<Sample>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

#[derive(Default)]
struct Shared {
    /// The queues to sample, if they have changed.
    queues: Mutex<Option<Vec<Position>>>,
    /// Signals to read at once: process and handle.
    signals: Mutex<Vec<(u32, u64)>>,
    /// Reads of packets that wait for the recorder.
    taken: AtomicUsize,
    stop: AtomicBool,
}

impl Sampler {
    /// Starts the thread, which has no queues to sample yet. `readers` read the memory; `waker` wakes the thread that takes the samples
    /// if packets wait for it.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub fn start(readers: Readers, waker: Waker) -> Result<Self, CaptureError> {
        let shared = Arc::new(Shared::default());
        let (sender, samples) = sync_channel(WAITING);
        let worker = Worker {
            shared: Arc::clone(&shared),
            sender,
            waker,
            memory: Scattered::new(readers),
            queues: Vec::new(),
            signals: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(|| worker.run());
        Ok(Self {
            shared,
            samples,
            thread: Some(thread.map_err(|e| CaptureError::system("starting a thread", e))?),
        })
    }

    /// Replaces the queues to sample.
    pub fn watch(&self, queues: Vec<Position>) {
        *self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner) = Some(queues);
        self.wake();
    }

    /// Reads these completion signals (process and handle) once, within the sampler's share of time. The list is empty afterwards.
    pub fn ask(&self, signals: &mut Vec<(u32, u64)>) {
        if !signals.is_empty() {
            let mut asked = self.shared.signals.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.len() < SIGNALS {
                asked.append(signals);
            }
            signals.clear();
        }
    }

    /// Reads these signals at the end, too, however many they are.
    pub fn ask_at_end(&self, signals: &mut Vec<(u32, u64)>) {
        let mut asked = self.shared.signals.lock().unwrap_or_else(PoisonError::into_inner);
        asked.append(signals);
    }

    /// Returns the samples since the last call.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        self.samples.try_iter().inspect(|sample| {
            if let Sample::Taken(_) = sample {
                self.shared.taken.fetch_sub(1, Ordering::Relaxed);
            }
        })
    }

    /// Samples every queue a last time, reads the signals that were asked for, and ends. Earlier samples come first.
    #[must_use]
    pub fn finish(mut self) -> Vec<Sample> {
        let last = self.end();
        self.samples.try_iter().chain(last).collect()
    }

    /// Ends the thread, and returns its last samples.
    fn end(&mut self) -> Vec<Sample> {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        let last = self.thread.take().and_then(|thread| thread.join().ok());
        last.unwrap_or_default()
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // The samples have no reader any more.
        self.end();
    }
}

/// A queue, and when its next sample is due.
struct Watched {
    position: Position,
    /// The read index and the write index.
    seen: Option<[u64; 2]>,
    /// Lower indexes were read, or are no longer in the ring; only for a queue whose packets should be read.
    taken: u64,
    period: Duration,
    due: Instant,
}

struct Worker {
    shared: Arc<Shared>,
    sender: SyncSender<Sample>,
    waker: Waker,
    memory: Scattered,
    /// Sorted by process.
    queues: Vec<Watched>,
    /// Requested, and not read yet.
    signals: Vec<(u32, u64)>,
}

impl Worker {
    fn run(mut self) -> Vec<Sample> {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.renew();
            let began = Instant::now();
            let sampled = self.pass(began) + self.pass_over_signals();
            let worked = began.elapsed().max(LEAST * sampled);
            let next = self.queues.iter().map(|watched| watched.due).min();
            let until_due = next.map_or(SLOW, |due| due.saturating_duration_since(Instant::now()));
            // The thread is woken early only to take over other queues, or to end.
            std::thread::park_timeout(until_due.max(worked * (SHARE - 1)).min(SLOW));
        }
        self.renew();
        let mut last = Vec::new();
        let all: Vec<Position> = self.queues.iter().map(|watched| watched.position).collect();
        sample_queues(&mut self.memory, &all, Occasion::TraceEnd, |sample| {
            last.extend(sample.map(Sample::Queue));
        });
        let ends: HashMap<(u32, u64), u64> = last.iter().filter_map(end_of).collect();
        for watched in self.queues.iter().filter(|watched| watched.position.ring.is_some()) {
            let queue = &watched.position;
            let Some(&to) = ends.get(&(queue.pid, queue.handle)) else {
                continue;
            };
            taken::read(&mut self.memory, queue, (watched.taken, to), |taken| {
                last.push(Sample::Taken(taken));
                true
            });
        }
        self.renew_signals();
        signals::read(&mut self.memory, &mut self.signals, |signal| {
            last.push(Sample::Signal(signal));
        });
        last
    }

    /// Takes over the requested signals.
    fn renew_signals(&mut self) {
        let mut asked = self.shared.signals.lock().unwrap_or_else(PoisonError::into_inner);
        self.signals.append(&mut asked);
    }

    /// Reads those signals; returns the number of reads.
    fn pass_over_signals(&mut self) -> u32 {
        self.renew_signals();
        self.signals.truncate(SIGNALS);
        let count = self.signals.len();
        signals::read(&mut self.memory, &mut self.signals, |signal| {
            // A recorder that is behind asks again.
            let _ = self.sender.try_send(Sample::Signal(signal));
        });
        self.signals.clear();
        count as u32
    }

    /// Takes over the current queues.
    fn renew(&mut self) {
        let Some(mut now) = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.memory.forget_users();
        now.sort_by_key(|position| (position.pid, position.handle));
        let due = Instant::now();
        let known = self.queues.drain(..).map(|watched| (watched.position, watched));
        let mut known: HashMap<Position, Watched> = known.collect();
        let new = |position| Watched {
            position,
            seen: None,
            taken: 0,
            period: FAST,
            due,
        };
        let kept = now
            .into_iter()
            .map(|position| known.remove(&position).unwrap_or_else(|| new(position)));
        self.queues.extend(kept);
    }

    /// Samples the queues that are due; returns the number of samples.
    fn pass(&mut self, now: Instant) -> u32 {
        let mut due: Vec<usize> = (0..self.queues.len())
            .filter(|&at| self.queues[at].due <= now)
            .collect();
        // If there are too many for one pass, keeps those that have waited longest.
        const MOST: usize = 1024;
        if due.len() > MOST {
            due.sort_by_key(|&at| self.queues[at].due);
            due.truncate(MOST);
            due.sort_unstable();
        }
        let positions: Vec<Position> = due.iter().map(|&at| self.queues[at].position).collect();
        let mut at = due.iter();
        sample_queues(&mut self.memory, &positions, Occasion::Sample, |sample| {
            let Some(watched) = at.next().and_then(|&at| self.queues.get_mut(at)) else {
                return;
            };
            let seen = sample.map(|sample| [sample.read_index, sample.write_index]);
            let moved = seen.is_some() && seen != watched.seen;
            watched.period = if moved { FAST } else { (watched.period * 2).min(SLOW) };
            watched.due = now + watched.period;
            watched.seen = seen.or(watched.seen);
            // A recorder that is behind gets a later sample; one that is gone gets none. A sample that shows no change is
            // information, too: it bounds when the indexes moved.
            let _ = sample.map(|sample| self.sender.try_send(Sample::Queue(sample)));
        });
        positions.len() as u32 + self.read_taken(&due)
    }

    /// Reads what the GPU took from these queues since the last pass, if it should be read; returns the number of reads.
    fn read_taken(&mut self, due: &[usize]) -> u32 {
        let mut requests = 0;
        for &at in due {
            let Some(watched) = self.queues.get_mut(at) else {
                continue;
            };
            let (Some(_), Some([read_index, _])) = (watched.position.ring, watched.seen) else {
                continue;
            };
            let (sender, waker, waiting) = (&self.sender, &self.waker, &self.shared.taken);
            let (next, read) = taken::read(
                &mut self.memory,
                &watched.position,
                (watched.taken, read_index),
                |taken| {
                    // A recorder that is behind gets them later, while they are in the ring.
                    let has_room = waiting.load(Ordering::Relaxed) < TAKEN_WAITING;
                    let sent = has_room && {
                        waiting.fetch_add(1, Ordering::Relaxed);
                        sender.try_send(Sample::Taken(taken)).is_ok()
                    };
                    // The room would be full before the recorder looks by itself.
                    waker.wake();
                    if has_room && !sent {
                        waiting.fetch_sub(1, Ordering::Relaxed);
                    }
                    sent
                },
            );
            watched.taken = watched.taken.max(next);
            requests += read;
        }
        requests
    }
}

/// Samples these queues once, after the end of a recording.
#[must_use]
pub fn after_the_end(readers: Readers, mut queues: Vec<Position>) -> Vec<Sample> {
    queues.sort_by_key(|position| (position.pid, position.handle));
    let mut samples = Vec::new();
    sample_queues(&mut Scattered::new(readers), &queues, Occasion::Detached, |sample| {
        samples.extend(sample.map(Sample::Queue));
    });
    samples
}

/// Returns the queue of a last sample, and its read index.
fn end_of(sample: &Sample) -> Option<((u32, u64), u64)> {
    match sample {
        Sample::Queue(queue) => Some(((queue.origin.pid, queue.handle), queue.read_index)),
        Sample::Signal(_) | Sample::Taken(_) => None,
    }
}

/// Samples queues, which are sorted by process; `seen` receives the sample of each queue in order.
fn sample_queues(
    memory: &mut Scattered,
    queues: &[Position],
    occasion: Occasion,
    mut seen: impl FnMut(Option<Progress>),
) {
    // The read index comes first, so that it is never above the write index of a real queue.
    let places = |queue: &Position| [queue.read_pointer, queue.write_pointer];
    let progress = |queue: &Position, indexes: Seen<2>| Progress {
        origin: indexes.origin,
        after_ns: indexes.after_ns,
        handle: queue.handle,
        read_index: indexes.words[0],
        write_index: indexes.words[1],
        rung_end: None,
        occasion,
    };
    memory.read_each(
        queues,
        |queue| queue.pid,
        places,
        |queue, indexes| seen(indexes.map(|indexes| progress(queue, indexes))),
    );
}

#[cfg(test)]
mod tests;
