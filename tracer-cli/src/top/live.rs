//! A live view, and a trace of it when the user asks for one.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tracer_capture::{inventory::Inventory, pause::guardian::Guardian, sys, target::launch::Terminal};
use tracer_core::{
    live::{Live, Picture},
    tables::Fact,
    units::bytes,
};
use tracer_store::{
    Placing, TraceWriter,
    manifest::{EndedBy, Target},
};
use tracer_tui::{Action, Status};

use super::{blind, recording::Recording, screen};
use crate::{
    cli::Top,
    collect::{Collector, Sink},
    record::{OnFailure, Recorder, manifest, output},
    target::{Ending, Ready, Subject, Watched},
};

/// State that the collector's thread and the screen share.
#[derive(Default)]
struct Shared {
    live: Live,
    blind: Vec<String>,
    order: Option<Order>,
    /// The path of the current recording.
    recording: Option<PathBuf>,
    /// The result of an order.
    said: Option<String>,
}

/// A request of the user concerning the recording.
enum Order {
    Begin(Box<Recorder>, PathBuf),
    End,
}

type Handle = Arc<Mutex<Shared>>;

/// Locks the state, also after a panic in another thread: it is plain data.
fn lock(shared: &Handle) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sink.
struct Feed {
    shared: Handle,
    recording: Recording<Recorder>,
    /// Traces that are being closed. This takes as long as the disk needs.
    closing: Vec<JoinHandle<()>>,
}

impl Sink for Feed {
    fn take(&mut self, fact: &Fact) {
        lock(&self.shared).live.apply(fact);
        self.recording.take(fact);
    }

    fn snapshot(&mut self, fact: &Fact) {
        lock(&self.shared).live.apply(fact);
        self.recording.snapshot(fact);
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        // A full disk ends the recording, not the view.
        let ticked = self.recording.tick();
        let mut shared = lock(&self.shared);
        if let Err(error) = ticked {
            shared.recording = None;
            shared.said = Some(format!("recording ended: {error:#}"));
        }
        shared.live.advance(sys::monotonic_ns());
        Ok(())
    }

    fn describe(&mut self, inventory: &Inventory) {
        let order = {
            let mut shared = lock(&self.shared);
            shared.describe(inventory);
            shared.order.take()
        };
        self.recording.describe(inventory);
        match order {
            Some(Order::Begin(recorder, dir)) => {
                self.recording.begin(*recorder);
                lock(&self.shared).recording = Some(dir);
            }
            Some(Order::End) => self.close(inventory, None),
            None => {}
        }
    }
}

impl Feed {
    /// Ends the trace, if there is one.
    fn close(&mut self, inventory: &Inventory, ending: Option<Ending>) {
        let Some(recorder) = self.recording.end() else { return };
        let (shared, inventory) = (Arc::clone(&self.shared), inventory.clone());
        let ending = ending.unwrap_or_else(|| Ending::early(EndedBy::User));
        let close = move || {
            let said = match recorder.finish(&inventory, &ending) {
                Ok(outcome) => {
                    let written = outcome.written;
                    format!("recorded {} ({})", written.dir.display(), bytes(written.bytes))
                }
                Err(error) => format!("recording ended: {error:#}"),
            };
            let mut shared = lock(&shared);
            shared.recording = None;
            shared.said = Some(said);
        };
        self.closing.push(std::thread::spawn(close));
    }

    /// Waits for the traces. `ending`: how the watched processes ended, if they have exited.
    fn finish(mut self, inventory: &Inventory, ending: Option<Ending>) {
        self.close(inventory, ending);
        for closing in self.closing {
            // If that thread panicked, its trace has no end, and can be read as such.
            let _ = closing.join();
        }
        let mut shared = lock(&self.shared);
        shared.describe(inventory);
        shared.live.complete();
    }
}

impl Shared {
    fn describe(&mut self, inventory: &Inventory) {
        self.live.set_gpus(manifest::gpus(&manifest::devices(inventory)));
        self.live.set_capture(manifest::capture(inventory));
        self.blind = if inventory.has_runtime() {
            blind(&manifest::capabilities(inventory))
        } else {
            vec!["user queues (no HSA runtime yet)".to_owned()]
        };
    }
}

/// A subject that is watched.
pub struct Watch {
    shared: Handle,
    collector: Option<Collector<Feed>>,
    watched: Option<Watched>,
    ending: Option<Ending>,
    /// The time at which the capture began to end.
    ended_ns: Option<u64>,
    until: Option<Instant>,
    subject: Subject,
    output: Option<PathBuf>,
    placing: Placing,
}

