//! Copies and fills, by what moved the bytes.

use std::collections::BTreeMap;

use crate::tables::Copy;
use crate::tally::{bounded, more};

/// Number of movers that are distinguished. The trace names engines by 32-bit numbers.
const MAX_MOVERS: usize = 64;

/// What moves the bytes of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// An SDMA engine that the process chose.
    Engine(u32),
    /// An SDMA engine that the driver chose.
    AnyEngine,
    /// A kernel: the copy is a dispatch, too.
    Kernel,
}

/// What one mover was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// What moved the bytes; `None` for all engines beyond the limit.
    pub by: Option<Mover>,
    /// Submissions.
    pub count: u64,
    /// Bytes of those whose size is known.
    pub bytes: u64,
    /// Submissions whose size is unknown.
    pub unknown: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    movers: BTreeMap<Mover, Sum>,
    others: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    unknown: u64,
}

impl Counter {
    pub(super) fn add(&mut self, copy: &Copy) {
        let by = match copy.engine {
            _ if copy.is_kernel() => Mover::Kernel,
            Some(engine) => Mover::Engine(engine),
            None => Mover::AnyEngine,
        };
        let sum = bounded(&mut self.movers, &by, MAX_MOVERS).unwrap_or(&mut self.others);
        sum.count += 1;
        sum.unknown += u64::from(copy.bytes.is_none());
        more(&mut sum.bytes, copy.bytes.unwrap_or(0));
    }

    /// Returns the movers: engines by their numbers, then kernels.
    pub(super) fn finish(self) -> Vec<Moved> {
        let movers = self.movers.into_iter().map(|(by, sum)| (Some(by), sum));
        let all = movers.chain([(None, self.others)]).filter(|(_, sum)| sum.count > 0);
        all.map(|(by, Sum { count, bytes, unknown })| Moved {
            by,
            count,
            bytes,
            unknown,
        })
        .collect()
    }
}
