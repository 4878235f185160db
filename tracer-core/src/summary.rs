//! Counts over facts: the result of a recording, and the start of a report and a policy.

mod api;
mod capabilities;
mod copies;
mod driver;
mod driver_events;
mod kernels;
mod report;
mod requested;
mod rings;
mod things;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::losses;
use crate::tables::{Evidence, Fact, Ioctl, OtherPacket, PacketKind, Path, Unread};
use crate::tally::{Aggregated, Histogram, Tally, bounded, more, total};
use crate::words::Named;
pub use api::{ApiCalls, ApiFunction, StreamQueue};
pub use capabilities::Capabilities;
pub use copies::{Copies, Moved};
pub use driver::{DriverCalls, Function};
pub use driver_events::{DriverEventCount, DriverEvents};
pub use kernels::{GpuNs, Kernel};
pub use report::{
    ByEvidence, ByPath, Dispatches, Doorbells, IoctlCalls, Ioctls, Losses, Packets, Report, UnseenPackets,
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
    packets: HashMap<PacketKind, u64>,
    unread: HashMap<Unread, u64>,
    ioctls: BTreeMap<String, (IoctlCalls, Histogram)>,
    kernels: kernels::Counter,
    requested: requested::Counter,
    code_objects: u64,
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
                self.api.submission(copy.pid, copy.stream, copy.queue);
            }
            Fact::Ioctl(ioctl) => self.ioctl(ioctl),
            Fact::RingJob(job) => self.rings.add(job),
            Fact::DriverCall(call) => self.driver.add(call),
            Fact::DriverEvent(event) => self.driver_events.add(event),
            Fact::CodeObject(_) => self.code_objects += 1,
            // The dispatches and the table of kernels report kernels.
            Fact::Kernel(_) | Fact::Progress(_) | Fact::DoorbellRun(_) => {}
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

    /// Returns the calls of driver functions so far. `watched` says whether any function was watched.
    #[must_use]
    pub fn driver_calls(&self, watched: bool) -> DriverCalls {
        self.driver.clone().report(watched)
    }

    /// Returns the counts. `complete` says whether the trace was written to its end.
    #[must_use]
    pub fn finish(self, complete: bool) -> Report {
        let known = self.capabilities;
        let tally = &self.tally;
        let totals = self.queues.totals();
        // Kernels on a queue of PM4 commands are not in any packet.
        let packets = known.packets && totals.opaque == 0;
        let thunk = known.thunk || self.thunks_known();
        let dispatches = Dispatches {
            total: when(packets, tally.all_dispatches()),
            aggregated: when(packets, tally.aggregated.dispatches),
            by_path: by_path(&tally.dispatches, [packets, known.kernel_rings, thunk, known.unseen]),
            by_evidence: ByEvidence {
                header: when(packets, tally.evidence[Evidence::Header as usize]),
                body: when(packets, tally.evidence[Evidence::Body as usize]),
            },
            internal: when(packets && known.hsa_queues && !totals.internal_unknown, totals.internal),
        };
        // tracer does not watch the progress of copy engines, nor what else the functions that ring their doorbells call.
        let copy_paths = [known.sdma_doorbells, known.kernel_rings, false, false];
        let copies_by_path = by_path(&tally.copies, copy_paths);
        let requests_lost = self.losses.keys().any(|source| losses::hide_requests(source));
        let (queues, other_queues) = self.queues.rows();
        let (processes, other_processes) = self.processes.rows();
        Report {
            complete,
            dispatches,
            doorbells: Doorbells {
                total: when(known.doorbells, tally.doorbells),
                aggregated: when(known.doorbells, tally.aggregated.doorbells),
                reserve_to_doorbell_ns: self.latency.stats().filter(|_| known.reserves),
            },
            packets: Packets {
                total: when(packets, tally.other_packets.saturating_add(tally.unread)),
                by_kind: by_name(self.packets),
                unread: by_name(self.unread),
            },
            // If queues existed before, proxies in front of them may have existed, too.
            requested: self
                .requested
                .report(known.requests && !requests_lost && !totals.adopted),
            copies: self
                .copies
                .report(known.sdma_doorbells, tally.all_copies(), copies_by_path),
            unseen: UnseenPackets {
                total: when(known.unseen && totals.open == 0, tally.unseen()),
                found: tally.unseen(),
                queues_open: totals.open,
            },
            queues,
            other_queues,
            opaque_queues: totals.opaque,
            ioctls: Ioctls {
                total: when(known.ioctls, total(self.ioctls.values().map(|(calls, _)| calls.count))),
                by_name: self.ioctls.into_iter().map(ioctl_calls).collect(),
            },
            ring_jobs: self.rings.report(known.kernel_rings),
            driver_calls: self.driver.report(known.driver),
            driver_events: self.driver_events.report(known.driver_events),
            code_objects: when(known.code_objects, self.code_objects),
            streams: self.api.streams(),
            api_calls: self.api.report(known.api, known.api_stats),
            other_kernels: self.kernels.others,
            kernels: self.kernels.report(),
            losses: Losses {
                total: total(self.losses.values().copied()),
                by_source: self.losses,
            },
            processes,
            other_processes,
        }
    }

    fn packet(&mut self, packet: &OtherPacket) {
        more(self.packets.entry(packet.kind).or_default(), packet.count);
        if let Some(reason) = packet.unread {
            more(self.unread.entry(reason).or_default(), packet.count);
        }
    }

    fn ioctl(&mut self, ioctl: &Ioctl) {
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

/// Returns the counts by path. `known` says of each path whether it was watched.
fn by_path(counts: &[u64; Path::ALL.len()], known: [bool; Path::ALL.len()]) -> ByPath {
    let of = |path: Path| when(known[path as usize], counts[path as usize]);
    ByPath {
        doorbell: of(Path::Doorbell),
        ring: of(Path::Ring),
        thunk: of(Path::Thunk),
        unseen: of(Path::Unseen),
    }
}

fn by_name(counts: HashMap<impl Named, u64>) -> BTreeMap<String, u64> {
    let named = counts.into_iter().map(|(name, n)| (name.name().to_owned(), n));
    named.collect()
}

fn when(known: bool, count: u64) -> Option<u64> {
    known.then_some(count)
}

#[cfg(test)]
mod tests;
