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

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::losses;
use crate::tables::{Evidence, Fact, Ioctl, OtherPacket, PacketKind, Path, Unread};
use crate::tally::{Aggregated, Histogram, Tally, more, total};
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
#[derive(Clone, Debug)]
pub struct Summary {
    capabilities: Capabilities,
    tally: Tally,
    copies: copies::Counter,
    latency: Histogram,
    packets: HashMap<PacketKind, u64>,
    unread: HashMap<Unread, u64>,
    ioctls: BTreeMap<String, Calls>,
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
    /// Processes that published packets.
    published: HashSet<u32>,
}

/// Ioctls of one name.
#[derive(Clone, Debug, Default)]
struct Calls {
    count: u64,
    errors: u64,
    ns: Histogram,
}

impl Summary {
    /// Creates counters at 0, for a trace with these capabilities.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            tally: Tally::default(),
            copies: copies::Counter::default(),
            latency: Histogram::default(),
            packets: HashMap::new(),
            unread: HashMap::new(),
            ioctls: BTreeMap::new(),
            kernels: kernels::Counter::default(),
            requested: requested::Counter::default(),
            code_objects: 0,
            rings: rings::Counter::default(),
            driver: driver::Counter::default(),
            driver_events: driver_events::Counter::default(),
            api: api::Counter::default(),
            losses: BTreeMap::new(),
            queues: things::Queues::new(usize::MAX),
            processes: things::Processes::new(usize::MAX),
            published: HashSet::new(),
        }
    }

    /// Returns the same counts, but keeps the rows of at most `most` queues and processes, the last ones. The totals do not
    /// change.
    #[must_use]
    pub fn keeping(mut self, most: usize) -> Self {
        self.queues.keep(most);
        self.processes.keep(most);
        self
    }

    /// Returns the same counts, with the capabilities that were found: a live recording knows them only at its end.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Counts a fact.
    pub fn add(&mut self, fact: &Fact) {
        self.tally.add(fact);
        match fact {
            Fact::Dispatch(dispatch) => {
                self.published.insert(dispatch.pid);
                self.api.submission(dispatch.pid, dispatch.stream, Some(dispatch.queue));
                self.kernels.add(dispatch);
            }
            Fact::DispatchRun(run) => {
                self.published.insert(run.pid);
                self.kernels.add_run(run);
            }
            Fact::Request(_) => self.requested.dispatches += 1,
            Fact::Proxy(proxy) => self.requested.add(proxy),
            Fact::GpuTime(time) => self.kernels.add_time(time),
            Fact::Packet(packet) => self.packet(packet),
            Fact::Doorbell(doorbell) => doorbell
                .reserve_to_doorbell_ns
                .into_iter()
                .for_each(|ns| self.latency.add(ns)),
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
            Fact::Queue(queue) => self.queues.add(queue),
            Fact::Process(process) => self.processes.add(process),
            Fact::Loss(loss) => count(&mut self.losses, &loss.source, loss.count),
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
        let told = self.queues.told();
        let calls: Vec<u64> = self.ioctls.values().map(|calls| calls.count).collect();
        let lost: Vec<u64> = self.losses.values().copied().collect();
        // Kernels on a queue of PM4 commands are not in any packet.
        let packets = known.packets && told.opaque == 0;
        let dispatches = Dispatches {
            total: when(packets, tally.all_dispatches()),
            aggregated: when(packets, tally.aggregated.dispatches),
            by_path: ByPath {
                thunk: when(
                    known.thunk || self.thunks_known(),
                    tally.dispatches[Path::Thunk as usize],
                ),
                ..self.by_path(&tally.dispatches, packets, known.unseen)
            },
            by_evidence: ByEvidence {
                header: when(packets, tally.evidence[Evidence::Header as usize]),
                body: when(packets, tally.evidence[Evidence::Body as usize]),
            },
            internal: told.internal.filter(|_| packets && known.hsa_queues),
        };
        // tracer does not watch the progress of copy engines, nor what else the functions that ring their doorbells call.
        let copies_by_path = ByPath {
            thunk: None,
            ..self.by_path(&tally.copies, known.sdma_doorbells, false)
        };
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
                by_kind: self
                    .packets
                    .iter()
                    .map(|(kind, &n)| (kind.name().to_owned(), n))
                    .collect(),
                unread: self.unread.iter().map(|(why, &n)| (why.name().to_owned(), n)).collect(),
            },
            requested: {
                let lost = self.losses.keys().any(|source| losses::hide_requests(source));
                // If queues existed before, proxies in front of them may have existed, too.
                self.requested.report(known.requests && !lost && !told.adopted)
            },
            copies: self
                .copies
                .report(known.sdma_doorbells, tally.all_copies(), copies_by_path),
            unseen: UnseenPackets::of(told.open, tally.unseen(), known.unseen),
            queues,
            other_queues,
            opaque_queues: told.opaque,
            ioctls: Ioctls {
                total: when(known.ioctls, total(&calls)),
                by_name: self
                    .ioctls
                    .iter()
                    .map(|(name, calls)| (name.clone(), calls.report()))
                    .collect(),
            },
            ring_jobs: self.rings.report(known.kernel_rings),
            driver_calls: self.driver.report(known.driver),
            driver_events: self.driver_events.report(known.driver_events),
            code_objects: when(known.code_objects, self.code_objects),
            streams: self.api.streams(),
            api_calls: self.api.report(known.api, known.api_stats),
            kernels: self.kernels.report(),
            other_kernels: self.kernels.others,
            losses: Losses {
                total: total(&lost),
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
        // The two devices number their ioctls independently.
        let ambiguous = ioctl.device == "drm" && ioctl.name.starts_with("nr-");
        let calls = if ambiguous {
            self.ioctls.entry(format!("drm-{}", ioctl.name)).or_default()
        } else if let Some(calls) = self.ioctls.get_mut(ioctl.name.as_ref()) {
            return calls.add(ioctl);
        } else {
            self.ioctls.entry(ioctl.name.clone().into_owned()).or_default()
        };
        calls.add(ioctl);
    }

    /// Returns whether it is known, for every process that published anything, whether its runtime passes doorbells to the thunk
    /// library.
    fn thunks_known(&self) -> bool {
        let mut published = self.published.iter();
        self.capabilities.doorbells && published.all(|&pid| self.processes.thunk_is_known(pid))
    }

    fn by_path(&self, counts: &[u64; Path::ALL.len()], doorbell: bool, unseen: bool) -> ByPath {
        let of = |path: Path, known: bool| when(known, counts[path as usize]);
        ByPath {
            doorbell: of(Path::Doorbell, doorbell),
            ring: of(Path::Ring, self.capabilities.kernel_rings),
            thunk: of(Path::Thunk, self.capabilities.thunk),
            unseen: of(Path::Unseen, unseen),
        }
    }
}

impl Calls {
    fn add(&mut self, ioctl: &Ioctl) {
        self.count += 1;
        // A call that never returned has neither a result nor a duration.
        if let Some(ret) = ioctl.ret {
            self.errors += u64::from(ret < 0);
            self.ns.add(ioctl.exit_ns.saturating_sub(ioctl.enter_ns));
        }
    }

    fn report(&self) -> IoctlCalls {
        IoctlCalls {
            count: self.count,
            errors: self.errors,
            ns: self.ns.stats(),
        }
    }
}

fn when(known: bool, count: u64) -> Option<u64> {
    known.then_some(count)
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str, n: u64) {
    match counts.get_mut(name) {
        Some(sum) => more(sum, n),
        None => {
            counts.insert(name.to_owned(), n);
        }
    }
}

#[cfg(test)]
mod tests;
