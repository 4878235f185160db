//! Calls of HIP and HSA functions, and the queues of streams.

use std::io::{self, Write};

use tracer_core::{foreign::Terminal, summary::Report, units::duration};

/// Writes the calls by function.
pub fn calls(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let functions = &report.api_calls.by_function;
    if functions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\napi call                                 layer     count  errors  dispatches  copies  p50         p99         max"
    )?;
    for (name, calls) in functions {
        let mut times = calls.ns.map_or_else(
            || "never returned".to_owned(),
            |ns| {
                format!(
                    "{:<10}  {:<10}  {}",
                    duration(ns.p50),
                    duration(ns.p99),
                    duration(ns.max)
                )
            },
        );
        if calls.unreturned > 0 && calls.ns.is_some() {
            times = format!("{times} ({} did not return)", calls.unreturned);
        }
        let known = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        writeln!(
            out,
            "{:<40} {:<5} {:>9}  {:>6}  {:>10}  {:>6}  {times}",
            Terminal(name),
            Terminal(&calls.layer),
            calls.count,
            calls.errors,
            known(calls.dispatches),
            known(calls.copies)
        )?;
    }
    Ok(())
}

/// Writes the queues on which the work of streams was seen.
pub fn streams(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.streams.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nstream          pid      queue  kfd id   dispatches and copies")?;
    for stream in &report.streams {
        let name = if stream.stream == 0 {
            "default".to_owned()
        } else {
            format!("{:#x}", stream.stream)
        };
        let queue = report.queues.iter().find(|q| q.queue == stream.queue);
        let kfd = queue.and_then(|q| q.queue_id);
        writeln!(
            out,
            "{name:<15} {:<8} {:<6} {:<8} {}",
            stream.pid,
            stream.queue,
            kfd.map_or_else(|| "unknown".to_owned(), |id| id.to_string()),
            stream.submissions
        )?;
    }
    Ok(())
}
