//! Regions and samples: what threads did, and when.

use rusqlite::types::Value;
use tracer_core::tables::{ApiCall, Fact, Record, RingJob};

use super::database::{maybe, number, text};
use super::{Rocpd, json};
use crate::ExportError;
use crate::nest::{Call, Slice, Step};

/// A region or a sample: something that a thread did.
pub(super) struct Happening<'a> {
    pub category: &'a str,
    pub name: &'a str,
    pub pid: u32,
    pub tid: u32,
    /// Its own number, and that of the call around it, among API calls.
    pub stack: (Option<u64>, Option<u64>),
    pub record: &'a Record,
}

impl Rocpd {
    /// Takes a call; it is written when it ends.
    pub(super) fn api_call(&mut self, row: ApiCall) -> Result<(), ExportError> {
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
    pub(super) fn step(&mut self, step: Step<'_, ApiCall>) -> Result<(), ExportError> {
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
            Some(handle) => self.database.stream(row.pid, Some(handle))?,
            None => Value::Null,
        };
        let args = [
            ("uint64_t", "stream", row.stream.map(|n| format!("{n:#x}"))),
            ("size_t", "bytes", row.bytes.map(|n| n.to_string())),
            ("uint64_t", "object", row.object.map(|n| format!("{n:#x}"))),
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
            if let (Value::Integer(id), "stream") = (&stream, name) {
                columns.push(("extdata", text(serde_json::json!({ "stream_id": id }).to_string())));
            }
            self.database.insert("arg", &columns)?;
        }
        Ok(())
    }

    /// Writes what a ring did as a region if both ends are known, and else as a sample.
    pub(super) fn ring_job(&mut self, job: &RingJob, record: &Record) -> Result<(), ExportError> {
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

    /// Writes what regions, samples, dispatches and copies have in common, and returns its id.
    pub(super) fn event(
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

    pub(super) fn region(&mut self, start: u64, end: u64, of: &Happening<'_>) -> Result<(), ExportError> {
        self.region_event(start, end, of).map(drop)
    }

    /// Writes a region, and returns its event.
    pub(super) fn region_event(&mut self, start: u64, end: u64, of: &Happening<'_>) -> Result<Value, ExportError> {
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

    pub(super) fn sample(&mut self, at: u64, of: &Happening<'_>) -> Result<(), ExportError> {
        let row = [
            ("track_id", self.database.track(of.pid, of.tid, of.name)?),
            ("timestamp", number(at)),
            ("event_id", self.event(of.category, of.stack, of.record)?),
        ];
        self.database.insert("sample", &row).map(drop)
    }
}

/// Returns the name of a track of samples.
pub(super) fn queue_track(what: &str, queue: Option<u32>) -> String {
    match queue {
        Some(queue) => format!("{what} of queue {queue}"),
        None => format!("{what} of an unknown queue"),
    }
}
