//! Counts over facts: the result of a recording, and the start of a report and a policy.

mod api;
mod copies;
mod driver;
mod driver_events;
mod kernels;
mod report;
mod requested;
mod rings;
mod things;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub use crate::capabilities::Capabilities;
pub use crate::known::ByPath;
use crate::known::{Basis, Total};
use crate::losses;
use crate::tables::{Evidence, Fact, Ioctl, OtherPacket, PacketKind, Table, Unread};
use crate::tally::{Aggregated, Histogram, Map, Tally, bounded, more, total};
use crate::words::Named;
pub use api::{ApiCalls, ApiFunction, StreamQueue};
pub use copies::{Copies, KernelCopies, Moved};
pub use driver::{DriverCalls, Function};
pub use driver_events::{DriverEventCount, DriverEvents};
pub use kernels::{GpuNs, Kernel};
pub use report::{
    ByEvidence, Dispatches, Doorbells, IoctlCalls, Ioctls, KernelNames, Losses, Nothing, Packets, Report, UnseenPackets,
};
pub use requested::Requested;
pub use rings::{Ring, RingJobs};

/// Counts facts.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    capabilities: Capabilities,
    tally: Tally,
    copies: copies::Counter,
    latency: Histogram,
    packets: Map<PacketKind, u64>,
    unread: Map<Unread, u64>,
    ioctls: BTreeMap<String, (IoctlCalls, Histogram)>,
    kernels: kernels::Counter,
    requested: requested::Counter,
    code_objects: u64,
    kernel_names: KernelNames,
    rings: rings::Counter,
    driver: driver::Counter,
    driver_events: driver_events::Counter,
    api: api::Counter,
    losses: BTreeMap<String, u64>,
    queues: things::Queues,
    processes: things::Processes,
    /// Greatest number of queues, and of processes, whose rows are kept; `None`: all of them.
    most_rows: Option<usize>,
    /// Processes that published packets.
    published: HashSet<u32>,
    /// Ioctls of /dev/kfd.
    kfd_ioctls: u64,
    /// Tables with rows that could not be read.
    unread_tables: BTreeSet<Table>,
}

impl Summary {
    /// Creates counters at 0, for a trace with these capabilities.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// Returns the same counts, but keeps the rows of at most `most` queues and processes, the last ones of those that are added
    /// from now on. The totals do not change.
    #[must_use]
    pub fn keeping(self, most: usize) -> Self {
        let most_rows = Some(most);
        Self { most_rows, ..self }
    }

    /// Returns the same counts, with the capabilities that were found: a live recording knows them only at its end.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Counts a fact.
    pub fn add(&mut self, fact: &Fact) {
        let most = self.most_rows.unwrap_or(usize::MAX);
        self.tally.add(fact);
        match fact {
            Fact::Dispatch(dispatch) => {
                self.published.insert(dispatch.pid);
                self.api.submission(dispatch.pid, dispatch.stream, Some(dispatch.queue));
                let (object, name) = (Some(dispatch.kernel_object), dispatch.kernel.as_ref());
                self.kernels.add(dispatch.pid, object, name, 1);
            }
            Fact::DispatchRun(run) => {
                self.published.insert(run.pid);
                let name = run.kernel.as_ref();
                self.kernels.add(run.pid, run.kernel_object, name, run.count);
            }
            Fact::Request(_) => self.requested.dispatches += 1,
            Fact::Proxy(proxy) => self.requested.add(proxy),
            Fact::GpuTime(time) => self.kernels.add_time(time),
            Fact::Packet(packet) => self.packet(packet),
            Fact::Doorbell(doorbell) => self.latency.add_known(doorbell.reserve_to_doorbell_ns),
            Fact::Copy(copy) => {
                self.copies.add(copy);
                // The dispatch of a copy by a kernel is counted for its stream.
                if !copy.is_kernel() {
                    self.api.submission(copy.pid, copy.stream, copy.queue);
                }
            }
            Fact::Ioctl(ioctl) => self.ioctl(ioctl),
            Fact::RingJob(job) => self.rings.add(job),
            Fact::DriverCall(call) => self.driver.add(call),
            Fact::DriverEvent(event) => self.driver_events.add(event),
            Fact::CodeObject(_) => self.code_objects += 1,
            Fact::Kernel(kernel) => self.kernel_names.add(kernel),
            Fact::Progress(_) | Fact::DoorbellRun(_) | Fact::Library(_) | Fact::Stack(_) => {}
            Fact::ApiCall(call) => self.api.add(call),
            Fact::ApiStats(stats) => self.api.add_stats(stats),
            Fact::Queue(queue) => self.queues.add(queue, most),
            Fact::Process(process) => self.processes.add(process, most),
            Fact::Loss(loss) => more(self.losses.entry(loss.source.clone()).or_default(), loss.count),
        }
    }

