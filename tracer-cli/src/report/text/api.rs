//! Calls of HIP, HSA and OpenCL functions, and the queues of streams.

use std::io::{self, Write};

use tracer_core::{foreign::Terminal, summary::Report};

use super::{call_times, table};
use crate::units::known;

/// Writes the calls by function.
pub fn calls(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let heading = "api call                                 layer     count  errors  dispatches  copies  p50         p99         max";
    let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let rows = report.api_calls.by_function.iter().map(|(name, calls)| {
        let mut times = call_times(calls.ns);
        if calls.unreturned > 0 && calls.ns.is_some() {
            times = format!("{times} ({} did not return)", calls.unreturned);
        }
        format!(
            "{:<40} {:<5} {:>9}  {:>6}  {:>10}  {:>6}  {times}",
            Terminal(name),
            Terminal(&calls.layer),
            calls.count,
            calls.errors,
            number(calls.dispatches),
            number(calls.copies)
        )
    });
    table(out, heading, rows)
}

/// Writes the queues on which the work of streams was seen.
pub fn streams(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let heading = "stream          pid      queue  kfd id   dispatches and copies";
    let rows = report.streams.iter().map(|stream| {
        let name = match stream.stream {
            0 => "default".to_owned(),
            number => format!("{number:#x}"),
        };
        let (pid, queue, submissions) = (stream.pid, stream.queue, stream.submissions);
        let found = report.queues.iter().find(|q| q.queue == queue);
        let kfd = known(found.and_then(|q| q.queue_id));
        format!("{name:<15} {pid:<8} {queue:<6} {kfd:<8} {submissions}")
    });
    table(out, heading, rows)
}
