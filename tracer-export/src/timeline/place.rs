//! The place of each row on the timeline.

use std::path::Path;

use tracer_core::tables::{Copy, DispatchRun, DoorbellRun, Fact, OtherPacket, Progress, Queue, Record, Table};

use super::{Canvas, Event, Named, Slice, Timeline, Track, names};
use crate::ExportError;

/// Why a format that draws a timeline leaves out a table.
const TOTALS: &str = "they are totals, without a time of each call";
const NAMES: &str = "their names are those of the dispatches";
const NO_PLACE: &str = "they have no place on a timeline";

impl<C: Canvas> Timeline<C> {
    /// Draws a row that is no dispatch.
    pub(super) fn one(&mut self, fact: &Fact) -> Result<(), ExportError> {
        let record = Record::of(fact);
        let table = record.table();
        let mut has = true;
        match fact {
            Fact::Process(row) => {
                self.names.process(row);
                self.rename(Track::Process { pid: row.pid })?;
            }
            Fact::Queue(row) => self.queue(row, &record)?,
            Fact::Proxy(row) => {
                self.names.proxy(row);
                let (pid, proxy) = (row.pid, row.proxy);
                self.rename(Track::Proxy { pid, proxy })?;
            }
            Fact::Progress(row) => has = self.progress(row)?,
            Fact::Ioctl(row) => {
                // The end of one that did not return is that of its thread, or of the recording.
                let end = row.ret.map(|_| row.exit_ns);
                let (pid, tid) = (row.pid, row.tid);
                let event = Event::new(&row.name, "ioctl", record);
                self.call(Track::Thread { pid, tid }, row.enter_ns, end, event)?;
            }
            Fact::DriverCall(row) => {
                let (pid, tid) = (row.pid, row.tid);
                let event = Event::new(&row.function, "driver", record);
                self.call(Track::Thread { pid, tid }, row.enter_ns, Some(row.exit_ns), event)?;
            }
            Fact::ApiCall(row) => self.api_call(row, record)?,
            Fact::Doorbell(row) => {
                let track = queue_or_thread(row.queue, row.pid, row.tid);
                self.instant(track, row.time_ns, &Event::new("doorbell", "doorbell", record))?;
            }
            Fact::DoorbellRun(row) => self.doorbell_run(row, record)?,
            Fact::DispatchRun(row) => self.dispatch_run(row, record)?,
            Fact::Packet(row) => self.packet(row, record)?,
            Fact::Copy(row) => self.copy(row, record)?,
            Fact::Request(row) => {
                let (pid, proxy) = (row.pid, row.proxy);
                let name = names::kernel(row.kernel.as_deref(), row.kernel_object);
                let mut event = Event::new(&name, "request", record);
                event.submitted_by = self.shown(row.api_call);
                self.instant(Track::Proxy { pid, proxy }, row.time_ns, &event)?;
            }
            Fact::RingJob(row) => self.ring_job(row, record)?,
            Fact::DriverEvent(row) => {
                let track = match (row.pid, row.tid) {
                    (Some(pid), Some(tid)) => Track::Thread { pid, tid },
                    _ => Track::Rings,
                };
                self.instant(track, row.time_ns, &Event::new(&row.event, "driver_event", record))?;
            }
            Fact::CodeObject(row) => {
                let file = Path::new(row.uri.split('#').next().unwrap_or_default()).file_name();
                let name = format!("code object {}", file.unwrap_or_default().to_string_lossy());
                has = self.about.window.has(row.loaded_ns);
                if has {
                    let event = Event::new(&name, "code_object", record);
                    self.instant(Track::Process { pid: row.pid }, row.loaded_ns, &event)?;
                }
            }
            Fact::Loss(row) => {
                let total = self.lost.entry(row.source.clone()).or_default();
                *total += row.count;
                let (total, name) = (*total, format!("lost: {}", row.source));
                self.declare(Track::Trace)?;
                self.canvas.counter(Track::Trace, &name, row.time_ns, total)?;
                self.instant(Track::Trace, row.time_ns, &Event::new(&name, "loss", record))?;
            }
            Fact::Kernel(_) | Fact::ApiStats(_) | Fact::Library(_) | Fact::Stack(_) => {
                has = false;
                let reason = match fact {
                    Fact::Kernel(_) => NAMES,
                    Fact::ApiStats(_) => TOTALS,
                    _ => NO_PLACE,
                };
                self.written.leave_out(table, reason);
            }
            // These come with their dispatches.
            Fact::Dispatch(_) | Fact::GpuTime(_) => return Ok(()),
        }
        if has {
            self.written.count(table);
        }
        Ok(())
    }

