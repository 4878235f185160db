//! The collector's thread: drains events, draws conclusions, and passes the facts to a sink.

mod samples;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use tracer_capture::{inventory::Inventory, session::Session, sys, target::attach::Attached, wake::Waker};
use tracer_core::{
    event::{Event, Origin, There},
    model::Model,
    tables::Fact,
};

use crate::{record::manifest::capabilities, target};
use samples::Samples;

/// Number of records that the collector takes between two reads of the clock.
const BATCH: usize = 4096;
/// Interval at which the collector counts losses while records arrive, and at which a sink may do work that costs more than a fact.
const TICK: Duration = Duration::from_millis(50);
/// Interval at which the collector reports live queues and the inventory, for consumers that read before the end, and counts losses
/// in any case.
const SNAPSHOT: Duration = Duration::from_millis(500);
/// How long the collector waits at the end for a program that was interrupted while it wrote a record: such a program needs only
/// its processor.
const PATIENCE: Duration = Duration::from_secs(1);

/// A consumer of facts: a trace, the state of a screen, or the state of a server.
pub trait Sink: Send + 'static {
    /// Takes a fact. Each fact comes once.
    fn take(&mut self, fact: &Fact);
    /// Takes an observation, before the facts that are concluded from it.
    fn saw(&mut self, _event: &Event<'_>) {}
    /// Takes the current state of an object that still exists. It comes repeatedly, and once more as a fact at the object's end.
    fn snapshot(&mut self, fact: &Fact);
    /// Called at intervals.
    ///
    /// # Errors
    /// Returns errors that end the collection.
    fn tick(&mut self) -> anyhow::Result<()>;
    /// Takes the current inventory of the capture. Follows every round of snapshots.
    fn describe(&mut self, inventory: &Inventory);
}

/// State that the thread shares while it works.
#[derive(Default)]
struct Gauges {
    stop: AtomicBool,
    dispatches: AtomicU64,
    lost: AtomicU64,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since its begin.
    pub since: Duration,
    /// Dispatches.
    pub dispatches: u64,
    /// Losses of all sources.
    pub lost: u64,
}

/// The running thread, and the sink that it works for.
pub struct Collector<S> {
    gauges: Arc<Gauges>,
    /// Wakes the thread.
    waker: Waker,
    began: Instant,
    thread: JoinHandle<anyhow::Result<Work<S>>>,
}

impl<S: Sink> Collector<S> {
    /// Starts the collector. `there`: processes that tracer attached to.
    pub fn start(session: Session, sink: S, there: &[Attached]) -> anyhow::Result<Self> {
        let gauges = Arc::new(Gauges::default());
        let out = Out {
            sink,
            dispatches: 0,
            lost: 0,
        };
        let waker = session.waker();
        let mut work = Work {
            session,
            out,
            model: Model::new(),
            samples: Samples::start(target::readers()?, waker.clone())?,
            gauges: Arc::clone(&gauges),
            quiet_since: Instant::now(),
        };
        work.begin_with(there);
        // The kernel keeps the first 15 bytes of the name.
        let thread = std::thread::Builder::new().name("collector".into());
        let thread = thread.spawn(|| work.run());
        Ok(Self {
            gauges,
            waker,
            began: Instant::now(),
            thread: thread.context("starting a thread")?,
        })
    }

    /// Returns how far the recording is.
    pub fn progress(&self) -> Progress {
        let of = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed);
        Progress {
            since: self.began.elapsed(),
            dispatches: of(&self.gauges.dispatches),
            lost: of(&self.gauges.lost),
        }
    }

    /// Returns whether the thread ended by itself; [`Collector::finish`] returns the reason.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the capture and drains what is left. The sink then has everything.
    pub fn finish(self) -> anyhow::Result<(S, Inventory)> {
        self.gauges.stop.store(true, Ordering::Release);
        self.waker.wake();
        let ended = self.thread.join();
        Ok(ended.map_err(|_| anyhow!("the collector's thread panicked"))??.finish())
    }
}

/// The sink, and the number of dispatches and losses that it has received.
struct Out<S> {
    sink: S,
    dispatches: u64,
    lost: u64,
}

impl<S: Sink> Out<S> {
    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(_) => self.dispatches += 1,
            Fact::Loss(loss) => self.lost = self.lost.saturating_add(loss.count),
            _ => {}
        }
        self.sink.take(fact);
    }

    /// Takes what the model concludes from an event.
    fn conclude(&mut self, model: &mut Model, event: &Event<'_>) {
        model.apply(event, &mut |fact| self.take(&fact));
    }
}

/// The state of the thread.
struct Work<S> {
    session: Session,
    out: Out<S>,
    model: Model,
    samples: Samples,
    gauges: Arc<Gauges>,
    /// When the last record or sample was taken.
    quiet_since: Instant,
}