impl Watch {
    /// Sets everything up and starts watching.
    pub fn start(options: &Top, guardian: Option<Guardian>) -> anyhow::Result<Self> {
        let placing = Placing {
            owner: output::owner(options.capture.as_root)?,
            mode: options.mode,
            ..Placing::default()
        };
        let ready = Ready::prepare(&options.capture, &options.command, Terminal::Away, guardian)?;
        let shared = Handle::default();
        let feed = Feed {
            shared: Arc::clone(&shared),
            recording: Recording::new(),
            closing: Vec::new(),
        };
        let mut subject = ready.subject;
        if matches!(subject.target, Target::Command { .. }) {
            // Whenever a recording begins, the watched processes run already.
            subject.target = Target::Attached {
                pids: vec![subject.pid],
            };
        }
        let collector = Collector::start(ready.session, feed, &ready.there)?;
        let watched = match ready.start.go() {
            Ok(watched) => watched,
            Err(error) => {
                drop(collector.finish()?);
                return Err(error);
            }
        };
        Ok(Self {
            shared,
            collector: Some(collector),
            watched: Some(watched),
            ending: None,
            ended_ns: None,
            until: options.duration.map(|duration| Instant::now() + duration),
            subject,
            output: options.output.clone(),
            placing,
        })
    }

    /// Returns whether nothing more will come: the watched processes have exited, or the time is over.
    pub fn is_over(&mut self) -> anyhow::Result<bool> {
        let Some(watched) = &mut self.watched else {
            return Ok(true);
        };
        self.ending = watched.ended()?;
        if self.ending.is_some() {
            self.watched = None;
        }
        let failed = self.collector.as_ref().is_none_or(Collector::has_failed);
        Ok(failed || self.watched.is_none() || self.until.is_some_and(|until| Instant::now() >= until))
    }

    /// Detaches the probes and takes the last facts. The watched processes continue.
    pub fn end(&mut self) -> anyhow::Result<()> {
        if let Some(collector) = self.collector.take() {
            self.ended_ns = Some(sys::monotonic_ns());
            let (feed, inventory) = collector.finish()?;
            feed.finish(&inventory, self.ending.take());
        }
        Ok(())
    }

    /// Returns the current picture; after the end, the picture of the moment at which the capture ended.
    pub fn current(&self) -> Picture {
        let live = &lock(&self.shared).live;
        self.ended_ns
            .map_or_else(|| live.picture(), |ended| live.picture_at(ended))
    }

    /// Returns the command's process, if it continues to run.
    pub fn goes_on(&self) -> Option<u32> {
        let command = self.watched.as_ref().and_then(Watched::command)?;
        Some(command.pid)
    }

    /// Returns the result of the last recording.
    pub fn said(&self) -> Option<String> {
        lock(&self.shared).said.take()
    }

    fn record(&mut self) -> anyhow::Result<Option<String>> {
        if self.collector.is_none() {
            anyhow::bail!("all traced processes have exited");
        }
        let mut shared = lock(&self.shared);
        if shared.order.is_some() {
            return Ok(None);
        }
        if shared.recording.is_some() {
            shared.order = Some(Order::End);
            return Ok(Some("ending the recording".to_owned()));
        }
        // There may be several recordings: the path does not exist yet.
        let (wanted, subject) = (self.output.as_deref(), &self.subject);
        let dir = output::directory(wanted, &subject.name, subject.pid, true);
        let manifest = manifest::begin(subject.target.clone());
        let writer = TraceWriter::create_as(&dir, manifest, self.placing.clone())?;
        shared.order = Some(Order::Begin(Box::new(Recorder::new(writer, OnFailure::End)), dir));
        Ok(None)
    }
}

/// Interval at which `--once` checks whether it should end.
pub const LOOK: Duration = Duration::from_millis(20);

impl screen::Source for Watch {
    fn picture(&mut self) -> Option<Picture> {
        self.collector.as_ref()?;
        let over = self.is_over().unwrap_or(true);
        if over && let Err(error) = self.end() {
            lock(&self.shared).said = Some(format!("{error:#}"));
        }
        Some(self.current())
    }

    fn status(&mut self, shown: &mut Status) {
        let mut shared = lock(&self.shared);
        let said = shared.said.take();
        *shown = Status {
            source: self.subject.title.clone(),
            blind: shared.blind.clone(),
            speed: None,
            ended: self.collector.is_none(),
            recording: shared.recording.as_ref().map(|dir| dir.display().to_string()),
            message: said.or_else(|| shown.message.take()),
        };
    }

    fn act(&mut self, action: Action) -> anyhow::Result<Option<String>> {
        match action {
            Action::Record => self.record(),
            Action::Speed(_) => anyhow::bail!("only a replay has a speed"),
            Action::Quit => Ok(None),
        }
    }
}
