//! A SQLite database in the schema of AMD's rocpd, which AMD's tools and any SQL shell read.
//!
//! A kernel is in `rocpd_kernel_dispatch` only with the times that the GPU gave. The table cannot say that a time is unknown, so any
//! other dispatch is a region without length, at its doorbell. What the schema has no column for is in `extdata`: the whole row of
//! the trace, as JSON.

mod copies;
mod database;
mod described;
mod happening;
mod schema;
mod views;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::Value;
use tracer_core::tables::{ApiCall, Dispatch, Fact, GpuTime, Record, Table};

use crate::joined::{Group, Joined};
use crate::nest::Nest;
use crate::{About, ExportError, Exporter, Written};
use database::{Agent, Database, number, text};
use happening::{Happening, queue_track};

/// Writes a database.
#[derive(Debug)]
pub struct Rocpd {
    database: Database,
    about: About,
    group: Group,
    /// GPUs of the queues that have rows.
    queues: HashMap<u32, Option<u32>>,
    code_objects: HashSet<i64>,
    /// The kernel that is loaded at an address of a process.
    kernels: HashMap<(u32, u64), i64>,
    /// API calls whose end is not known yet.
    calls: HashMap<(u32, u32), Nest<ApiCall>>,
    exits: HashMap<u32, u64>,
    dispatches: u64,
    written: Written,
}

impl Rocpd {
    /// Creates the database in an empty file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(path: &Path, about: &About) -> Result<Self, ExportError> {
        Ok(Self {
            database: Database::create(path, about)?,
            about: about.clone(),
            group: Group::default(),
            queues: HashMap::new(),
            code_objects: HashSet::new(),
            kernels: HashMap::new(),
            calls: HashMap::new(),
            exits: HashMap::new(),
            dispatches: 0,
            written: Written {
                without_gpu_time: Some(0),
                ..Written::default()
            },
        })
    }

    fn rows(&mut self, rows: Vec<Joined>) -> Result<(), ExportError> {
        rows.into_iter().try_for_each(|row| match row {
            Joined::Dispatch(dispatch, time) => self.dispatch(&dispatch, time.as_deref()),
            Joined::Alone(time) => self.time_alone(&time),
            Joined::Other(fact) => self.one(&fact),
        })
    }

    fn one(&mut self, fact: &Fact) -> Result<(), ExportError> {
        let record = Record::of(fact);
        let table = record.table();
        let of = |category, name, pid, tid| Happening {
            category,
            name,
            pid,
            tid,
            stack: (None, None),
            record: &record,
        };
        match fact {
            Fact::Process(row) => self.process(row, &record)?,
            Fact::Queue(row) => self.queue(row, &record)?,
            Fact::CodeObject(row) => self.code_object(row, &record)?,
            Fact::Kernel(row) => self.kernel(row, &record)?,
            Fact::ApiCall(row) => self.api_call(row.clone())?,
            Fact::Ioctl(row) => {
                let happening = of("IOCTL", &row.name, row.pid, row.tid);
                // The end of one that did not return is that of its thread, or of the recording.
                self.written.unfinished += u64::from(row.ret.is_none());
                self.region(row.enter_ns, row.exit_ns, &happening)?;
            }
            Fact::DriverCall(row) => {
                let happening = of("KERNEL_DRIVER", &row.function, row.pid, row.tid);
                self.region(row.enter_ns, row.exit_ns, &happening)?;
            }
            Fact::Doorbell(row) => {
                let track = queue_track("doorbells", row.queue);
                self.sample(row.time_ns, &of("DOORBELL", &track, row.pid, row.tid))?;
            }
            Fact::DoorbellRun(row) => {
                let track = queue_track("runs of doorbells", row.queue);
                self.sample(row.begin_ns, &of("DOORBELL_RUN", &track, row.pid, 0))?;
            }
            Fact::DispatchRun(row) => {
                let name = row
                    .kernel
                    .as_deref()
                    .unwrap_or("several kernels, or one without a name");
                self.region(row.begin_ns, row.end_ns, &of("KERNEL_DISPATCH_RUN", name, row.pid, 0))?;
            }
            Fact::Packet(row) => {
                let track = queue_track("packets", Some(row.queue));
                self.sample(row.time_ns, &of("PACKET", &track, row.pid, row.tid))?;
            }
            Fact::Request(row) => {
                let track = format!("requests to proxy {}", row.proxy);
                self.sample(row.time_ns, &of("REQUEST", &track, row.pid, row.tid))?;
            }
            Fact::Copy(row) => self.copy(row, &record)?,
            Fact::RingJob(row) => self.ring_job(row, &record)?,
            Fact::DriverEvent(row) => {
                let (pid, tid) = (row.pid.unwrap_or(0), row.tid.unwrap_or(0));
                self.sample(row.time_ns, &of("KERNEL_DRIVER", &row.event, pid, tid))?;
            }
            Fact::Progress(_)
            | Fact::ApiStats(_)
            | Fact::Proxy(_)
            | Fact::Library(_)
            | Fact::Stack(_)
            | Fact::Loss(_) => {
                let reason = match table {
                    Table::Losses => "the metadata have them",
                    _ => "the schema has no place for them",
                };
                self.written.leave_out(table, reason);
                return Ok(());
            }
            // These come with their dispatches.
            Fact::Dispatch(_) | Fact::GpuTime(_) => return Ok(()),
        }
        self.written.count(table);
        Ok(())
    }

    fn dispatch(&mut self, row: &Dispatch, time: Option<&GpuTime>) -> Result<(), ExportError> {
        let record = Record::of(&Fact::Dispatch(row.clone()));
        self.written.count(Table::Dispatches);
        if time.is_some() {
            self.written.count(Table::GpuTimes);
        }
        let name = name_of(row.kernel.as_deref(), row.kernel_object);
        let dated = time.and_then(|time| Some((time, time.start_ns?, time.end_ns?)));
        let Some((time, start, end)) = dated else {
            *self.written.without_gpu_time.get_or_insert(0) += 1;
            let happening = Happening {
                category: "KERNEL_DISPATCH",
                name: &name,
                pid: row.pid,
                tid: row.tid,
                stack: (row.api_call, None),
                record: &record,
            };
            return self.region(row.time_ns, row.time_ns, &happening);
        };
        self.dispatches += 1;
        let gpu = time.gpu_id.or_else(|| self.queues.get(&row.queue).copied().flatten());
        let [x, y, z] = row.grid.map(number);
        let [work_x, work_y, work_z] = row.workgroup.map(number);
        let columns = [
            ("pid", self.database.process(row.pid)?),
            ("tid", self.database.thread(row.pid, row.tid)?),
            ("agent_id", self.database.agent(row.pid, Agent::Gpu(gpu))?),
            ("kernel_id", self.kernel_id(row, &name)?),
            ("dispatch_id", number(self.dispatches)),
            ("queue_id", self.queue_id(row.pid, row.queue)?),
            ("stream_id", self.database.stream(row.pid, row.stream)?),
            ("start", number(start)),
            ("end", number(end)),
            ("private_segment_size", number(row.private_segment)),
            ("group_segment_size", number(row.group_segment)),
            ("workgroup_size_x", work_x),
            ("workgroup_size_y", work_y),
            ("workgroup_size_z", work_z),
            ("grid_size_x", x),
            ("grid_size_y", y),
            ("grid_size_z", z),
            ("region_name_id", self.database.string("")?),
            (
                "event_id",
                self.event("KERNEL_DISPATCH", (row.api_call, None), &record)?,
            ),
            ("extdata", both(&record, &Record::of(&Fact::GpuTime(time.clone())))?),
        ];
        self.database.insert_here("kernel_dispatch", &columns).map(drop)
    }

    /// Writes a time of the GPU whose dispatch has no row: the sizes of its grid are unknown, which the table of kernels cannot say.
    fn time_alone(&mut self, time: &GpuTime) -> Result<(), ExportError> {
        let (Some(start), Some(end)) = (time.start_ns, time.end_ns) else {
            let reason = "their dispatches have no rows, and their ticks no date";
            self.written.leave_out(Table::GpuTimes, reason);
            return Ok(());
        };
        self.written.count(Table::GpuTimes);
        let happening = Happening {
            category: "GPU_TIME",
            name: &name_of(time.kernel.as_deref(), time.kernel_object),
            pid: time.pid,
            tid: 0,
            stack: (None, None),
            record: &Record::of(&Fact::GpuTime(time.clone())),
        };
        self.region(start, end, &happening)
    }
}

