//! Findings: what a reader should know, with the evidence and the command that shows more.

use std::io::{self, Write};

use tracer_core::{
    analysis::{Answers, Finding, Level},
    units::duration,
    words::count,
};

use super::super::layout::Layout;
use super::{between, percent};

/// Writes the findings, warnings first; nothing if there are none.
pub fn list(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    if answers.findings.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    layout.heading(out, "FINDINGS")?;
    for finding in answers.findings.iter().take(layout.rows) {
        let mark = match finding.level() {
            Level::Warning => '!',
            Level::Note => 'i',
        };
        layout.item(out, mark, &sentence(finding))?;
    }
    match answers.findings.len().saturating_sub(layout.rows) {
        0 => Ok(()),
        more => layout.note(out, &format!("{more} more; `--all` shows them.")),
    }
}

fn sentence(finding: &Finding) -> String {
    match *finding {
        Finding::IoctlsInLaunches { ioctls, launches } => format!(
            "{} in calls that submit work, for {}: a launch itself needs none (`--by layer`)",
            count(ioctls, "ioctl"),
            count(launches, "launch")
        ),
        Finding::SharedQueue { queue, streams } => {
            format!(
                "{} share queue {queue}: their work is taken in one order (`--by stream`)",
                count(streams, "stream")
            )
        }
        Finding::DoorbellBeyond { queue, doorbells } => format!(
            "{} of queue {queue} had an index that no thread had reserved: the queue's protocol was violated",
            count(doorbells, "doorbell")
        ),
        Finding::NeverPublished { queue, packets } => {
            format!(
                "{} of queue {queue} were reserved, and no doorbell published them",
                count(packets, "packet")
            )
        }
        Finding::UnreadPackets { queue, packets } => {
            format!(
                "{} of queue {queue} could not be read (`--by queue`)",
                count(packets, "published packet")
            )
        }
        Finding::NeverValid { queue, packets } => format!(
            "a doorbell of queue {queue} published {} whose headers never became valid: the queue's protocol was \
             violated, or the program had not finished them (`tracer log --table packets`)",
            count(packets, "packet")
        ),
        Finding::Oversubscribed { gpu_id, queues, slots } => format!(
            "{} existed at once on gpu_id {gpu_id}, which runs {slots} at once: they take turns (`--by queue`). \
             Queues of other processes come on top",
            count(queues, "compute queue")
        ),
        Finding::RedundantBarriers { own, repeated, of } => redundant(own, repeated, of),
        Finding::BarriersAcrossQueues { at_least, at_most, of } => format!(
            "{} of {} wait for packets of another queue (`--by queue --wide`)",
            between(at_least, at_most),
            count(of, "barrier")
        ),
        Finding::Batches { doorbells, of, largest } => format!(
            "{} of {} published several packets at once, up to {}",
            count(doorbells, "doorbell"),
            of,
            largest
        ),
        Finding::DriverSdmaJobs { jobs } => format!(
            "the driver ran {} of its own on SDMA rings while the processes copied (`--by ring`)",
            count(jobs, "job")
        ),
        Finding::Barriers { barriers, dispatches } => format!(
            "{} for {}: {} of these packets only wait",
            count(barriers, "barrier"),
            count(dispatches, "dispatch"),
            percent(barriers, barriers.saturating_add(dispatches))
        ),
        Finding::FoundEmpty { doorbells, of } => format!(
            "{} of {} found their queue empty: the GPU had taken every packet before. The program may submit too \
             slowly for the GPU",
            percent(doorbells, of),
            count(of, "doorbell")
        ),
        Finding::FirstLaunches {
            kernels,
            first_ns,
            total_ns,
        } => format!(
            "the first launch of each of {} took {} together: {} of the time of all launches",
            count(kernels, "kernel"),
            duration(first_ns),
            percent(first_ns, total_ns)
        ),
        Finding::SdmaWithinGpus { copies } => {
            format!(
                "{} on SDMA engines moved data from GPU memory to GPU memory",
                count(copies, "submission")
            )
        }
    }
}

fn redundant(own: u64, repeated: u64, of: u64) -> String {
    let own = (own > 0).then(|| {
        let barriers = count(own, "barrier");
        format!("{barriers} wait only for packets before them in their own queue, as their barrier bit does already")
    });
    let repeated =
        (repeated > 0).then(|| format!("{} repeat the barrier just before them", count(repeated, "barrier")));
    let parts: Vec<_> = own.into_iter().chain(repeated).collect();
    format!("{}; of {}", parts.join(", and "), count(of, "barrier"))
}
