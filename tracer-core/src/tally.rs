//! Counts of submissions and doorbells: one set of counters for reports, live views, metrics, and recordings that start in `top`.

mod histogram;

use std::borrow::Borrow;
use std::collections::BTreeMap;

pub use histogram::{Histogram, Stats};

use crate::tables::{Evidence, Fact, PacketKind, Path};

/// A map that is asked for every row. Its hashes are fast, and depend on a number that nobody who writes a trace knows.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Submissions and doorbells: of a trace, a queue or a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Kernel dispatches, by path.
    pub dispatches: [u64; Path::ALL.len()],
    /// Kernel dispatches, by evidence.
    pub evidence: [u64; Evidence::ALL.len()],
    /// SDMA submissions, by path.
    pub copies: [u64; Path::ALL.len()],
    /// Packets that are known to be no dispatches.
    pub other_packets: u64,
    /// Packets that are unread.
    pub unread: u64,
    /// Packets of path [`Path::Unseen`], without dispatches: unread packets, and packets of other kinds.
    pub unseen_packets: u64,
    /// Packets of that path that could not be read. They may be dispatches.
    pub unread_unseen: u64,
    /// Vendor packets of a format that this version does not know. They may launch kernels.
    pub unknown_formats: u64,
    /// Stores to AQL doorbells.
    pub doorbells: u64,
    /// Indexes that these doorbells published.
    pub published: u64,
    /// The part of the counts that is recorded only as runs.
    pub aggregated: Aggregated,
    /// The first and the last index of a packet.
    pub indexes: Option<(u64, u64)>,
    /// Time of the first row, ns.
    pub first_ns: Option<u64>,
}

/// Rows that runs represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregated {
    /// Dispatches.
    pub dispatches: u64,
    /// Doorbells.
    pub doorbells: u64,
}

/// What rows that count submissions or doorbells have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Queue number in the trace; `None` if unknown.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Time of the row; of a run, the last time.
    pub time_ns: u64,
    /// Number of things that the row represents.
    pub count: u64,
}

impl Entry {
    /// Returns the entry of a row; `None` for a row that counts neither submissions nor doorbells of a queue.
    #[must_use]
    pub fn of(fact: &Fact) -> Option<Self> {
        let (queue, pid, time_ns, count) = match fact {
            Fact::Dispatch(row) => (Some(row.queue), row.pid, row.time_ns, 1),
            Fact::DispatchRun(run) => (Some(run.queue), run.pid, run.end_ns, run.count),
            Fact::Packet(row) => (Some(row.queue), row.pid, row.time_ns, row.count),
            Fact::Doorbell(row) => (row.queue, row.pid, row.time_ns, 1),
            Fact::DoorbellRun(run) => (run.queue, run.pid, run.end_ns, run.count),
            // The dispatch of a copy by a kernel is counted.
            Fact::Copy(row) if !row.is_kernel() => (row.queue, row.pid, row.time_ns, 1),
            _ => return None,
        };
        Some(Self {
            queue,
            pid,
            time_ns,
            count,
        })
    }
}

