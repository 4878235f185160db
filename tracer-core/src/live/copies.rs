//! Copies and fills, by what moves which way.

use std::collections::BTreeMap;

use super::picture::CopyRow;
use super::rate::Rate;
use crate::tables::{CopiedBy, Copy, CopyOp, Direction, Path};
use crate::tally::bounded;

/// Number of kinds of copies that are distinguished. The number of an engine comes from the traced process, which could invent it.
const MAX_KINDS: usize = 512;

/// Copies by kind.
#[derive(Debug, Default)]
pub struct Copies {
    all: BTreeMap<Kind, Moved>,
}

/// What distinguishes two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    op: Option<CopyOp>,
    direction: Option<Direction>,
    by: Option<CopiedBy>,
    engine: Option<u32>,
    path: Path,
}

#[derive(Debug, Default)]
struct Moved {
    rate: Rate,
    bytes: Rate,
    /// Submissions of unknown size.
    unknown: u64,
}

impl Copies {
    /// Counts a submission, or the dispatch of a kernel that copies or fills.
    pub fn add(&mut self, copy: &Copy) {
        let kind = Kind {
            op: copy.op,
            direction: copy.direction,
            by: copy.by,
            engine: copy.engine,
            path: copy.path,
        };
        let Some(moved) = bounded(&mut self.all, &kind, MAX_KINDS) else {
            return;
        };
        moved.rate.add(copy.time_ns, 1);
        match copy.bytes {
            Some(bytes) => moved.bytes.add(copy.time_ns, bytes),
            None => moved.unknown += 1,
        }
    }

    /// Returns the kinds, those that moved the most bytes first.
    pub fn rows(&self, now: u64) -> Vec<CopyRow> {
        let rows = self.all.iter().map(|(kind, moved)| {
            let count = moved.rate.total();
            // Without a single known size, the sum is unknown, and not 0.
            let sized = moved.unknown < count;
            CopyRow {
                op: kind.op,
                direction: kind.direction,
                by: kind.by,
                engine: kind.engine,
                path: kind.path,
                count,
                per_s: moved.rate.per_second(now),
                bytes: sized.then(|| moved.bytes.total()),
                bytes_per_s: sized.then(|| moved.bytes.per_second(now)),
                unknown: moved.unknown,
            }
        });
        let mut rows: Vec<CopyRow> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const S: u64 = 1_000_000_000;

    fn copy(op: Option<CopyOp>, bytes: Option<u64>, direction: Option<Direction>) -> Copy {
        Copy {
            op,
            bytes,
            direction,
            ..sample::copy(5 * S)
        }
    }

    #[test]
    fn unknown_sizes_are_counted_and_are_not_0() {
        let mut copies = Copies::default();
        // More in a second than a u32 holds.
        copies.add(&copy(Some(CopyOp::Copy), Some(6 << 32), Some(Direction::H2d)));
        copies.add(&copy(Some(CopyOp::Copy), Some(1), Some(Direction::H2d)));
        copies.add(&copy(Some(CopyOp::Copy), None, Some(Direction::H2d)));
        copies.add(&copy(None, None, None));
        let rows = copies.rows(5 * S);
        let [known, unknown] = &rows[..] else {
            panic!("{rows:?}")
        };
        let all = (6 << 32) + 1;
        assert_eq!(
            *known,
            CopyRow {
                op: Some(CopyOp::Copy),
                direction: Some(Direction::H2d),
                by: Some(CopiedBy::Sdma),
                engine: None,
                path: Path::Doorbell,
                count: 3,
                per_s: 3.0,
                bytes: Some(all),
                bytes_per_s: Some(all as f64),
                unknown: 1,
            }
        );
        assert_eq!(
            (
                unknown.op,
                unknown.count,
                unknown.bytes,
                unknown.bytes_per_s,
                unknown.unknown
            ),
            (None, 1, None, None, 1)
        );
    }

    #[test]
    fn engines_and_paths_are_kept_apart() {
        let mut copies = Copies::default();
        for (engine, path) in [(None, Path::Doorbell), (Some(1), Path::Doorbell), (None, Path::Thunk)] {
            copies.add(&Copy {
                engine,
                path,
                ..sample::copy(S)
            });
        }
        let kinds: Vec<_> = copies.rows(S).iter().map(|row| (row.engine, row.path)).collect();
        assert_eq!(
            kinds,
            [(None, Path::Doorbell), (None, Path::Thunk), (Some(1), Path::Doorbell)]
        );
    }
}
