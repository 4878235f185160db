//! How long queues held work, and what limits the program.

use std::io::{self, Write};

use tracer_core::{
    analysis::{Answers, Bound, Held, InFlight},
    units::duration,
};

use super::super::layout::Layout;
use super::{LABEL, percent};

/// Writes how long queues held work, as lines of the headline; nothing without a doorbell of an AQL queue.
pub fn lines(out: &mut impl Write, answers: &Answers, layout: Layout) -> io::Result<()> {
    let Some(times) = &answers.in_flight else { return Ok(()) };
    let phase = times.phase_ns;
    let mut text = format!(
        "in flight  {} of the {} between the first doorbell and the last packet taken: then a queue held packets that the \
         GPU had not taken\n",
        share(times.held, phase),
        duration(phase)
    );
    let (dispatches, timed) = (dispatches(answers), times.timed);
    if let Some(ran) = times.ran_ns {
        text += &format!(
            "           kernels ran for {} of it, by the times of {timed} of {dispatches} dispatches\n",
            percent(ran, phase)
        );
    }
    text += &format!("limit      {}\n", limit(times));
    layout.labelled(out, &text, LABEL)
}

/// Formats the share of a time: `12.0 % to 13.1 %`, `at most 13.1 %`, or one number if the bounds are the same.
pub fn share(held: Held, of: u64) -> String {
    let least = percent(held.least_ns, of);
    match held.most_ns.map(|most| percent(most.min(of), of)) {
        None => format!("at least {least}"),
        Some(most) if most == least => least,
        Some(most) if held.least_ns == 0 => format!("at most {most}"),
        Some(most) => format!("{least} to {most}"),
    }
}

fn limit(times: &InFlight) -> &'static str {
    match times.bound {
        Bound::Gpu if times.ran_ns.is_some() => "the GPU: kernels ran, or waited in a queue, for most of the time",
        Bound::Gpu => "the GPU: a queue held the next packet for most of the time",
        Bound::Launches => "launches: kernels ran for half of the time at most, and the GPU waited for the next one",
        Bound::Neither => "neither the GPU nor launches for all of the time",
        Bound::Unknown if times.ran_ns.is_some() => "unknown: not all dispatches have times",
        Bound::Unknown => "unknown: no dispatch has times, and a kernel may run while every queue is empty",
    }
}

fn dispatches(answers: &Answers) -> u64 {
    let counts = answers.kernels.iter().map(|kernel| kernel.count);
    counts.fold(answers.other_dispatches, u64::saturating_add)
}