impl Tally {
    /// Counts a row. Rows without an [`Entry`] change nothing.
    pub fn add(&mut self, fact: &Fact) {
        let Some(Entry { time_ns, count, .. }) = Entry::of(fact) else {
            return;
        };
        self.first_ns.get_or_insert(time_ns);
        match fact {
            Fact::Dispatch(row) => {
                self.dispatch(row.path, row.evidence, count);
                self.index(row.index, row.index);
            }
            Fact::DispatchRun(run) => {
                self.dispatch(run.path, run.evidence, count);
                self.index(run.first_index, run.last_index);
                more(&mut self.aggregated.dispatches, count);
            }
            Fact::Packet(row) => {
                let sum = match row.unread {
                    Some(_) => &mut self.unread,
                    None => &mut self.other_packets,
                };
                more(sum, count);
                if row.path == Path::Unseen {
                    more(&mut self.unseen_packets, count);
                    if row.unread.is_some() {
                        more(&mut self.unread_unseen, count);
                    }
                }
                if row.kind == PacketKind::VendorOther {
                    more(&mut self.unknown_formats, count);
                }
                self.index(row.index, row.index.saturating_add(count.saturating_sub(1)));
            }
            Fact::Doorbell(row) => {
                self.doorbells += 1;
                more(&mut self.published, row.published);
            }
            Fact::DoorbellRun(run) => {
                more(&mut self.doorbells, count);
                more(&mut self.published, run.published);
                more(&mut self.aggregated.doorbells, count);
            }
            Fact::Copy(row) => self.copies[row.path as usize] += 1,
            _ => {}
        }
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: &Self) {
        let sum = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, &n)| more(to, n));
        sum(&mut self.dispatches, &other.dispatches);
        sum(&mut self.evidence, &other.evidence);
        sum(&mut self.copies, &other.copies);
        more(&mut self.other_packets, other.other_packets);
        more(&mut self.unread, other.unread);
        more(&mut self.unseen_packets, other.unseen_packets);
        more(&mut self.unread_unseen, other.unread_unseen);
        more(&mut self.unknown_formats, other.unknown_formats);
        more(&mut self.doorbells, other.doorbells);
        more(&mut self.published, other.published);
        more(&mut self.aggregated.dispatches, other.aggregated.dispatches);
        more(&mut self.aggregated.doorbells, other.aggregated.doorbells);
        if let Some((first, last)) = other.indexes {
            self.index(first, last);
        }
        self.first_ns = self.first_ns.into_iter().chain(other.first_ns).min();
    }

    /// Returns the number of dispatches on all paths.
    #[must_use]
    pub fn all_dispatches(&self) -> u64 {
        total(self.dispatches)
    }

    /// Returns the number of SDMA submissions on all paths.
    #[must_use]
    pub fn all_copies(&self) -> u64 {
        total(self.copies)
    }

    /// Returns the number of all submissions: packets, read or not, and SDMA submissions.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let (dispatches, copies) = (self.all_dispatches(), self.all_copies());
        total([dispatches, self.other_packets, self.unread, copies])
    }

    /// Returns the number of indexes that bypassed every probe, whatever their packets are.
    #[must_use]
    pub fn unseen(&self) -> u64 {
        self.dispatches[Path::Unseen as usize].saturating_add(self.unseen_packets)
    }

    fn dispatch(&mut self, path: Path, evidence: Evidence, count: u64) {
        more(&mut self.dispatches[path as usize], count);
        more(&mut self.evidence[evidence as usize], count);
    }

    fn index(&mut self, first: u64, last: u64) {
        let (lowest, highest) = self.indexes.unwrap_or((first, last));
        self.indexes = Some((lowest.min(first), highest.max(last)));
    }
}

/// Adds to a count, which stops at the greatest number.
pub(crate) fn more(sum: &mut u64, n: u64) {
    *sum = sum.saturating_add(n);
}

/// Returns the value of a key in a map that may have `most` keys; `None` if the key is not in it, and there is no room.
pub(crate) fn bounded<'a, K, Q, V>(map: &'a mut BTreeMap<K, V>, key: &Q, most: usize) -> Option<&'a mut V>
where
    K: Borrow<Q> + Ord,
    Q: Ord + ToOwned<Owned = K> + ?Sized,
    V: Default,
{
    if !map.contains_key(key) {
        if map.len() >= most {
            return None;
        }
        map.insert(key.to_owned(), V::default());
    }
    map.get_mut(key)
}

/// Returns a sum, which stops at the greatest number.
pub(crate) fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::tables::{Copy, OtherPacket, PacketKind};

    #[test]
    fn rows_and_runs_of_the_same_things_count_alike() {
        let (mut rows, mut runs) = (Tally::default(), Tally::default());
        for index in 3..=5 {
            rows.add(&Fact::Dispatch(sample::dispatch(index, 103)));
            rows.add(&Fact::Doorbell(sample::doorbell(index, 103)));
        }
        runs.add(&Fact::DispatchRun(sample::dispatch_run(3, 3, 103)));
        runs.add(&Fact::DoorbellRun(sample::doorbell_run(3, 3, 103)));
        let aggregated = std::mem::take(&mut runs.aggregated);
        assert_eq!((aggregated.dispatches, aggregated.doorbells), (3, 3));
        runs.first_ns = rows.first_ns;
        assert_eq!(rows, runs);
        assert_eq!(
            (rows.all_dispatches(), rows.doorbells, rows.indexes),
            (3, 3, Some((3, 5)))
        );
    }

    #[test]
    fn merged_tallies_have_the_counts_of_all_their_rows() {
        let facts = [
            Fact::Copy(Copy {
                path: Path::Thunk,
                ..sample::copy(19)
            }),
            Fact::Dispatch(sample::dispatch(7, 20)),
            Fact::Packet(OtherPacket {
                path: Path::Unseen,
                ..sample::unread(8, 4, 21)
            }),
            Fact::Packet(OtherPacket {
                kind: PacketKind::BarrierAnd,
                unread: None,
                ..sample::unread(12, 1, 22)
            }),
        ];
        let (mut all, mut merged) = (Tally::default(), Tally::default());
        for fact in &facts {
            let mut one = Tally::default();
            one.add(fact);
            all.add(fact);
            merged.merge(&one);
        }
        assert_eq!(merged, all);
        assert_eq!((all.other_packets, all.unread, all.unseen()), (1, 4, 4));
        assert_eq!((all.all_copies(), all.copies[Path::Thunk as usize]), (1, 1));
        assert_eq!((all.indexes, all.first_ns), (Some((7, 12)), Some(19)));
        assert_eq!(all.rows(), 7);
    }
}
