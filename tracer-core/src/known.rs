//! Which totals are known: one rule for reports, live views and metrics.
//!
//! A total is a number only if everything that changes it was watched and can be read. Otherwise it is `None` (`null` in data,
//! `unknown` or `?` for people, no series in Prometheus), and never 0.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::tables::{Path, Table};

/// A total, by the name that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Total {
    /// Kernel dispatches.
    Dispatches,
    /// Dispatches on queues that runtimes created for themselves.
    InternalDispatches,
    /// Stores to AQL doorbells.
    Doorbells,
    /// Packets that are not known dispatches.
    Packets,
    /// Packets that the GPU took without a doorbell that was seen.
    Unseen,
    /// Submissions to proxies.
    Requested,
    /// SDMA submissions.
    Copies,
    /// Ioctls on KFD and DRM devices.
    Ioctls,
    /// Jobs on rings of the kernel driver.
    RingJobs,
    /// Calls of functions of the kernel driver.
    DriverCalls,
    /// Trace events of the kernel driver.
    DriverEvents,
    /// Code objects.
    CodeObjects,
    /// Names of kernels.
    KernelNames,
    /// Calls of functions of HIP and HSA.
    ApiCalls,
    /// Number of calls of these functions, without the individual calls.
    ApiStats,
    /// Dropped events.
    Losses,
}

impl Total {
    /// Every total.
    pub const ALL: [Self; 16] = [
        Self::Dispatches,
        Self::InternalDispatches,
        Self::Doorbells,
        Self::Packets,
        Self::Unseen,
        Self::Requested,
        Self::Copies,
        Self::Ioctls,
        Self::RingJobs,
        Self::DriverCalls,
        Self::DriverEvents,
        Self::CodeObjects,
        Self::KernelNames,
        Self::ApiCalls,
        Self::ApiStats,
        Self::Losses,
    ];

    /// Returns the tables that contribute to the total, or decide whether it is known.
    #[must_use]
    pub const fn tables(self) -> &'static [Table] {
        use Table as T;
        match self {
            // A queue of PM4 commands, or a vendor packet of an unknown format, can launch kernels.
            Self::Dispatches => &[T::Dispatches, T::DispatchRuns, T::Packets, T::Queues],
            Self::InternalDispatches | Self::Unseen => {
                &[T::Dispatches, T::DispatchRuns, T::Packets, T::Queues, T::Losses]
            }
            Self::Doorbells => &[T::Doorbells, T::DoorbellRuns],
            Self::Packets => &[T::Packets, T::Queues],
            Self::Requested => &[T::Proxies, T::Requests, T::Queues, T::Losses],
            Self::Copies => &[T::Copies],
            Self::Ioctls => &[T::Ioctls],
            Self::RingJobs => &[T::RingJobs],
            Self::DriverCalls => &[T::DriverCalls],
            Self::DriverEvents => &[T::DriverEvents],
            Self::CodeObjects => &[T::CodeObjects],
            Self::KernelNames => &[T::Kernels],
            Self::ApiCalls => &[T::ApiCalls],
            Self::ApiStats => &[T::ApiStats],
            Self::Losses => &[T::Losses],
        }
    }

    /// Returns the totals that are unknown because rows of these tables cannot be read.
    pub fn hidden_by(unread: &BTreeSet<Table>) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|total| !total.is_readable(unread))
    }

    /// Returns whether none of its tables is among those that cannot be read.
    fn is_readable(self, unread: &BTreeSet<Table>) -> bool {
        unread.is_empty() || self.tables().iter().all(|table| !unread.contains(table))
    }
}

/// Everything that decides which totals are known: of a trace, a live view, or one of its queues or processes.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// What was watched.
    pub watched: Capabilities,
    /// Tables with rows that cannot be read.
    pub unread: &'a BTreeSet<Table>,
    /// Whether the numbers reach to the end of what they are about: false for a trace whose recorder did not finish. A live view
    /// reaches to its own moment.
    pub to_end: bool,
    /// Whether there are queues whose commands tracer does not read (PM4).
    pub opaque_queues: bool,
    /// Whether there are compute queues of which it is unknown whether all packets were found that bypassed every probe.
    pub open_queues: bool,
    /// Whether there are vendor packets of a format that this version does not know.
    pub unknown_formats: bool,
    /// Whether the GPU took packets without a doorbell that could not be read either. They may be dispatches.
    pub unread_unseen: bool,
    /// Whether it is known of each process with submissions whether its runtime passes doorbells to the thunk library.
    pub thunks: bool,
}

