//! The recorder's thread: drains events, draws conclusions, writes them down.

use std::{
    collections::BTreeMap,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use tracer_capture::{attach::Attached, session::Session, sys};
use tracer_core::{
    event::{Event, Origin, There},
    fact::{Fact, Loss},
    model::Model,
    summary::{Report, Summary},
};
use tracer_store::{Manifest, TraceWriter, Written};

use super::{looks::Looks, manifest, scheduler};

/// Records taken between two looks at the clock.
const BATCH: usize = 4096;
/// How often losses are counted and rows handed to the writer.
const TICK: Duration = Duration::from_millis(50);
/// How often living queues and the manifest are written, for readers of a recording that goes on or was killed.
const SNAPSHOT: Duration = Duration::from_millis(500);
/// Pause when nothing came. Programs don't wake the reader: that would cost the traced thread a system call's time.
const NAP: Duration = Duration::from_millis(1);

/// How the recording ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// The command's status, if it ended.
    pub status: Option<ExitStatus>,
}

/// A recording that ended.
pub struct Outcome {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its counts.
    pub report: Report,
    /// What is on disk.
    pub written: Written,
}

/// What the thread tells while it works.
#[derive(Default)]
struct Gauges {
    stop: AtomicBool,
    facts: AtomicU64,
    lost: AtomicU64,
}

/// The running thread.
pub struct Recorder {
    gauges: Arc<Gauges>,
    began: Instant,
    thread: JoinHandle<anyhow::Result<Work>>,
}

impl Recorder {
    /// Starts it; `there`: processes that were attached to.
    pub fn start(session: Session, writer: TraceWriter, there: &[Attached]) -> anyhow::Result<Self> {
        let gauges = Arc::new(Gauges::default());
        let mut work = Work {
            session,
            sinks: Sinks::new(writer),
            model: Model::new(),
            looks: Looks::start()?,
            gauges: Arc::clone(&gauges),
        };
        work.begin_with(there);
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(|| work.run());
        Ok(Self {
            gauges,
            began: Instant::now(),
            thread: thread.context("starting a thread")?,
        })
    }

    /// One line for the terminal.
    pub fn progress(&self) -> String {
        let facts = self.gauges.facts.load(Ordering::Relaxed);
        let seconds = self.began.elapsed().as_secs_f64();
        let lost = self.gauges.lost.load(Ordering::Relaxed);
        format!(
            "recording  {seconds:.0} s, {facts} facts ({:.0}/s), {lost} lost",
            facts as f64 / seconds.max(0.001)
        )
    }

    /// Stops capture, takes what is left, and closes the trace.
    pub fn finish(self, ending: Ending) -> anyhow::Result<Outcome> {
        self.gauges.stop.store(true, Ordering::Release);
        let work = self
            .thread
            .join()
            .map_err(|_| anyhow!("the recorder's thread panicked"))??;
        work.finish(ending)
    }
}

/// Where facts go.
struct Sinks {
    writer: TraceWriter,
    /// Of what was watched will be known only at the end.
    summary: Summary,
    losses: BTreeMap<String, u64>,
    facts: u64,
}

impl Sinks {
    fn new(writer: TraceWriter) -> Self {
        Self {
            writer,
            summary: Summary::new(Default::default()),
            losses: BTreeMap::new(),
            facts: 0,
        }
    }

    fn take(&mut self, fact: &Fact) {
        self.facts += 1;
        if let Fact::Loss(loss) = fact {
            *self.losses.entry(loss.source.clone()).or_default() += loss.count;
        }
        self.summary.add(fact);
        self.writer.push(fact);
    }
}

/// What the thread works with.
struct Work {
    session: Session,
    sinks: Sinks,
    model: Model,
    looks: Looks,
    gauges: Arc<Gauges>,
}

