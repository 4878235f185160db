//! Runs of dispatches that differ in nothing but their index: a burst is one line.

use std::{collections::BTreeMap, sync::Arc};

use tracer_core::fact::{Dispatch, Evidence, Path};

/// Dispatches of one queue with consecutive indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub kind: Kind,
}

/// What the dispatches of a run have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub pid: u32,
    pub kernel: Option<Arc<str>>,
    pub kernel_object: u64,
    pub dimensions: u16,
    pub grid: [u32; 3],
    pub workgroup: [u16; 3],
    pub path: Path,
    pub evidence: Evidence,
}

/// Runs by queue number.
#[derive(Debug, Default)]
pub struct Runs {
    pub queues: BTreeMap<u32, Vec<Run>>,
}

impl Runs {
    /// Adds a dispatch; those of a queue come nearly in the order of their indexes.
    pub fn add(&mut self, d: &Dispatch) {
        let kind = Kind {
            pid: d.pid,
            kernel: d.kernel.clone(),
            kernel_object: d.kernel_object,
            dimensions: d.dimensions,
            grid: d.grid,
            workgroup: d.workgroup,
            path: d.path,
            evidence: d.evidence,
        };
        let runs = self.queues.entry(d.queue).or_default();
        match runs
            .last_mut()
            .filter(|run| run.kind == kind && run.last.checked_add(1) == Some(d.index))
        {
            Some(run) => {
                run.last = d.index;
                run.count += 1;
            }
            None => runs.push(Run {
                first: d.index,
                last: d.index,
                count: 1,
                kind,
            }),
        }
    }
}

impl Run {
    /// `7` or `0..=1999`.
    pub fn indexes(&self) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{}..={}", self.first, self.last)
        }
    }
}

impl Kind {
    /// The kernel's name, or its address where that is not known.
    pub fn kernel(&self) -> String {
        match &self.kernel {
            Some(name) => name.to_string(),
            None => format!("{:#x}", self.kernel_object),
        }
    }

    /// Work items in the dimensions used: `1024` or `64x64`.
    pub fn grid(&self) -> String {
        self.extent(self.grid)
    }

    /// As [`Self::grid`], of a workgroup.
    pub fn workgroup(&self) -> String {
        self.extent(self.workgroup.map(u32::from))
    }

    fn extent(&self, sizes: [u32; 3]) -> String {
        let used = usize::from(self.dimensions.clamp(1, 3));
        sizes[..used].iter().map(u32::to_string).collect::<Vec<_>>().join("x")
    }
}
