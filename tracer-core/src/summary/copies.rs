//! Counts over copies and fills.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ByPath, when};
use crate::tables::{Copy, CopyOp};
use crate::tally::{bounded, more};
use crate::words::Named;

/// SDMA submissions, and copies by kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Copies {
    /// All submissions; `None` if SDMA doorbells were not watched.
    pub total: Option<u64>,
    /// Submissions by path.
    pub by_path: ByPath,
    /// Bytes that the submissions with read commands moved or filled; `None` if SDMA doorbells were not watched.
    pub bytes: Option<u64>,
    /// Submissions whose commands were not read, or not understood: the bytes do not include what they move.
    pub unread: Option<u64>,
    /// Submissions that move or fill, by direction; `unknown` if the allocations of the process do not show it.
    pub by_direction: BTreeMap<String, Moved>,
    /// Copies and fills by kernels: they are dispatches, and not in the numbers above.
    pub kernels: KernelCopies,
}

/// Copies and fills by kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCopies {
    /// Those that tracer recognized; `None` if dispatches were not watched.
    pub count: Option<u64>,
    /// Bytes of those whose call names them; `None` in the same case.
    pub bytes: Option<u64>,
    /// Those of unknown size; `None` in the same case.
    pub unknown: Option<u64>,
}

/// Submissions of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Submissions.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counts SDMA submissions.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    bytes: u64,
    unread: u64,
    by_direction: BTreeMap<String, Moved>,
    kernels: u64,
    kernel_bytes: u64,
    kernels_unknown: u64,
}

impl Counter {
    pub(super) fn add(&mut self, copy: &Copy) {
        if copy.is_kernel() {
            self.kernels += 1;
            self.kernels_unknown += u64::from(copy.bytes.is_none());
            more(&mut self.kernel_bytes, copy.bytes.unwrap_or(0));
            return;
        }
        let Some(bytes) = copy.bytes else {
            self.unread += 1;
            return;
        };
        more(&mut self.bytes, bytes);
        if copy.op != Some(CopyOp::None) {
            let direction = copy.direction.map_or("unknown", Named::name);
            if let Some(moved) = bounded(&mut self.by_direction, direction, usize::MAX) {
                moved.count += 1;
                more(&mut moved.bytes, bytes);
            }
        }
    }

    /// Returns the counts of `total` SDMA submissions. `known` and `kernels_known` say whether these and dispatches were watched.
    pub(super) fn report(&self, known: bool, kernels_known: bool, total: u64, by_path: ByPath) -> Copies {
        Copies {
            total: when(known, total),
            by_path,
            bytes: when(known, self.bytes),
            unread: when(known, self.unread),
            by_direction: self.by_direction.clone(),
            kernels: KernelCopies {
                count: when(kernels_known, self.kernels),
                bytes: when(kernels_known, self.kernel_bytes),
                unknown: when(kernels_known, self.kernels_unknown),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{CopiedBy, Direction, Path};

    fn copy(op: Option<CopyOp>, bytes: Option<u64>, direction: Option<Direction>) -> Copy {
        Copy {
            queue: None,
            pid: 7,
            tid: 7,
            time_ns: 1,
            path: Path::Doorbell,
            by: Some(CopiedBy::Sdma),
            begin: 0,
            end: 64,
            op,
            bytes,
            commands: None,
            source: None,
            destination: None,
            direction,
            engine: None,
            api_call: None,
            stream: None,
        }
    }

    #[test]
    fn what_was_not_read_is_counted_apart() {
        let mut counter = Counter::default();
        counter.add(&copy(Some(CopyOp::Copy), Some(100), Some(Direction::H2d)));
        counter.add(&copy(Some(CopyOp::Copy), Some(20), Some(Direction::H2d)));
        counter.add(&copy(Some(CopyOp::Fill), Some(3), None));
        counter.add(&copy(Some(CopyOp::None), Some(0), None));
        counter.add(&copy(None, None, None));
        let by_path = ByPath {
            doorbell: Some(5),
            ring: None,
            thunk: None,
            unseen: None,
        };
        let report = counter.report(true, true, 5, by_path);
        assert_eq!(
            (report.total, report.bytes, report.unread),
            (Some(5), Some(123), Some(1))
        );
        assert_eq!(report.by_direction["h2d"], Moved { count: 2, bytes: 120 });
        assert_eq!(report.by_direction["unknown"], Moved { count: 1, bytes: 3 });
        assert_eq!(counter.report(false, true, 5, by_path).bytes, None);
    }
}
