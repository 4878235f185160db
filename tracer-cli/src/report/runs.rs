//! Runs of dispatches that differ only in their index: a burst is one line. Dispatches that the trace stores as runs are one line,
//! too.

use std::{collections::BTreeMap, sync::Arc};

use tracer_core::tables::{Dispatch, DispatchRun, Evidence, Path};

/// Dispatches of one queue with consecutive indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub kind: Kind,
}

/// The properties that the dispatches of a run share; `None` means unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub pid: u32,
    pub kernel: Option<Arc<str>>,
    /// `None`: several kernels.
    pub kernel_object: Option<u64>,
    pub shape: Option<Shape>,
    pub path: Path,
    pub evidence: Evidence,
}

/// The sizes of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub dimensions: u16,
    pub grid: [u32; 3],
    pub workgroup: [u16; 3],
}

/// Runs by queue number.
#[derive(Debug, Default)]
pub struct Runs {
    pub queues: BTreeMap<u32, Vec<Run>>,
}

impl Runs {
    /// Adds a dispatch. The dispatches of a queue come nearly in the order of their indexes.
    pub fn add(&mut self, d: &Dispatch) {
        let kind = Kind {
            pid: d.pid,
            kernel: d.kernel.clone(),
            kernel_object: Some(d.kernel_object),
            shape: Some(Shape {
                dimensions: d.dimensions,
                grid: d.grid,
                workgroup: d.workgroup,
            }),
            path: d.path,
            evidence: d.evidence,
        };
        self.join(d.queue, (d.index, d.index), 1, kind);
    }

    /// Adds dispatches that the trace stores only as a run.
    pub fn add_aggregated(&mut self, run: &DispatchRun) {
        let kind = Kind {
            pid: run.pid,
            kernel: run.kernel.clone(),
            kernel_object: run.kernel_object,
            shape: None,
            path: run.path,
            evidence: run.evidence,
        };
        self.join(run.queue, (run.first_index, run.last_index), run.count, kind);
    }

    /// Adds dispatches to the newest run of their queue if they continue it, otherwise as a run of their own.
    fn join(&mut self, queue: u32, (first, last): (u64, u64), count: u64, kind: Kind) {
        let runs = self.queues.entry(queue).or_default();
        match runs.last_mut() {
            Some(run) if run.kind == kind && run.last.checked_add(1) == Some(first) => {
                run.last = last;
                run.count = run.count.saturating_add(count);
            }
            _ => runs.push(Run {
                first,
                last,
                count,
                kind,
            }),
        }
    }
}

impl Run {
    /// Formats the indexes: `7` or `0..=1999`.
    pub fn indexes(&self) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{}..={}", self.first, self.last)
        }
    }
}

impl Kind {
    /// Returns the kernel's name, or its address if the name is not known; `several` if the run has several kernels.
    pub fn kernel(&self) -> String {
        match (&self.kernel, self.kernel_object) {
            (Some(name), _) => name.to_string(),
            (None, Some(object)) => format!("{object:#x}"),
            (None, None) => "several".to_owned(),
        }
    }

    /// Formats the work items in the dimensions used: `1024` or `64x64`; `-` if they are not known.
    pub fn grid(&self) -> String {
        self.extent(|shape| shape.grid)
    }

    /// Formats a workgroup in the way of [`Self::grid`].
    pub fn workgroup(&self) -> String {
        self.extent(|shape| shape.workgroup.map(u32::from))
    }

    fn extent(&self, sizes: fn(Shape) -> [u32; 3]) -> String {
        let Some(shape) = self.shape else { return "-".to_owned() };
        let used = usize::from(shape.dimensions.clamp(1, 3));
        sizes(shape)[..used]
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join("x")
    }
}
