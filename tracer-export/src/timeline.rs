//! The timeline of a trace: tracks, and what is on them, for formats that draw one. A [`Canvas`] writes it in its format.
//!
//! | rows | track | as |
//! |---|---|---|
//! | `api_calls`, `ioctls`, `driver_calls` | the thread | slices, each inside the one around it |
//! | `doorbells`, `dispatches`, `packets`, `copies`, runs | the queue | instants at the time of the doorbell |
//! | dispatches with a time of the GPU | the queue | a span of the GPU, too |
//! | `requests` | the proxy | instants |
//! | `ring_jobs` | the ring | spans from run to done; what is not known is an instant |
//! | `queues`, `code_objects`, `driver_events` | the queue, the process, the thread | instants |
//! | `progress`, `losses` | counters | published packets that the GPU has not taken; events lost |

mod canvas;
mod names;
mod place;

use std::collections::{HashMap, HashSet};

use tracer_core::tables::{ApiCall, Dispatch, Fact, GpuTime, Record, RingJob, Table};
use tracer_core::words::Named;

use crate::joined::{Group, Joined};
use crate::nest::{Call, Nest, Slice, Step};
use crate::{About, ExportError, Exporter, Written};

pub use canvas::{Args, Canvas, Event, Gpu, Track};
use names::Names;

/// Draws facts on a canvas.
#[derive(Debug)]
pub struct Timeline<C> {
    canvas: C,
    about: About,
    names: Names,
    /// Tracks that the canvas knows.
    declared: HashSet<Track>,
    threads: HashMap<Track, Nest<Event>>,
    group: Group,
    /// The first API call of the export: a flow from an earlier one would begin nowhere.
    first_call: Option<u64>,
    lost: HashMap<String, u64>,
    written: Written,
}

impl<C: Canvas> Timeline<C> {
    /// Returns a timeline that is drawn on this canvas.
    #[must_use]
    pub fn new(canvas: C, about: &About) -> Self {
        Self {
            canvas,
            names: Names::new(about),
            about: about.clone(),
            declared: HashSet::new(),
            threads: HashMap::new(),
            group: Group::default(),
            first_call: None,
            lost: HashMap::new(),
            written: Written {
                without_gpu_time: Some(0),
                ..Written::default()
            },
        }
    }

    fn draw(&mut self, rows: Vec<Joined>) -> Result<(), ExportError> {
        rows.into_iter().try_for_each(|row| match row {
            Joined::Dispatch(dispatch, time) => self.dispatch(*dispatch, time.map(|time| *time)),
            Joined::Alone(time) => self.time_alone(*time),
            Joined::Other(fact) => self.one(&fact),
        })
    }

    /// Tells the canvas of a track before the first thing on it, and of the track around it.
    fn declare(&mut self, track: Track) -> Result<Track, ExportError> {
        if !self.declared.contains(&track) {
            if let Some(around) = track.around() {
                self.declare(around)?;
            }
            self.declared.insert(track);
            self.canvas.track(track, &self.names.of(track))?;
        }
        Ok(track)
    }

    /// Names a track again: its description came after the first thing on it.
    fn rename(&mut self, track: Track) -> Result<(), ExportError> {
        if self.declared.contains(&track) {
            return Ok(self.canvas.track(track, &self.names.of(track))?);
        }
        self.declare(track).map(drop)
    }

    fn instant(&mut self, track: Track, at: u64, event: &Event) -> Result<(), ExportError> {
        let track = self.declare(track)?;
        Ok(self.canvas.instant(track, at, event)?)
    }

    fn slice(&mut self, track: Track, slice: Slice<Event>) -> Result<(), ExportError> {
        let track = self.declare(track)?;
        let nest = self.threads.entry(track).or_default();
        let (canvas, unfinished) = (&mut self.canvas, &mut self.written.unfinished);
        nest.push(slice, &mut |step| draw_step(canvas, unfinished, track, step))
    }

    /// Returns a call that submitted something, unless it is before the window.
    fn shown(&self, call: Option<u64>) -> Option<u64> {
        call.filter(|call| self.first_call.is_some_and(|first| first <= *call))
    }

    fn api_call(&mut self, call: &ApiCall, record: Record) -> Result<(), ExportError> {
        self.first_call.get_or_insert(call.call);
        let mut event = Event::new(&call.function, api_category(&call.layer), record);
        event.submits = (call.dispatches + call.copies > 0).then_some(call.call);
        let slice = Slice {
            begin: call.enter_ns,
            end: call.exit_ns,
            call: Some(Call {
                number: call.call,
                parent: call.parent,
            }),
            payload: event,
        };
        let (pid, tid) = (call.pid, call.tid);
        self.slice(Track::Thread { pid, tid }, slice)
    }

