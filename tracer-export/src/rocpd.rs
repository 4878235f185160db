//! A SQLite database in the schema of AMD's rocpd, which AMD's tools and any SQL shell read.
//!
//! A kernel is in `rocpd_kernel_dispatch` only with the times that the GPU gave. The table cannot say that a time is unknown, so any
//! other dispatch is a region without length, at its doorbell. What the schema has no column for is in `extdata`: the whole row of
//! the trace, as JSON.

mod copies;
mod database;
mod schema;
mod views;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::Value;
use tracer_core::tables::{
    ApiCall, CodeObject, Dispatch, Fact, GpuTime, Kernel, Process, Queue, Record, RingJob, Table,
};

use crate::joined::{Group, Joined};
use crate::nest::{Call, Nest, Slice, Step};
use crate::{About, ExportError, Exporter, Written};
use database::{Agent, Database, maybe, number, text};

/// Id of the code object of kernels whose code object is unknown. Numbers of code objects have 32 bits.
const UNKNOWN_CODE_OBJECT: i64 = 1 << 32;

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

/// A region or a sample: something that a thread did.
struct Happening<'a> {
    category: &'a str,
    name: &'a str,
    pid: u32,
    tid: u32,
    /// Its own number, and that of the call around it, among API calls.
    stack: (Option<u64>, Option<u64>),
    record: &'a Record,
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
            Fact::Progress(_) | Fact::ApiStats(_) | Fact::Proxy(_) | Fact::Library(_) | Fact::Loss(_) => {
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

    fn process(&mut self, row: &Process, record: &Record) -> Result<(), ExportError> {
        if let Some(exit) = row.exit_ns {
            self.exits.insert(row.pid, exit);
        }
        let known = [
            ("ppid", maybe(row.parent)),
            ("start", number(row.first_ns)),
            ("end", maybe(row.exit_ns)),
            ("command", text(row.comm.as_str())),
            ("extdata", json(record)?),
        ];
        self.database.describe_process(row.pid, &known)
    }

    fn queue(&mut self, row: &Queue, record: &Record) -> Result<(), ExportError> {
        if self.queues.insert(row.queue, row.gpu_id).is_some() {
            return Ok(());
        }
        let name = self.about.named(&format!("Queue {}: {}", row.queue, row.kind));
        let row = [
            ("id", number(row.queue)),
            ("pid", self.database.process(row.pid)?),
            ("name", text(name)),
            ("extdata", json(record)?),
        ];
        self.database.insert_here("info_queue", &row).map(drop)
    }

    /// Returns the id of a queue. One without a row gets a row that says only its number.
    fn queue_id(&mut self, pid: u32, queue: u32) -> Result<Value, ExportError> {
        if let Entry::Vacant(place) = self.queues.entry(queue) {
            place.insert(None);
            let name = self.about.named(&format!("Queue {queue}"));
            let process = self.database.process(pid)?;
            let row = [("id", number(queue)), ("pid", process), ("name", text(name))];
            self.database.insert_here("info_queue", &row)?;
        }
        Ok(number(queue))
    }

    fn code_object(&mut self, row: &CodeObject, record: &Record) -> Result<(), ExportError> {
        let id = i64::from(row.code_object);
        if !self.code_objects.insert(id) {
            return Ok(());
        }
        // The runtime's list does not say on which GPU; if there is only one, it is that one.
        let agent = match self.about.gpus.as_slice() {
            [only] => self.database.agent(row.pid, Agent::Gpu(Some(only.gpu_id)))?,
            _ => Value::Null,
        };
        let storage = [("file:", "FILE"), ("memory:", "MEMORY")];
        let storage = storage.into_iter().find(|(scheme, _)| row.uri.starts_with(scheme));
        let row = [
            ("id", Value::Integer(id)),
            ("pid", self.database.process(row.pid)?),
            ("agent_id", agent),
            ("uri", text(row.uri.as_str())),
            ("load_delta", number(row.load_base)),
            ("storage_type", storage.map_or(Value::Null, |(_, word)| text(word))),
            ("extdata", json(record)?),
        ];
        self.database.insert_here("info_code_object", &row).map(drop)
    }

    fn kernel(&mut self, row: &Kernel, record: &Record) -> Result<(), ExportError> {
        let code_object = i64::from(row.code_object);
        if !self.code_objects.contains(&code_object) {
            self.unknown_code_object(row.pid, code_object)?;
        }
        let columns = [
            ("pid", self.database.process(row.pid)?),
            ("code_object_id", Value::Integer(code_object)),
            ("kernel_name", text(&*row.symbol)),
            ("display_name", text(&*row.name)),
            ("kernel_object", number(row.kernel_object)),
            ("kernarg_segment_size", maybe(row.kernarg_bytes)),
            ("group_segment_size", maybe(row.group_bytes)),
            ("private_segment_size", maybe(row.private_bytes)),
            ("sgpr_count", maybe(row.sgprs)),
            ("arch_vgpr_count", maybe(row.vgprs)),
            ("accum_vgpr_count", maybe(row.agprs)),
            ("extdata", json(record)?),
        ];
        let id = self.database.insert_here("info_kernel_symbol", &columns)?;
        self.kernels.insert((row.pid, row.kernel_object), id);
        Ok(())
    }

    fn unknown_code_object(&mut self, pid: u32, id: i64) -> Result<(), ExportError> {
        self.code_objects.insert(id);
        let row = [("id", Value::Integer(id)), ("pid", self.database.process(pid)?)];
        self.database.insert_here("info_code_object", &row).map(drop)
    }

    /// Returns the id of a dispatch's kernel. One that is in no code object gets a row with what the dispatch says.
    fn kernel_id(&mut self, row: &Dispatch, name: &str) -> Result<Value, ExportError> {
        if let Some(id) = self.kernels.get(&(row.pid, row.kernel_object)) {
            return Ok(Value::Integer(*id));
        }
        if !self.code_objects.contains(&UNKNOWN_CODE_OBJECT) {
            self.unknown_code_object(row.pid, UNKNOWN_CODE_OBJECT)?;
        }
        let columns = [
            ("pid", self.database.process(row.pid)?),
            ("code_object_id", Value::Integer(UNKNOWN_CODE_OBJECT)),
            ("display_name", text(name)),
            ("kernel_object", number(row.kernel_object)),
        ];
        let id = self.database.insert_here("info_kernel_symbol", &columns)?;
        self.kernels.insert((row.pid, row.kernel_object), id);
        Ok(Value::Integer(id))
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
            ("extdata", json(&record)?),
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

    fn api_call(&mut self, row: ApiCall) -> Result<(), ExportError> {
        let mut nest = self.calls.remove(&(row.pid, row.tid)).unwrap_or_default();
        let thread = (row.pid, row.tid);
        let slice = Slice {
            begin: row.enter_ns,
            end: row.exit_ns,
            call: Some(Call {
                number: row.call,
                parent: row.parent,
            }),
            payload: row,
        };
        let pushed = nest.push(slice, &mut |step| self.step(step));
        self.calls.insert(thread, nest);
        pushed
    }

    /// Writes a call when its end is known, or when it must have been over.
    fn step(&mut self, step: Step<'_, ApiCall>) -> Result<(), ExportError> {
        let Step::End(slice, at) = step else { return Ok(()) };
        let row = slice.payload;
        self.written.unfinished += u64::from(row.exit_ns.is_none());
        let category = match &*row.layer {
            "hip" => "HIP_RUNTIME_API",
            "hsa" if row.function.starts_with("hsa_amd_") => "HSA_AMD_EXT_API",
            "hsa" => "HSA_CORE_API",
            _ => "OPENCL_API",
        };
        let happening = Happening {
            category,
            name: &row.function,
            pid: row.pid,
            tid: row.tid,
            stack: (Some(row.call), row.parent),
            record: &Record::of(&Fact::ApiCall(row.clone())),
        };
        let event = self.region_event(row.enter_ns, row.exit_ns.unwrap_or(at), &happening)?;
        let stream = match row.stream {
            Some(handle) => Some((handle, self.database.stream(row.pid, Some(handle))?)),
            None => None,
        };
        let args = [
            ("hipStream_t", "stream", row.stream.map(|n| format!("{n:#x}"))),
            ("size_t", "bytes", row.bytes.map(|n| n.to_string())),
            ("void*", "object", row.object.map(|n| format!("{n:#x}"))),
            ("int64_t", "ret", row.ret.map(|n| n.to_string())),
        ];
        for (position, (kind, name, value)) in (1_u32..).zip(args) {
            let Some(value) = value else { continue };
            let mut columns = vec![
                ("event_id", event.clone()),
                ("position", number(position)),
                ("type", text(kind)),
                ("name", text(name)),
                ("value", text(value)),
            ];
            if let (Some((_, Value::Integer(id))), "stream") = (&stream, name) {
                columns.push(("extdata", text(serde_json::json!({ "stream_id": id }).to_string())));
            }
            self.database.insert("arg", &columns)?;
        }
        Ok(())
    }

    fn ring_job(&mut self, job: &RingJob, record: &Record) -> Result<(), ExportError> {
        let ring = job.ring.as_deref().unwrap_or("unknown ring");
        let happening = Happening {
            category: "RING_JOB",
            name: ring,
            pid: job.pid.unwrap_or(0),
            tid: job.tid.unwrap_or(0),
            stack: (None, None),
            record,
        };
        match (job.run_ns, job.done_ns) {
            (Some(run), Some(done)) if run <= done => self.region(run, done, &happening),
            _ => self.sample(job.time_ns, &happening),
        }
    }

    fn event(
        &mut self,
        category: &str,
        stack: (Option<u64>, Option<u64>),
        record: &Record,
    ) -> Result<Value, ExportError> {
        let row = [
            ("category_id", self.database.string(category)?),
            ("stack_id", maybe(stack.0)),
            ("parent_stack_id", maybe(stack.1)),
            ("correlation_id", Value::Integer(0)),
            ("extdata", json(record)?),
        ];
        self.database.insert("event", &row).map(Value::Integer)
    }

    fn region(&mut self, start: u64, end: u64, of: &Happening<'_>) -> Result<(), ExportError> {
        self.region_event(start, end, of).map(drop)
    }

    /// Writes a region, and returns its event.
    fn region_event(&mut self, start: u64, end: u64, of: &Happening<'_>) -> Result<Value, ExportError> {
        let event = self.event(of.category, of.stack, of.record)?;
        let row = [
            ("pid", self.database.process(of.pid)?),
            ("tid", self.database.thread(of.pid, of.tid)?),
            ("start", number(start)),
            ("end", number(end)),
            ("name_id", self.database.string(of.name)?),
            ("event_id", event.clone()),
        ];
        self.database.insert_here("region", &row)?;
        Ok(event)
    }

    fn sample(&mut self, at: u64, of: &Happening<'_>) -> Result<(), ExportError> {
        let row = [
            ("track_id", self.database.track(of.pid, of.tid, of.name)?),
            ("timestamp", number(at)),
            ("event_id", self.event(of.category, of.stack, of.record)?),
        ];
        self.database.insert("sample", &row).map(drop)
    }
}

/// Returns the row of the trace, as JSON.
fn json(record: &Record) -> Result<Value, ExportError> {
    Ok(text(serde_json::to_string(record)?))
}

fn name_of(kernel: Option<&str>, kernel_object: u64) -> String {
    kernel.map_or_else(|| format!("kernel {kernel_object:#x}"), str::to_owned)
}

fn queue_track(what: &str, queue: Option<u32>) -> String {
    match queue {
        Some(queue) => format!("{what} of queue {queue}"),
        None => format!("{what} of an unknown queue"),
    }
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