    /// Draws a call that is inside of whatever is open.
    fn call(&mut self, track: Track, begin: u64, end: Option<u64>, event: Event) -> Result<(), ExportError> {
        let slice = Slice {
            begin,
            end,
            call: None,
            payload: event,
        };
        self.slice(track, slice)
    }

    fn queue(&mut self, row: &Queue, record: &Record) -> Result<(), ExportError> {
        self.names.queue(row);
        let (pid, queue) = (row.pid, row.queue);
        let track = Track::Queue { pid, queue };
        self.rename(track)?;
        let moments = [
            ("queue created", Some(row.created_ns)),
            ("queue destroyed", row.destroyed_ns),
        ];
        for (name, at) in moments {
            if let Some(at) = at.filter(|&at| self.about.window.has(at)) {
                self.instant(track, at, &Event::new(name, "queue", record.clone()))?;
            }
        }
        Ok(())
    }

    /// Sets the depth of a queue, if it is known. Returns whether it is.
    fn progress(&mut self, row: &Progress) -> Result<bool, ExportError> {
        let Some(published) = row.published_end else {
            let reason = "nothing was known to be published on the queue yet";
            self.written.leave_out(Table::Progress, reason);
            return Ok(false);
        };
        let (pid, queue) = (row.pid, row.queue);
        let track = self.declare(Track::Queue { pid, queue })?;
        let depth = published.saturating_sub(row.read_index);
        let name = format!("queue {queue}: published, not taken");
        self.canvas.counter(track, &name, row.time_ns, depth)?;
        Ok(true)
    }

    fn doorbell_run(&mut self, row: &DoorbellRun, record: Record) -> Result<(), ExportError> {
        let name = format!("{} doorbells without rows of their own", row.count);
        let track = match row.queue {
            Some(queue) => Track::Queue { pid: row.pid, queue },
            None => Track::Process { pid: row.pid },
        };
        self.instant(track, row.begin_ns, &Event::new(&name, "doorbell_run", record))
    }

    fn dispatch_run(&mut self, row: &DispatchRun, record: Record) -> Result<(), ExportError> {
        let kernel = match (&row.kernel, row.kernel_object) {
            (Some(name), _) => (**name).to_owned(),
            (None, Some(object)) => names::kernel(None, object),
            (None, None) => "several kernels".to_owned(),
        };
        let name = format!("{} dispatches without rows of their own: {kernel}", row.count);
        let (pid, queue) = (row.pid, row.queue);
        self.instant(
            Track::Queue { pid, queue },
            row.begin_ns,
            &Event::new(&name, "dispatch_run", record),
        )
    }

    fn packet(&mut self, row: &OtherPacket, record: Record) -> Result<(), ExportError> {
        let name = match row.count {
            1 => row.kind.name().to_owned(),
            count => format!("{} x {count}", row.kind.name()),
        };
        let (pid, queue) = (row.pid, row.queue);
        self.instant(
            Track::Queue { pid, queue },
            row.time_ns,
            &Event::new(&name, "packet", record),
        )
    }

    fn copy(&mut self, row: &Copy, record: Record) -> Result<(), ExportError> {
        let op = row.op.map_or("copy or fill", Named::name);
        let direction = row.direction.map(|direction| format!(" {}", direction.name()));
        let name = format!("{op}{}", direction.unwrap_or_default());
        let mut event = Event::new(&name, "copy", record);
        event.submitted_by = self.shown(row.api_call);
        self.instant(queue_or_thread(row.queue, row.pid, row.tid), row.time_ns, &event)
    }
}

/// Returns the track of a queue, or of the thread if the queue is unknown.
fn queue_or_thread(queue: Option<u32>, pid: u32, tid: u32) -> Track {
    match queue {
        Some(queue) => Track::Queue { pid, queue },
        None => Track::Thread { pid, tid },
    }
}