    fn dispatch(&mut self, row: Dispatch, time: Option<GpuTime>) -> Result<(), ExportError> {
        let track = self.declare(Track::Queue {
            pid: row.pid,
            queue: row.queue,
        })?;
        let name = names::kernel(row.kernel.as_deref(), row.kernel_object);
        let call = self.shown(row.api_call);
        let gpu = time.as_ref().and_then(|time| Gpu::of(time, Some(&row)));
        let at = row.time_ns;
        let mut event = Event::new(&name, "dispatch", Record::of(&Fact::Dispatch(row)));
        if let Some(time) = time {
            event.args.add(Record::of(&Fact::GpuTime(time)));
            self.written.count(Table::GpuTimes);
        }
        event.submitted_by = call;
        self.written.count(Table::Dispatches);
        if gpu.is_none() {
            *self.written.without_gpu_time.get_or_insert(0) += 1;
        }
        Ok(self.canvas.dispatch(track, Some(at), gpu.as_ref(), &event)?)
    }

    /// Draws a time of the GPU whose dispatch has no row: it is in a run.
    fn time_alone(&mut self, time: GpuTime) -> Result<(), ExportError> {
        let track = self.declare(Track::Queue {
            pid: time.pid,
            queue: time.queue,
        })?;
        let Some(gpu) = Gpu::of(&time, None) else {
            self.written.leave_out(
                Table::GpuTimes,
                "their dispatches have no rows, and their ticks no date",
            );
            return Ok(());
        };
        let name = names::kernel(time.kernel.as_deref(), time.kernel_object);
        let event = Event::new(&name, "gpu", Record::of(&Fact::GpuTime(time)));
        self.written.count(Table::GpuTimes);
        Ok(self.canvas.dispatch(track, None, Some(&gpu), &event)?)
    }

    /// Draws a job: what the ring did as a span if both ends are known, and each other known moment as an instant.
    fn ring_job(&mut self, job: &RingJob, record: Record) -> Result<(), ExportError> {
        let ring = self.names.ring(job.device.as_deref(), job.ring.as_deref());
        let track = self.declare(Track::Ring { ring })?;
        let name = match (&job.ring, &job.reason) {
            (_, Some(reason)) => format!("job: {reason}"),
            (Some(ring), None) => format!("job on {ring}"),
            (None, None) => "job".to_owned(),
        };
        let event = Event::new(&name, "ring_job", record);
        match (job.run_ns, job.done_ns) {
            (Some(run), Some(done)) if run <= done => self.canvas.span(track, run, done, &event)?,
            (run, done) => {
                let moments = [("submit", job.submit_ns), ("run", run), ("done", done)];
                let mut known = moments.into_iter().filter_map(|(word, at)| Some((word, at?)));
                let (word, at) = known.next().unwrap_or(("seen", job.time_ns));
                self.canvas
                    .instant(track, at, &event.named(format!("{name}: {word}")))?;
            }
        }
        Ok(())
    }
}

/// Draws a step of a thread's calls.
fn draw_step<C: Canvas>(
    canvas: &mut C,
    unfinished: &mut u64,
    track: Track,
    step: Step<'_, Event>,
) -> Result<(), ExportError> {
    match step {
        Step::Begin(slice, end) => canvas.begin(track, slice.begin, end, &slice.payload)?,
        Step::End(slice, at) => {
            *unfinished += u64::from(slice.end.is_none());
            canvas.end(track, at, slice.end.is_some())?;
        }
    }
    Ok(())
}

/// Returns the category of a library's calls.
fn api_category(layer: &str) -> &'static str {
    ["hip", "hsa", "opencl"]
        .into_iter()
        .find(|known| *known == layer)
        .unwrap_or("api")
}

impl<C: Canvas> Exporter for Timeline<C> {
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError> {
        let before = self.group.push(fact);
        self.draw(before)
    }

    fn finish(mut self: Box<Self>, damage: &[String]) -> Result<Written, ExportError> {
        let last = self.group.take();
        self.draw(last)?;
        // Nothing is known to have been open for longer than the trace, or than its process.
        let end = self.about.end_ns(self.group.last_ns());
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_by_key(|(track, _)| *track);
        for (track, mut nest) in threads {
            let exit = self.names.exit_of(track);
            let (canvas, unfinished) = (&mut self.canvas, &mut self.written.unfinished);
            let at = exit.map_or(end, |exit| exit.min(end));
            nest.finish(at, &mut |step| draw_step(canvas, unfinished, track, step))?;
        }
        self.canvas.finish(&self.about, damage)?;
        Ok(self.written)
    }
}