impl<S: Sink> Work<S> {
    /// Applies the processes that existed before the session.
    fn begin_with(&mut self, there: &[Attached]) {
        for process in there {
            let origin = Origin {
                time_ns: process.time_ns,
                pid: process.pid,
                tid: process.pid,
            };
            let event = Event::There(There {
                origin,
                comm: &process.comm,
                queues: &process.queues,
                idle: !process.has_runtime,
            });
            self.out.conclude(&mut self.model, &event);
        }
    }

    fn run(mut self) -> anyhow::Result<Self> {
        sys::run_first();
        let mut ticked = Instant::now();
        let mut shown = Instant::now();
        // The position where the records end, and until when to wait for them, once the collector stops.
        let mut last = None;
        loop {
            let stopping = self.gauges.stop.load(Ordering::Acquire);
            if stopping && last.is_none() {
                self.stop();
                last = Some((self.session.mark(), Instant::now() + PATIENCE));
            }
            if self.samples.collect(&self.session) {
                // More will come.
                self.quiet_since = Instant::now();
            }
            let is_more = self.drain();
            let out = &mut self.out;
            self.samples
                .apply(&self.session, &mut self.model, |fact| out.take(fact));
            let is_due = shown.elapsed() >= SNAPSHOT;
            if ticked.elapsed() >= TICK || stopping || is_due {
                // Asking for losses costs more than anything else of an idle recording.
                let count_losses = stopping || is_due || self.quiet_since >= ticked;
                ticked = Instant::now();
                self.tick(count_losses)?;
            }
            if is_due {
                shown = Instant::now();
                self.snapshot();
            }
            if !is_more {
                if let Some((end, until)) = last
                    && (self.session.is_drained_to(end) || Instant::now() >= until)
                {
                    self.session.give_up_before(end);
                    // The calls that were still open when the recording ended.
                    let (out, model) = (&mut self.out, &mut self.model);
                    self.session.report_open_calls(&mut |event| out.conclude(model, event));
                    self.tick(true)?;
                    return Ok(self);
                }
                self.session.wait(self.quiet_since.elapsed());
            }
        }
    }

    /// Takes the last samples, and stops to record. A process may submit all the time.
    fn stop(&mut self) {
        // The last queues are known only after the records of their creation.
        self.drain_to(self.session.mark());
        // These samples show what doorbells published, so the probes must still record.
        self.samples.finish(&self.session, &mut self.model);
        self.session.stop_counting();
        self.drain_to(self.session.mark());
        let out = &mut self.out;
        self.samples
            .apply(&self.session, &mut self.model, |fact| out.take(fact));
        self.samples.confirm(&self.session, &self.model);
        self.session.detach();
    }

    /// Drains the records up to `mark` while programs continue to run, for at most [`PATIENCE`].
    fn drain_to(&mut self, mark: u64) {
        let last = Instant::now() + PATIENCE;
        while !self.session.is_drained_to(mark) && Instant::now() < last {
            if !self.drain() {
                self.session.wait(Duration::ZERO);
            }
        }
    }

    /// Returns whether more records may wait.
    fn drain(&mut self) -> bool {
        let (out, model) = (&mut self.out, &mut self.model);
        let mut any = false;
        let is_more = self.session.drain(BATCH, &mut |event: &Event<'_>| {
            any = true;
            out.sink.saw(event);
            out.conclude(model, event);
        });
        if any {
            self.quiet_since = Instant::now();
        }
        is_more
    }

    fn tick(&mut self, count_losses: bool) -> anyhow::Result<()> {
        let (out, model) = (&mut self.out, &mut self.model);
        if count_losses {
            self.session.report_losses(&mut |event| out.conclude(model, event));
        }
        self.samples.watch(model);
        self.gauges.dispatches.store(out.dispatches, Ordering::Relaxed);
        self.gauges.lost.store(out.lost, Ordering::Relaxed);
        out.sink.tick()
    }

    /// Takes the counts of API calls, and returns the current inventory.
    fn take_stock(&mut self) -> Inventory {
        let (out, model) = (&mut self.out, &mut self.model);
        let inventory = self.session.inventory();
        model.watch_queue_calls(capabilities(&inventory).hsa_queues);
        self.session.report_api_stats(&mut |event| out.conclude(model, event));
        inventory
    }

    fn snapshot(&mut self) {
        let inventory = self.take_stock();
        let (model, sink) = (&self.model, &mut self.out.sink);
        let stats = model.api_stats().cloned().map(Fact::ApiStats);
        let queues = model.queues().map(Fact::Queue).chain(model.proxies().map(Fact::Proxy));
        let processes = model.processes().cloned().map(Fact::Process);
        let code_objects = model.code_objects().cloned().map(Fact::CodeObject);
        let all = stats.chain(queues).chain(processes).chain(code_objects);
        all.for_each(|fact| sink.snapshot(&fact));
        sink.describe(&inventory);
    }

    fn finish(mut self) -> (S, Inventory) {
        let inventory = self.take_stock();
        let out = &mut self.out;
        self.model.finish(sys::monotonic_ns(), &mut |fact| out.take(&fact));
        (self.out.sink, inventory)
    }
}