    /// Sets how many of the rows that were added have no rows of their own in the written trace.
    pub fn set_aggregated(&mut self, aggregated: Aggregated) {
        self.tally.aggregated = aggregated;
    }

    /// Sets the tables of the trace with rows that could not be read. What they contribute to is unknown.
    pub fn set_unread(&mut self, tables: BTreeSet<Table>) {
        self.unread_tables = tables;
    }

    /// Returns the calls of driver functions so far. `watched` says whether any function was watched.
    #[must_use]
    pub fn driver_calls(&self, watched: bool) -> DriverCalls {
        self.driver.clone().report(watched)
    }

    /// Returns the counts. `complete` says whether the trace was written to its end. A trace with tables that cannot be read is not
    /// complete.
    #[must_use]
    pub fn finish(self, complete: bool) -> Report {
        let tally = &self.tally;
        let totals = self.queues.totals();
        let basis = Basis {
            watched: self.capabilities,
            unread: &self.unread_tables,
            to_end: complete,
            opaque_queues: totals.opaque > 0,
            open_queues: totals.open > 0,
            unknown_formats: tally.unknown_formats > 0,
            unread_unseen: tally.unread_unseen > 0,
            thunks: self.thunks_known(),
        };
        let knows = |total| basis.knows(total);
        let nothing = self.nothing(&basis, totals.queues);
        let internal = basis.when(Total::InternalDispatches, totals.internal);
        let dispatches = Dispatches {
            total: basis.when(Total::Dispatches, tally.all_dispatches()),
            aggregated: basis.when(Total::Dispatches, tally.aggregated.dispatches),
            by_path: basis.dispatches(&tally.dispatches),
            by_evidence: ByEvidence {
                header: basis.when(Total::Dispatches, tally.evidence[Evidence::Header as usize]),
                body: basis.when(Total::Dispatches, tally.evidence[Evidence::Body as usize]),
                log: basis.when(Total::Dispatches, tally.evidence[Evidence::Log as usize]),
            },
            internal: internal.filter(|_| !totals.internal_unknown),
        };
        let copies_by_path = basis.copies(&tally.copies);
        let requests_lost = self.losses.keys().any(|source| losses::hide_requests(source));
        let (queues, other_queues) = self.queues.rows();
        let (processes, other_processes) = self.processes.rows();
        Report {
            complete: complete && self.unread_tables.is_empty(),
            nothing,
            dispatches,
            doorbells: Doorbells {
                total: basis.when(Total::Doorbells, tally.doorbells),
                aggregated: basis.when(Total::Doorbells, tally.aggregated.doorbells),
                reserve_to_doorbell_ns: self
                    .latency
                    .stats()
                    .filter(|_| basis.watched.reserves && knows(Total::Doorbells)),
            },
            packets: Packets {
                total: basis.when(Total::Packets, tally.other_packets.saturating_add(tally.unread)),
                by_kind: by_name(self.packets),
                unread: by_name(self.unread),
            },
            // If queues existed before, proxies in front of them may have existed, too.
            requested: self
                .requested
                .report(knows(Total::Requested) && !requests_lost && !totals.adopted),
            copies: self.copies.report(
                knows(Total::Copies),
                knows(Total::Dispatches),
                tally.all_copies(),
                copies_by_path,
            ),
            unseen: UnseenPackets {
                total: basis.when(Total::Unseen, tally.unseen()),
                found: tally.unseen(),
                queues_open: totals.open,
            },
            queues,
            other_queues,
            opaque_queues: totals.opaque,
            ioctls: Ioctls {
                total: basis.when(Total::Ioctls, total(self.ioctls.values().map(|(calls, _)| calls.count))),
                by_name: self.ioctls.into_iter().map(ioctl_calls).collect(),
            },
            ring_jobs: self.rings.report(knows(Total::RingJobs)),
            driver_calls: self.driver.report(knows(Total::DriverCalls)),
            driver_events: self.driver_events.report(knows(Total::DriverEvents)),
            code_objects: basis.when(Total::CodeObjects, self.code_objects),
            kernel_names: basis.when(Total::KernelNames, self.kernel_names),
            streams: self.api.streams(),
            api_calls: self.api.report(knows(Total::ApiCalls), knows(Total::ApiStats)),
            other_kernels: self.kernels.others,
            kernels: self.kernels.report(),
            losses: Losses {
                total: basis.when(Total::Losses, total(self.losses.values().copied())),
                by_source: self.losses,
            },
            processes,
            other_processes,
        }
    }

