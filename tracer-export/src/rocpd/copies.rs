//! Copies and fills. No trace has a time of the GPU for a copy engine's work: a row says when it was submitted, and has no length.

use tracer_core::tables::{Copy, CopyOp, Direction, Record};

use super::Rocpd;
use super::database::{Agent, maybe, number, text};
use super::happening::Happening;
use crate::ExportError;

impl Rocpd {
    /// Writes a copy of a copy engine as a copy, if its bytes are known, and anything else as a region: a kernel that copies is a
    /// dispatch already, and a fill is no copy.
    pub(super) fn copy(&mut self, row: &Copy, record: &Record) -> Result<(), ExportError> {
        let is_copy = matches!(row.op, Some(CopyOp::Copy | CopyOp::CopyRect)) && !row.is_kernel();
        let name = name_of(row);
        match row.bytes.filter(|_| is_copy) {
            Some(bytes) => self.memory_copy(row, bytes, name, record),
            None => {
                let happening = Happening {
                    category: if row.is_kernel() {
                        "COPY_BY_KERNEL"
                    } else {
                        "MEMORY_COPY"
                    },
                    name,
                    pid: row.pid,
                    tid: row.tid,
                    stack: (row.api_call, None),
                    record,
                };
                self.region(row.time_ns, row.time_ns, &happening)
            }
        }
    }

    fn memory_copy(&mut self, row: &Copy, bytes: u64, name: &str, record: &Record) -> Result<(), ExportError> {
        let gpu = row.queue.and_then(|queue| self.queues.get(&queue).copied().flatten());
        let (host, gpu) = (Agent::Host, Agent::Gpu(gpu));
        let ends = row.direction.map(|direction| match direction {
            Direction::H2d => (host, gpu),
            Direction::D2h => (gpu, host),
            // Which GPUs are at the ends is not known; the queue's moves the bytes.
            Direction::D2d => (gpu, gpu),
            Direction::H2h => (host, host),
        });
        let mut columns = vec![
            ("pid", self.database.process(row.pid)?),
            ("tid", self.database.thread(row.pid, row.tid)?),
            ("start", number(row.time_ns)),
            ("end", number(row.time_ns)),
            ("name_id", self.database.string(name)?),
            ("src_address", maybe(row.source)),
            ("dst_address", maybe(row.destination)),
            ("size", number(bytes)),
            ("region_name_id", self.database.string("")?),
            ("stream_id", self.database.stream(row.pid, row.stream)?),
            ("event_id", self.event("MEMORY_COPY", (row.api_call, None), record)?),
            ("extdata", text(serde_json::to_string(record)?)),
        ];
        if let Some((source, destination)) = ends {
            columns.push(("src_agent_id", self.database.agent(row.pid, source)?));
            columns.push(("dst_agent_id", self.database.agent(row.pid, destination)?));
        }
        if let Some(queue) = row.queue {
            columns.push(("queue_id", self.queue_id(row.pid, queue)?));
        }
        self.database.insert_here("memory_copy", &columns).map(drop)
    }
}

/// Returns the name of a copy, by rocprofiler-sdk's names of directions, or what else it is.
fn name_of(row: &Copy) -> &'static str {
    match (row.op, row.direction) {
        (Some(CopyOp::Fill), _) => "MEMORY_FILL",
        (Some(CopyOp::Mixed), _) => "MEMORY_COPY_AND_FILL",
        (Some(CopyOp::None), _) => "NO_COPY",
        (None, _) => "MEMORY_COPY_OR_FILL",
        (_, Some(Direction::H2d)) => "MEMORY_COPY_HOST_TO_DEVICE",
        (_, Some(Direction::D2h)) => "MEMORY_COPY_DEVICE_TO_HOST",
        (_, Some(Direction::D2d)) => "MEMORY_COPY_DEVICE_TO_DEVICE",
        (_, Some(Direction::H2h)) => "MEMORY_COPY_HOST_TO_HOST",
        (_, None) => "MEMORY_COPY_NONE",
    }
}
