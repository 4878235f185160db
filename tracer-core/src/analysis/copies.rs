//! Copies and fills by what moves the bytes, and the bandwidth of synchronous copies.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use super::Range;
use crate::tables::{ApiCall, CopiedBy, Copy, CopyOp, Direction, Path};
use crate::tally::{Histogram, Stats, bounded, more};

/// Number of kinds that are distinguished. The trace names engines by 32-bit numbers.
const MAX_KINDS: usize = 1024;
/// Number of threads whose copies are timed.
const MAX_THREADS: usize = 65_536;

/// Copies and fills of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CopyUse {
    /// What moves the bytes; `None` in traces of versions that knew SDMA only.
    pub by: Option<CopiedBy>,
    /// SDMA engine that the process chose; `None` if the driver chose, or for kernels.
    pub engine: Option<u32>,
    /// Direction; `None` if an end is unknown, for a fill, and for kernels.
    pub direction: Option<Direction>,
    /// Operation; `None` if the commands were not read.
    pub op: Option<CopyOp>,
    /// Path; `None` for all kinds beyond the limit, of which nothing else is told apart.
    pub path: Option<Path>,
    /// Submissions.
    pub count: u64,
    /// Submissions whose bytes are unknown.
    pub unknown: u64,
    /// Bytes of the others.
    pub bytes: u64,
    /// Smallest and largest size of these, bytes; `None` if no size is known.
    pub size: Option<Range>,
}

/// Calls of a function that returns once its bytes are where they should be.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SyncCopies {
    /// Exported name.
    pub function: String,
    /// Whether the calls submitted copies. Without any, the processor copied.
    pub submitted: bool,
    /// Direction of these; `None` if unknown, or if there were none.
    pub direction: Option<Direction>,
    /// Calls that returned.
    pub calls: u64,
    /// Bytes that they copied.
    pub bytes: u64,
    /// Time in them, ns. The total and `bytes` are their bandwidth.
    pub ns: Option<Stats>,
}

type Kind = (Option<CopiedBy>, Option<u32>, Option<Direction>, Option<CopyOp>, Path);

/// Submissions of one kind.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    unknown: u64,
    bytes: u64,
    size: Option<Range>,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    kinds: BTreeMap<Kind, Sum>,
    /// Submissions of the kinds beyond the limit.
    others: Sum,
    /// The last synchronous copy of each thread.
    threads: HashMap<(u32, u32), Open>,
    sync: BTreeMap<(String, Moved), (u64, Histogram)>,
}

/// A synchronous copy.
#[derive(Debug)]
struct Open {
    function: String,
    enter_ns: u64,
    exit_ns: u64,
    bytes: u64,
    moved: Moved,
}

/// Submissions in a synchronous copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moved {
    /// None.
    Nothing,
    /// In one direction.
    To(Direction),
    /// In an unknown direction, or in several.
    Unknown,
}

/// Returns whether a function returns once the bytes are where they should be.
fn is_sync(call: &ApiCall) -> bool {
    let function = &*call.function;
    match &*call.layer {
        "hip" => function.starts_with("hipMemcpy") && !function.contains("Async"),
        "hsa" => function == "hsa_memory_copy",
        _ => false,
    }
}

impl Counter {
    /// Counts a copy or fill.
    pub(super) fn copy(&mut self, copy: &Copy) {
        let kind = (copy.by, copy.engine, copy.direction, copy.op, copy.path);
        let sum = bounded(&mut self.kinds, &kind, MAX_KINDS).unwrap_or(&mut self.others);
        sum.count += 1;
        match copy.bytes {
            None => sum.unknown += 1,
            Some(bytes) => {
                more(&mut sum.bytes, bytes);
                Range::add(&mut sum.size, bytes);
            }
        }
        if let Some(open) = self.threads.get_mut(&(copy.pid, copy.tid))
            && (open.enter_ns..open.exit_ns).contains(&copy.time_ns)
        {
            let moved = copy.direction.map_or(Moved::Unknown, Moved::To);
            open.moved = match open.moved {
                Moved::Nothing => moved,
                known if known == moved => known,
                _ => Moved::Unknown,
            };
        }
    }

    /// Takes a call.
    pub(super) fn call(&mut self, call: &ApiCall) {
        let (Some(exit_ns), Some(bytes)) = (call.exit_ns, call.bytes) else {
            return;
        };
        if !is_sync(call) || call.failed != Some(false) {
            return;
        }
        let thread = (call.pid, call.tid);
        match self.threads.get(&thread) {
            // A copy inside another one.
            Some(open) if call.enter_ns < open.exit_ns => return,
            None if self.threads.len() >= MAX_THREADS => return,
            _ => {}
        }
        let open = Open {
            function: call.function.to_string(),
            enter_ns: call.enter_ns,
            exit_ns,
            bytes,
            moved: Moved::Nothing,
        };
        if let Some(before) = self.threads.insert(thread, open) {
            self.end(before);
        }
    }

    /// Returns the kinds and the synchronous copies, the most bytes first.
    pub(super) fn finish(mut self) -> (Vec<CopyUse>, Vec<SyncCopies>) {
        for open in std::mem::take(&mut self.threads).into_values() {
            self.end(open);
        }
        let others = CopyUse::default().with(&self.others);
        let rows = self.kinds.into_iter().map(|((by, engine, direction, op, path), sum)| {
            let kind = CopyUse {
                by,
                engine,
                direction,
                op,
                path: Some(path),
                ..CopyUse::default()
            };
            kind.with(&sum)
        });
        let mut rows: Vec<CopyUse> = rows.chain([others]).filter(|row| row.count > 0).collect();
        // Rows that are equal in both stay in the order of their kinds.
        rows.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.count)));
        let with = |((function, moved), (bytes, times)): ((String, Moved), (u64, Histogram))| SyncCopies {
            function,
            submitted: moved != Moved::Nothing,
            direction: match moved {
                Moved::To(direction) => Some(direction),
                Moved::Nothing | Moved::Unknown => None,
            },
            calls: times.count(),
            bytes,
            ns: times.stats(),
        };
        let mut sync: Vec<SyncCopies> = self.sync.into_iter().map(with).collect();
        sync.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        (rows, sync)
    }

    fn end(&mut self, open: Open) {
        let (bytes, times) = self.sync.entry((open.function, open.moved)).or_default();
        more(bytes, open.bytes);
        times.add(open.exit_ns.saturating_sub(open.enter_ns));
    }
}

impl CopyUse {
    /// Returns the row with its counts.
    fn with(self, sum: &Sum) -> Self {
        Self {
            count: sum.count,
            unknown: sum.unknown,
            bytes: sum.bytes,
            size: sum.size,
            ..self
        }
    }
}
