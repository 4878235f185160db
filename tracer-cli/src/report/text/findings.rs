//! Findings: what a reader should know, with the evidence and the command that shows more.

use std::io::{self, Write};

use tracer_core::{
    analysis::{Answers, Finding, Level},
    units::duration,
    words::count,
};

use super::super::layout::Layout;
use super::percent;

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