/// Returns the row of the trace, as JSON.
fn json(record: &Record) -> Result<Value, ExportError> {
    Ok(text(serde_json::to_string(record)?))
}

/// Returns a row as JSON, with the columns that only another row has.
fn both(row: &Record, other: &Record) -> Result<Value, ExportError> {
    let mut columns = serde_json::to_value(other)?;
    if let (Some(columns), serde_json::Value::Object(row)) = (columns.as_object_mut(), serde_json::to_value(row)?) {
        columns.extend(row);
    }
    Ok(text(columns.to_string()))
}

fn name_of(kernel: Option<&str>, kernel_object: u64) -> String {
    kernel.map_or_else(|| format!("kernel {kernel_object:#x}"), str::to_owned)
}

impl Exporter for Rocpd {
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError> {
        let before = self.group.push(fact);
        self.rows(before)
    }

    fn finish(mut self: Box<Self>, damage: &[String]) -> Result<Written, ExportError> {
        let last = self.group.take();
        self.rows(last)?;
        let end = self.about.end_ns(self.group.last_ns());
        let mut calls: Vec<_> = std::mem::take(&mut self.calls).into_iter().collect();
        calls.sort_by_key(|(thread, _)| *thread);
        for ((pid, _), mut nest) in calls {
            let at = self.exits.get(&pid).map_or(end, |exit| end.min(*exit));
            nest.finish(at, &mut |step| self.step(step))?;
        }
        for (key, value) in self.about.texts(damage) {
            self.database.metadata(&format!("tracer.{key}"), &value)?;
        }
        self.database.finish()?;
        Ok(self.written)
    }
}
