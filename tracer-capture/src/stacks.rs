//! User stacks of submissions: threads of their own take the samples of the programs, unwind them and name their functions.
//!
//! Files that processes have mapped are read by readers and understood by parsers ([`crate::confined`]). The threads walk by the
//! tables that they return. If they are slower than the samples, their buffer fills up, and the programs count what does not fit.

mod perf_map;
mod process;
mod walk;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use aya::maps::{MapData, RingBuf};
use tracer_common::record::StackSample;
use tracer_core::tables::Stack;

use crate::{
    CaptureError,
    confined::{Examine, Parsers, Readers},
    decode,
};
use process::{Modules, PATIENCE, Process, View};
use walk::Registers;

/// Pause after the buffer was empty.
const NAP: Duration = Duration::from_millis(1);
/// The maximum number of stacks that wait for the collector.
const WAITING: usize = 1 << 14;
/// The maximum number of samples that wait to be unwound, 16 KiB each.
const SAMPLES: usize = 1 << 10;
/// The maximum number of processes that are remembered.
const MAX_PROCESSES: usize = 256;
/// How long the end of a recording waits for the last stacks.
const LAST: Duration = Duration::from_secs(20);

/// The stacks of a session.
pub struct Stacks {
    receiver: Receiver<Stack>,
    stop: Arc<AtomicBool>,
    /// Stacks that arrived while the session ended.
    late: Vec<Stack>,
}

impl Stacks {
    /// Starts the thread that takes samples from `ring`.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if there is no thread.
    pub fn start(ring: RingBuf<MapData>, readers: Readers) -> Result<Self, CaptureError> {
        let (sender, receiver) = sync_channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::Builder::new()
            .name("stacks".into())
            .spawn(move || run(ring, &readers, &stopped, &sender))
            .map_err(|e| CaptureError::system("starting a thread", e))?;
        Ok(Self {
            receiver,
            stop,
            late: Vec::new(),
        })
    }

    /// Hands over the stacks that are unwound.
    pub fn take(&mut self, mut sink: impl FnMut(&Stack)) {
        self.late.drain(..).for_each(|stack| sink(&stack));
        self.receiver.try_iter().for_each(|stack| sink(&stack));
    }

    /// Waits for the last stacks, after the last program has run. [`Self::take`] hands them over.
    pub fn finish(&mut self) {
        self.stop.store(true, Ordering::Release);
        let until = Instant::now() + LAST;
        loop {
            match self
                .receiver
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(stack) => self.late.push(stack),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    log::warn!("unwinding the last stacks takes too long: the rest is missing");
                    return;
                }
            }
        }
    }
}

/// Reads what is needed of processes as soon as samples arrive, because the processes may exit. Another thread unwinds: the first
/// stacks of a process wait until its libraries are parsed.
fn run(ring: RingBuf<MapData>, readers: &Readers, stop: &AtomicBool, sender: &SyncSender<Stack>) {
    let parsers = Parsers::new(readers);
    let (samples, taken) = sync_channel(SAMPLES);
    std::thread::scope(|scope| {
        let unwinder = std::thread::Builder::new().name("unwinder".into());
        if unwinder.spawn_scoped(scope, move || unwind(&taken, sender)).is_ok() {
            collect(ring, readers, &parsers, stop, &samples);
        }
        drop(samples);
    });
}

fn collect<'a>(
    mut ring: RingBuf<MapData>,
    readers: &'a Readers,
    parsers: &'a Parsers,
    stop: &AtomicBool,
    samples: &SyncSender<(Box<StackSample>, Option<View<'a>>)>,
) {
    let mut processes: HashMap<(u32, u32), Process<'a>> = HashMap::new();
    loop {
        let stopping = stop.load(Ordering::Acquire);
        let Some(item) = ring.next() else {
            if stopping {
                return;
            }
            std::thread::sleep(NAP);
            continue;
        };
        let Some(sample) = decode::stack(&item) else { continue };
        let key = (sample.header.tgid, sample.generation);
        if !processes.contains_key(&key) {
            if processes.len() >= MAX_PROCESSES {
                processes.clear();
            }
            // A process that is gone is asked for again: that costs little.
            let examine = Examine::new(readers, parsers, key.0, Instant::now() + PATIENCE);
            if let Some(process) = examine.ok().map(Process::new).filter(|process| !process.is_unknown()) {
                processes.insert(key, process);
            }
        }
        let view = processes.get_mut(&key).map(|process| process.view(sample));
        if samples.send((Box::new(*sample), view)).is_err() {
            return;
        }
    }
}

fn unwind(samples: &Receiver<(Box<StackSample>, Option<View<'_>>)>, sender: &SyncSender<Stack>) {
    let mut modules = Modules::default();
    for (sample, view) in samples {
        if sender.send(unwound(&sample, view, &mut modules)).is_err() {
            return;
        }
    }
}

/// Unwinds a sample.
fn unwound(sample: &StackSample, view: Option<View<'_>>, modules: &mut Modules) -> Stack {
    let mut stack = Stack {
        pid: sample.header.tgid,
        tid: sample.header.tid,
        time_ns: sample.header.time_ns,
        frames: None,
        complete: false,
    };
    let Some(mut view) = view else { return stack };
    let at = Registers {
        ip: sample.ip,
        sp: sample.sp,
        bp: sample.bp,
    };
    let copy = walk::Stack {
        start: sample.sp,
        bytes: sample.bytes.get(..sample.len as usize).unwrap_or_default(),
    };
    let (places, complete) = walk::walk(at, copy, |place, next| view.rule(modules, place, next));
    let mut lines = view.lines(modules, &places);
    lines.reverse();
    stack.frames = Some(lines.join("\n"));
    stack.complete = complete;
    stack
}