impl Work {
    /// Processes that were there before.
    fn begin_with(&mut self, there: &[Attached]) {
        let Self { sinks, model, .. } = self;
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
            });
            model.apply(&event, &mut |fact| sinks.take(&fact));
        }
    }

    fn run(mut self) -> anyhow::Result<Self> {
        sys::run_first();
        let mut ticked = Instant::now();
        let mut shown = Instant::now();
        let mut stopped = false;
        loop {
            let stopping = self.gauges.stop.load(Ordering::Acquire);
            if stopping && !stopped {
                stopped = true;
                // The last queues are known only when their creations are.
                while self.drain() > 0 {}
                self.looks.finish(&self.model);
                self.session.detach();
            }
            self.looks.collect();
            let drained = self.drain();
            if drained < BATCH {
                let Self {
                    looks, model, sinks, ..
                } = &mut self;
                looks.apply(model, |fact| sinks.take(fact));
            }
            if ticked.elapsed() >= TICK || stopping {
                ticked = Instant::now();
                self.tick()?;
            }
            if shown.elapsed() >= SNAPSHOT {
                shown = Instant::now();
                self.snapshot();
            }
            if drained == 0 {
                if stopping {
                    return Ok(self);
                }
                std::thread::sleep(NAP);
            }
        }
    }

    fn drain(&mut self) -> usize {
        let Self {
            session, sinks, model, ..
        } = self;
        session.drain(BATCH, &mut |event: &Event<'_>| {
            model.apply(event, &mut |fact| sinks.take(&fact));
        })
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let Self {
            session,
            sinks,
            model,
            gauges,
            looks,
        } = self;
        session.report_losses(&mut |event| model.apply(event, &mut |fact| sinks.take(&fact)));
        looks.watch(model);
        gauges.facts.store(sinks.facts, Ordering::Relaxed);
        gauges.lost.store(sinks.losses.values().sum(), Ordering::Relaxed);
        Ok(sinks.writer.tick(Instant::now())?)
    }

    /// What a reader needs who comes before the end.
    fn snapshot(&mut self) {
        let Self {
            session, sinks, model, ..
        } = self;
        for queue in model.queues() {
            sinks.writer.push(&Fact::Queue(queue));
        }
        for process in model.processes() {
            sinks.writer.push(&Fact::Process(process.clone()));
        }
        for code_object in model.code_objects() {
            sinks.writer.push(&Fact::CodeObject(code_object.clone()));
        }
        let inventory = session.inventory();
        let losses = &sinks.losses;
        let before = sinks.writer.manifest().clone();
        let mut now = before.clone();
        manifest::describe(&mut now, &inventory, losses);
        if now != before {
            sinks.writer.update_manifest(|manifest| *manifest = now);
        }
    }

    fn finish(mut self, ending: Ending) -> anyhow::Result<Outcome> {
        let Self { sinks, model, .. } = &mut self;
        model.finish(sys::monotonic_ns(), &mut |fact| sinks.take(&fact));
        let inventory = self.session.inventory();
        let Sinks {
            writer,
            mut summary,
            losses,
            ..
        } = self.sinks;
        let mut last = writer.manifest().clone();
        let calls = summary.driver_calls(inventory.has("driver"));
        let written = writer.finish(|manifest| {
            manifest::describe(manifest, &inventory, &losses);
            manifest::end(manifest, ending.status);
            scheduler::confirm(&mut manifest.devices, manifest.simulated.is_some(), &calls);
            last = manifest.clone();
        });
        let written = written.context("writing the trace")?;
        if written.dropped > 0 {
            let time_ns = sys::monotonic_ns();
            summary.add(&Fact::Loss(Loss {
                time_ns,
                source: "trace-writer".to_owned(),
                count: written.dropped,
            }));
        }
        let mut report = summary
            .with_capabilities(manifest::capabilities(&inventory))
            .finish(true);
        report.complete = last.complete;
        Ok(Outcome {
            manifest: last,
            report,
            written,
        })
    }
}