    /// Returns what the traced processes did not do, if it is known that they submitted nothing.
    fn nothing(&self, basis: &Basis<'_>, queues: u64) -> Option<Nothing> {
        let tables = [
            Table::Queues,
            Table::Doorbells,
            Table::DoorbellRuns,
            Table::Dispatches,
            Table::DispatchRuns,
        ];
        let readable = tables.iter().all(|table| !self.unread_tables.contains(table));
        let whole = basis.to_end && readable && basis.knows(Total::Ioctls) && basis.knows(Total::Losses);
        let hidden = self
            .losses
            .keys()
            .any(|source| losses::hide_doorbells(source) || losses::hide_ioctls(source));
        let (kfd, submissions) = (self.kfd_ioctls, self.tally.rows().saturating_add(self.tally.doorbells));
        if !whole || hidden || submissions > 0 {
            return None;
        }
        match (kfd, queues) {
            (0, 0) => Some(Nothing::NoKfd),
            // The text of strace has calls that create queues, and not the queues.
            (_, 0) => (!self.created_queues()).then_some(Nothing::NoQueue),
            // Without probes on the doorbells, that none was seen says nothing.
            _ => {
                let watched = [Total::Dispatches, Total::Doorbells, Total::Unseen, Total::Copies];
                let all = watched.into_iter().all(|total| basis.knows(total));
                all.then_some(Nothing::NoSubmission)
            }
        }
    }

    /// Returns whether a call created a queue.
    fn created_queues(&self) -> bool {
        let calls = self.ioctls.get("CREATE_QUEUE");
        calls.is_some_and(|(calls, _)| calls.count > calls.errors)
    }

    fn packet(&mut self, packet: &OtherPacket) {
        more(self.packets.entry(packet.kind).or_default(), packet.count);
        if let Some(reason) = packet.unread {
            more(self.unread.entry(reason).or_default(), packet.count);
        }
    }

    fn ioctl(&mut self, ioctl: &Ioctl) {
        self.kfd_ioctls += u64::from(ioctl.device == "kfd");
        let name = match ioctl.device {
            // The two devices number their ioctls independently.
            "drm" if ioctl.name.starts_with("nr-") => Cow::Owned(format!("drm-{}", ioctl.name)),
            _ => Cow::Borrowed(&*ioctl.name),
        };
        if let Some((calls, times)) = bounded(&mut self.ioctls, &*name, usize::MAX) {
            calls.count += 1;
            calls.errors += u64::from(ioctl.failed());
            times.add_known(ioctl.duration_ns());
        }
    }

    /// Returns whether it is known, for every process that published anything, whether its runtime passes doorbells to the thunk
    /// library.
    fn thunks_known(&self) -> bool {
        let mut published = self.published.iter();
        self.capabilities.doorbells && published.all(|&pid| self.processes.thunk_is_known(pid))
    }
}

fn ioctl_calls((name, (calls, times)): (String, (IoctlCalls, Histogram))) -> (String, IoctlCalls) {
    let ns = times.stats();
    (name, IoctlCalls { ns, ..calls })
}

fn by_name(counts: Map<impl Named, u64>) -> BTreeMap<String, u64> {
    let named = counts.into_iter().map(|(name, n)| (name.name().to_owned(), n));
    named.collect()
}

fn when(known: bool, count: u64) -> Option<u64> {
    known.then_some(count)
}

#[cfg(test)]
mod tests;