impl Basis<'_> {
    /// Returns whether a total is known.
    #[must_use]
    pub fn knows(&self, total: Total) -> bool {
        let known = &self.watched;
        // Kernels on a queue of PM4 commands are not in any packet.
        let packets = known.packets && !self.opaque_queues;
        let dispatches = packets && !self.unknown_formats && !self.unread_unseen;
        let watched = match total {
            Total::Dispatches => dispatches,
            Total::InternalDispatches => dispatches && known.hsa_queues && self.to_end,
            Total::Doorbells => known.doorbells,
            Total::Packets => packets,
            Total::Unseen => known.unseen && !self.open_queues && self.to_end,
            Total::Requested => known.requests,
            Total::Copies => known.sdma_doorbells,
            Total::Ioctls => known.ioctls,
            Total::RingJobs => known.kernel_rings,
            Total::DriverCalls => known.driver,
            Total::DriverEvents => known.driver_events,
            Total::CodeObjects | Total::KernelNames => known.code_objects,
            Total::ApiCalls => known.api,
            Total::ApiStats => known.api_stats,
            Total::Losses => true,
        };
        watched && total.is_readable(self.unread)
    }

    /// Returns a count if the total that it belongs to is known.
    #[must_use]
    pub fn when<N>(&self, total: Total, count: N) -> Option<N> {
        self.knows(total).then_some(count)
    }

    /// Returns the counts of dispatches by path; `None` for a path that is not known.
    #[must_use]
    pub fn dispatches(&self, counts: &[u64; Path::ALL.len()]) -> ByPath {
        let rows = Total::Dispatches.is_readable(self.unread);
        let thunk =
            self.watched.thunk || self.watched.doorbells && self.thunks && !self.unread.contains(&Table::Processes);
        // Unread packets that no doorbell published are not on the path of doorbells.
        let rung = Self {
            unread_unseen: false,
            ..*self
        };
        ByPath::of(
            counts,
            [
                rung.knows(Total::Dispatches),
                rows && self.knows(Total::RingJobs),
                rows && thunk,
                self.knows(Total::Unseen) && !self.unread_unseen,
            ],
        )
    }

    /// Returns the counts of SDMA submissions by path; `None` for a path that is not known. tracer does not watch the progress of
    /// copy engines, nor what else the functions that ring their doorbells call.
    #[must_use]
    pub fn copies(&self, counts: &[u64; Path::ALL.len()]) -> ByPath {
        let rows = Total::Copies.is_readable(self.unread);
        ByPath::of(
            counts,
            [
                self.knows(Total::Copies),
                rows && self.knows(Total::RingJobs),
                false,
                false,
            ],
        )
    }
}

/// Submissions by path; `None` if the path was not watched, or if its count cannot be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByPath {
    /// A store to a doorbell.
    pub doorbell: Option<u64>,
    /// A job on a ring of the kernel driver.
    pub ring: Option<u64>,
    /// hsaKmtQueueRingDoorbell.
    pub thunk: Option<u64>,
    /// Seen to be published, on an unknown path.
    pub unseen: Option<u64>,
}

impl ByPath {
    fn of(counts: &[u64; Path::ALL.len()], known: [bool; Path::ALL.len()]) -> Self {
        let of = |path: Path| known[path as usize].then_some(counts[path as usize]);
        Self {
            doorbell: of(Path::Doorbell),
            ring: of(Path::Ring),
            thunk: of(Path::Thunk),
            unseen: of(Path::Unseen),
        }
    }

    /// Returns each path with its count.
    #[must_use]
    pub const fn each(&self) -> [(Path, Option<u64>); Path::ALL.len()] {
        [
            (Path::Doorbell, self.doorbell),
            (Path::Ring, self.ring),
            (Path::Thunk, self.thunk),
            (Path::Unseen, self.unseen),
        ]
    }

