//! The summary of a run, as an oracle for an observer.

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::hsa::Queue;
use crate::producer::{Submission, Tally};
use crate::workloads::reload::Launch;

/// The printed summary.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The interface used.
    pub api: &'static str,
    /// The name of the workload.
    pub workload: &'static str,
    /// The runtime used.
    pub runtime: RuntimeInfo,
    /// The GPU used.
    pub agent: AgentInfo,
    /// The code object used.
    pub kernels: String,
    /// The id of this process.
    pub pid: u32,
    /// The totals.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// "ok", or a description of the error.
    pub results: String,
}

/// Writes a summary to `path`. If that is a file, `line` goes to standard output.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn print(summary: &impl Serialize, path: &Path, line: impl FnOnce() -> String) -> Result<()> {
    let json = serde_json::to_string(summary).map_err(|error| Error::Unexpected(format!("summary: {error}")))?;
    if path == Path::new("-") {
        println!("{json}");
        return Ok(());
    }
    std::fs::write(path, json + "\n").map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    println!("{}", line());
    Ok(())
}

/// The runtime of a run.
#[derive(Debug, Serialize)]
pub struct RuntimeInfo {
    /// The runtime's file.
    pub library: String,
    /// The version of interface and build.
    pub version: String,
}

/// The GPU of a run.
#[derive(Debug, Serialize)]
pub struct AgentInfo {
    /// The marketing name.
    pub name: String,
    /// The instruction set.
    pub gfx: String,
}

/// The totals of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueReport {
    /// The address of its `amd_queue_t`, hexadecimal.
    pub handle: String,
    /// The queue's number in the process.
    pub id: u64,
    /// Packets in the ring.
    pub size: u32,
    /// Kernel dispatch packets.
    pub dispatches: u64,
    /// Barrier packets.
    pub barriers: u64,
    /// Other packets.
    pub other_packets: u64,
    /// Doorbell stores.
    pub doorbells: u64,
    /// Doorbell stores without the runtime, among these.
    pub direct_doorbells: u64,
    /// The lowest index used; null if none was used.
    pub first_index: Option<u64>,
    /// The highest index used.
    pub last_index: Option<u64>,
}

/// Durations of submissions, reserve to doorbell, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Shortest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// Longest.
    pub max: u64,
    /// The number of timed submissions.
    pub samples: usize,
}

impl Latency {
    /// Summarises `durations`. Returns `None` if there are none.
    #[must_use]
    pub fn of(durations: &mut [u64]) -> Option<Self> {
        durations.sort_unstable();
        let (&min, &max) = (durations.first()?, durations.last()?);
        Some(Self {
            min,
            p50: durations[durations.len() / 2],
            max,
            samples: durations.len(),
        })
    }
}

/// The totals of a workload.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Each queue, in order of creation.
    pub queues: Vec<QueueReport>,
    /// Dispatches of kernels that were loaded only for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<Launch>,
    /// Sum over the queues.
    pub dispatches: u64,
    /// Sum over the queues.
    pub barriers: u64,
    /// Sum over the queues.
    pub other_packets: u64,
    /// Sum over the queues.
    pub doorbells: u64,
    /// Sum over the queues.
    pub direct_doorbells: u64,
    /// How often a producer found its ring full.
    pub ring_full: u64,
    /// Copies between host and GPU.
    pub copies: u64,
    /// Bytes of these copies.
    pub copied_bytes: u64,
    /// Provoked failures.
    pub failures_expected: u64,
    /// Provoked failures that were reported correctly.
    pub failures_seen: u64,
    /// `end_ns - start_ns`; for joined workloads, the sum of their times.
    pub elapsed_ns: u64,
    /// `CLOCK_MONOTONIC` before the workload's first submission, copy or queue.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` when the whole workload was complete.
    pub end_ns: u64,
    /// The part of it up to the last doorbell. Only workloads that never wait report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_ns: Option<u64>,
    /// The times at which dispatches ran, as the runtime reports them, in the order of submission: `CLOCK_BOOTTIME` ns, start and
    /// end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_times: Vec<[u64; 2]>,
    /// Durations of submissions.
    pub submit_ns: Option<Latency>,
    /// Dispatches divided by elapsed time.
    pub dispatches_per_second: u64,
    /// Durations of all timed submissions.
    #[serde(skip)]
    submissions: Vec<u64>,
    /// Packets, with the handle and id of their queue, if they are logged.
    #[serde(skip)]
    pub log: Vec<(u64, u64, Submission)>,
}

