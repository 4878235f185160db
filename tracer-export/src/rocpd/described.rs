//! Rows that describe what other rows refer to: processes, queues, code objects and kernels.

use std::collections::hash_map::Entry;

use rusqlite::types::Value;
use tracer_core::tables::{CodeObject, Dispatch, Kernel, Process, Queue, Record};

use super::database::{Agent, maybe, number, text};
use super::{Rocpd, json};
use crate::ExportError;

/// Id of the code object of kernels whose code object is unknown. Numbers of code objects have 32 bits.
const UNKNOWN_CODE_OBJECT: i64 = 1 << 32;

impl Rocpd {
    pub(super) fn process(&mut self, row: &Process, record: &Record) -> Result<(), ExportError> {
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

    pub(super) fn queue(&mut self, row: &Queue, record: &Record) -> Result<(), ExportError> {
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
    pub(super) fn queue_id(&mut self, pid: u32, queue: u32) -> Result<Value, ExportError> {
        if let Entry::Vacant(place) = self.queues.entry(queue) {
            place.insert(None);
            let name = self.about.named(&format!("Queue {queue}"));
            let process = self.database.process(pid)?;
            let row = [("id", number(queue)), ("pid", process), ("name", text(name))];
            self.database.insert_here("info_queue", &row)?;
        }
        Ok(number(queue))
    }

    pub(super) fn code_object(&mut self, row: &CodeObject, record: &Record) -> Result<(), ExportError> {
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

    pub(super) fn kernel(&mut self, row: &Kernel, record: &Record) -> Result<(), ExportError> {
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
    pub(super) fn kernel_id(&mut self, row: &Dispatch, name: &str) -> Result<Value, ExportError> {
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
}