    /// Returns the sum of the counts that are known.
    #[must_use]
    pub fn seen(&self) -> u64 {
        let counts = self.each().into_iter().filter_map(|(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::EVERYTHING;

    const NOTHING: &BTreeSet<Table> = &BTreeSet::new();

    fn basis(unread: &BTreeSet<Table>) -> Basis<'_> {
        Basis {
            watched: EVERYTHING,
            unread,
            to_end: true,
            opaque_queues: false,
            open_queues: false,
            unknown_formats: false,
            unread_unseen: false,
            thunks: true,
        }
    }

    fn unknown(basis: &Basis<'_>) -> Vec<Total> {
        // Calls are either recorded or only counted.
        let all = Total::ALL.into_iter().filter(|total| *total != Total::ApiStats);
        all.filter(|total| !basis.knows(*total)).collect()
    }

    #[test]
    fn each_gap_hides_its_totals_and_no_other() {
        let whole = basis(NOTHING);
        assert_eq!(unknown(&whole), []);
        let with = |change: fn(&mut Basis<'_>)| {
            let mut basis = whole;
            change(&mut basis);
            unknown(&basis)
        };
        let kernels = [Total::Dispatches, Total::InternalDispatches];
        assert_eq!(with(|basis| basis.unknown_formats = true), kernels);
        assert_eq!(with(|basis| basis.unread_unseen = true), kernels);
        assert_eq!(
            with(|basis| basis.opaque_queues = true),
            [kernels.as_slice(), &[Total::Packets]].concat()
        );
        assert_eq!(with(|basis| basis.open_queues = true), [Total::Unseen]);
        let end = [Total::InternalDispatches, Total::Unseen];
        assert_eq!(with(|basis| basis.to_end = false), end);
        assert_eq!(with(|basis| basis.watched.ioctls = false), [Total::Ioctls]);
        let mut none = whole;
        none.watched = Capabilities::default();
        assert!(unknown(&none).len() == Total::ALL.len() - 2 && none.knows(Total::Losses));
    }

    #[test]
    fn an_unread_table_hides_what_is_made_of_it() {
        let hidden = |table| {
            let unread = BTreeSet::from([table]);
            let hidden: Vec<Total> = Total::hidden_by(&unread).collect();
            let shown = unknown(&basis(&unread));
            assert_eq!(
                shown,
                hidden
                    .iter()
                    .copied()
                    .filter(|t| *t != Total::ApiStats)
                    .collect::<Vec<_>>()
            );
            hidden
        };
        assert_eq!(hidden(Table::Copies), [Total::Copies]);
        assert_eq!(hidden(Table::Progress), []);
        assert_eq!(
            hidden(Table::Dispatches),
            [Total::Dispatches, Total::InternalDispatches, Total::Unseen]
        );
        for table in [Table::Queues, Table::Packets] {
            assert!(hidden(table).contains(&Total::Dispatches) && !hidden(table).contains(&Total::Doorbells));
        }
    }

    #[test]
    fn a_path_is_unknown_for_itself() {
        let counts = [4, 3, 2, 1];
        let mut some = basis(NOTHING);
        assert_eq!(some.dispatches(&counts).seen(), 10);
        some.watched.kernel_rings = false;
        some.open_queues = true;
        let paths = some.dispatches(&counts);
        assert_eq!(
            [paths.doorbell, paths.ring, paths.thunk, paths.unseen],
            [Some(4), None, Some(2), None]
        );
        (some.open_queues, some.unread_unseen) = (false, true);
        let paths = some.dispatches(&counts);
        assert_eq!((paths.doorbell, paths.unseen), (Some(4), None));
        some.watched.thunk = false;
        assert_eq!(some.dispatches(&counts).thunk, Some(2), "each process is known");
        some.thunks = false;
        assert_eq!(some.dispatches(&counts).thunk, None);
        let paths = some.copies(&counts);
        assert_eq!(
            [paths.doorbell, paths.ring, paths.thunk, paths.unseen],
            [Some(4), None, None, None]
        );
        let unread = BTreeSet::from([Table::Dispatches]);
        assert_eq!(basis(&unread).dispatches(&counts), ByPath::default());
    }
}