impl Outcome {
    /// Adds a queue and the totals of each of its producers.
    pub fn add_queue(&mut self, queue: &Queue, tallies: impl IntoIterator<Item = Tally>) {
        let mut report = QueueReport {
            handle: format!("{:#x}", queue.handle()),
            id: queue.id(),
            size: queue.size(),
            dispatches: 0,
            barriers: 0,
            other_packets: 0,
            doorbells: 0,
            direct_doorbells: 0,
            first_index: None,
            last_index: None,
        };
        for tally in tallies {
            report.add(&tally);
            self.ring_full += tally.full;
            self.submissions.extend(tally.submit_ns);
            self.log.extend(
                tally
                    .log
                    .into_iter()
                    .map(|submission| (queue.handle(), queue.id(), submission)),
            );
        }
        self.dispatches += report.dispatches;
        self.barriers += report.barriers;
        self.other_packets += report.other_packets;
        self.doorbells += report.doorbells;
        self.direct_doorbells += report.direct_doorbells;
        self.queues.push(report);
    }

    /// Adds `bytes` copied in `copies` copies.
    pub fn add_copies(&mut self, copies: u64, bytes: u64) {
        self.copies += copies;
        self.copied_bytes += bytes;
    }

    /// Sets when the work began and completed.
    pub fn set_times(&mut self, start_ns: u64, end_ns: u64) {
        (self.start_ns, self.end_ns, self.elapsed_ns) = (start_ns, end_ns, end_ns - start_ns);
    }

    /// Appends a workload that ran after this one.
    pub fn append(&mut self, other: Self) {
        if self.start_ns == 0 {
            self.start_ns = other.start_ns;
        }
        self.end_ns = other.end_ns;
        self.elapsed_ns += other.elapsed_ns;
        self.queues.extend(other.queues);
        self.launches.extend(other.launches);
        self.dispatches += other.dispatches;
        self.barriers += other.barriers;
        self.other_packets += other.other_packets;
        self.doorbells += other.doorbells;
        self.direct_doorbells += other.direct_doorbells;
        self.ring_full += other.ring_full;
        self.copies += other.copies;
        self.copied_bytes += other.copied_bytes;
        self.failures_expected += other.failures_expected;
        self.failures_seen += other.failures_seen;
        self.gpu_times.extend(other.gpu_times);
        self.submissions.extend(other.submissions);
        self.log.extend(other.log);
    }

    /// Computes the fields that follow from the others.
    #[must_use]
    pub fn summarised(mut self) -> Self {
        self.submit_ns = Latency::of(&mut self.submissions);
        let rate = u128::from(self.dispatches) * 1_000_000_000 / u128::from(self.elapsed_ns.max(1));
        self.dispatches_per_second = u64::try_from(rate).unwrap_or(u64::MAX);
        self
    }
}

impl QueueReport {
    fn add(&mut self, tally: &Tally) {
        self.dispatches += tally.dispatches;
        self.barriers += tally.barriers;
        self.other_packets += tally.others;
        self.doorbells += tally.doorbells;
        self.direct_doorbells += tally.direct;
        if let Some((first, last)) = tally.indexes {
            self.first_index = Some(self.first_index.map_or(first, |other| other.min(first)));
            self.last_index = Some(self.last_index.map_or(last, |other| other.max(last)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_summarised() {
        assert_eq!(Latency::of(&mut []), None);
        let latency = Latency::of(&mut [30, 10, 20]);
        assert_eq!(
            latency,
            Some(Latency {
                min: 10,
                p50: 20,
                max: 30,
                samples: 3
            })
        );
    }

    #[test]
    fn producers_of_a_queue_are_joined() {
        let mut report = QueueReport {
            handle: String::new(),
            id: 0,
            size: 64,
            dispatches: 0,
            barriers: 0,
            other_packets: 0,
            doorbells: 0,
            direct_doorbells: 0,
            first_index: None,
            last_index: None,
        };
        report.add(&Tally {
            dispatches: 2,
            doorbells: 2,
            indexes: Some((3, 9)),
            ..Tally::default()
        });
        report.add(&Tally {
            dispatches: 1,
            barriers: 1,
            doorbells: 2,
            indexes: Some((1, 4)),
            ..Tally::default()
        });
        report.add(&Tally::default());
        assert_eq!((report.dispatches, report.barriers, report.doorbells), (3, 1, 4));
        assert_eq!((report.first_index, report.last_index), (Some(1), Some(9)));
    }

    #[test]
    fn workloads_are_joined() {
        let mut all = Outcome::default();
        let part = |start, end| {
            let mut part = Outcome {
                dispatches: 10,
                ..Outcome::default()
            };
            part.set_times(start, end);
            part
        };
        all.append(part(100, 200));
        all.append(part(500, 600));
        let all = all.summarised();
        assert_eq!((all.start_ns, all.end_ns, all.elapsed_ns), (100, 600, 200));
        assert_eq!((all.dispatches, all.dispatches_per_second), (20, 100_000_000));
    }
}
