//! Activity of queues and rings over time.

use std::cmp::Reverse;

use maud::{Markup, html};
use tracer_core::{
    foreign::line,
    plots::{Activity, Figures, Lane, Subject},
    summary::Report,
    tables::Queue,
    units::{count, duration},
    words,
};

use crate::{axis, lane};

/// Most lanes; the others are one lane.
const MOST: usize = 24;

/// Draws the lanes. `zero_ns` is the start of the recording, and `rings` says whether rings of the driver were watched.
pub(crate) fn section(figures: &Figures, report: &Report, zero_ns: u64, rings: bool) -> Markup {
    let (shown, others) = chosen(&figures.lanes, report);
    let lost = figures.losses.iter().copied().fold(0, u64::saturating_add);
    let length = figures.width_ns.saturating_mul(figures.bins as u64);
    html! {
        section #timeline {
            h2 { "Queues and rings over time" }
            @if shown.is_empty() {
                p .why { "Nothing was submitted, as far as tracer watched, so there is nothing to draw." }
            } @else {
                p .note {
                    "Each bar is " (duration(figures.width_ns)) " long. The height is the number of submissions in that time, and each \
                     lane has its own scale. A dispatch is drawn at its doorbell: the GPU may run it later. "
                    code { "tracer report --from --to" } " draws a part of the time in more detail."
                }
                ul .legend aria-label="Colours" {
                    li { (key("dispatches")) "dispatches" }
                    li { (key("packets")) "other packets" }
                    li { (key("copies")) "SDMA submissions" }
                    @if rings { li { (key("jobs")) "jobs on rings of the kernel driver" } }
                    li { (key("busy")) "below the bars: it ran, where begin and end are known" }
                    @if lost > 0 { li { (key("lost")) "tracer noticed that it had lost events" } }
                }
                div .lanes data-bins=(figures.bins) data-width=(figures.width_ns) data-from=(figures.begin_ns.saturating_sub(zero_ns)) {
                    @for lane in &shown {
                        (drawn(lane, &title(lane, report), figures))
                    }
                    @if let Some((others, number)) = &others {
                        @let title = html! { b { (number) " more queues and rings" } span { "together" } };
                        (drawn(others, &title, figures))
                    }
                    @if lost > 0 { (losses(figures, lost)) }
                    (axis::time(figures.begin_ns.saturating_sub(zero_ns), length))
                }
                @if figures.aggregated > 0 {
                    p .note {
                        (figures.aggregated) " dispatches and doorbells have no time of their own, because the disk was too slow for single \
                         rows. Their runs, of less than 10 ms each, are spread evenly."
                    }
                }
            }
            @if !rings {
                p .why { "Jobs on rings of the kernel driver: not watched. There may have been some." }
            }
        }
    }
}

fn key(class: &str) -> Markup {
    html! { svg .key aria-hidden="true" { rect class=(class) width="100%" height="100%" {} } }
}

/// Returns the lanes that are drawn alone: queues by their processes, then rings. If there are too many, the busiest ones, and the sum
/// and the number of the others.
fn chosen(lanes: &[Lane], report: &Report) -> (Vec<Lane>, Option<(Lane, usize)>) {
    let mut busiest: Vec<Lane> = lanes.to_vec();
    busiest.sort_by_key(|lane| Reverse(lane.total().submissions()));
    let rest = busiest.split_off(busiest.len().min(MOST));
    busiest.sort_by(|one, other| order(&one.of, report).cmp(&order(&other.of, report)));
    let number = rest.len();
    let sum = rest.into_iter().reduce(|mut sum, lane| {
        sum.merge(&lane);
        sum
    });
    (busiest, sum.map(|sum| (sum, number)))
}

/// Returns what lanes are sorted by.
fn order<'a>(of: &'a Subject, report: &Report) -> (u8, u32, u32, Option<&'a str>, Option<&'a str>) {
    match of {
        Subject::Queue(Some(queue)) => (
            0,
            found(*queue, report).map_or(0, |queue| queue.pid),
            *queue,
            None,
            None,
        ),
        Subject::Queue(None) => (1, 0, 0, None, None),
        Subject::OtherQueues => (2, 0, 0, None, None),
        Subject::Ring { device, ring } => (3, 0, 0, device.as_deref(), ring.as_deref()),
        Subject::OtherRings => (4, 0, 0, None, None),
    }
}

/// Returns the row of a queue.
pub(crate) fn found(queue: u32, report: &Report) -> Option<&Queue> {
    report.queues.iter().find(|row| row.queue == queue)
}

fn title(lane: &Lane, report: &Report) -> Markup {
    match &lane.of {
        Subject::Queue(Some(number)) => {
            let queue = found(*number, report);
            html! { b { "queue " (number) } @if let Some(queue) = queue { span { (described(queue, report)) } } }
        }
        Subject::Queue(None) => html! { b { "unknown queue" } },
        Subject::OtherQueues => html! { b { "other queues" } },
        Subject::Ring { device, ring } => html! {
            b { "ring " (line(ring.as_deref().unwrap_or("unknown"))) }
            @if let Some(device) = device { span { (line(device)) } }
        },
        Subject::OtherRings => html! { b { "other rings" } },
    }
}

/// Describes a queue: its type, what made it, and its process.
pub(crate) fn described(queue: &Queue, report: &Report) -> String {
    let made = match queue.internal {
        Some(true) => "the runtime's ",
        _ => "",
    };
    let process = report.processes.iter().find(|process| process.pid == queue.pid);
    let comm = process.map_or("process", |process| &*process.comm);
    line(format!("{made}{}, {comm} {}", queue.kind, queue.pid))
}

/// Draws a lane.
fn drawn(of: &Lane, title: &Markup, figures: &Figures) -> Markup {
    let bins = of.activity.bins(figures.bins);
    let values = |value: fn(&Activity) -> u64| bins.iter().map(value).collect::<Vec<u64>>();
    let (dispatches, packets) = (values(|bin| bin.dispatches), values(|bin| bin.packets));
    let (copies, jobs, busy) = (
        values(|bin| bin.copies),
        values(|bin| bin.jobs),
        values(|bin| bin.busy_ns),
    );
    let doorbells = values(|bin| bin.doorbells);
    let most = bins.iter().map(Activity::submissions).max().unwrap_or_default();
    let sum = |one: &[u64], other: &[u64]| -> Vec<u64> {
        one.iter()
            .zip(other)
            .map(|(one, other)| one.saturating_add(*other))
            .collect()
    };
    let above_packets = sum(&dispatches, &packets);
    let above_copies = sum(&above_packets, &copies);
    let nothing = vec![0; bins.len()];
    let paths = [
        ("lost", lane::areas(figures.losses.iter().map(|&lost| lost > 0))),
        ("dispatches", lane::bars(&nothing, &dispatches, most)),
        ("packets", lane::bars(&dispatches, &packets, most)),
        ("copies", lane::bars(&above_packets, &copies, most)),
        ("jobs", lane::bars(&above_copies, &jobs, most)),
        ("busy", lane::strip(&busy, figures.width_ns)),
    ];
    let text = summary(&of.total());
    html! {
        div .lane {
            div .label { (title) span .sum { (text) } }
            div .drawn
                data-dispatches=[lane::sparse(dispatches)] data-packets=[lane::sparse(packets)]
                data-doorbells=[lane::sparse(doorbells)] data-copies=[lane::sparse(copies)]
                data-jobs=[lane::sparse(jobs)] data-busy=[lane::sparse(busy)] {
                (lane::picture(figures.bins, &paths, &text))
                @if most > 0 { span .most { "highest bar " (count(most)) } }
            }
        }
    }
}

/// Returns the totals of a lane in words.
fn summary(total: &Activity) -> String {
    let counts = [
        (total.dispatches, "dispatch"),
        (total.packets, "other packet"),
        (total.copies, "SDMA submission"),
        (total.jobs, "job"),
    ];
    let known = counts.into_iter().filter(|(number, _)| *number > 0);
    let mut parts: Vec<String> = known
        .map(|(number, noun)| words::count(number, noun).to_string())
        .collect();
    if parts.is_empty() {
        parts.push("no submission".to_owned());
    }
    if total.busy_ns > 0 {
        parts.push(format!("ran {} at least", duration(total.busy_ns)));
    }
    parts.join(", ")
}

/// Draws the losses.
fn losses(figures: &Figures, lost: u64) -> Markup {
    let most = figures.losses.iter().copied().max().unwrap_or_default();
    let nothing = vec![0; figures.losses.len()];
    let paths = [("lost", lane::bars(&nothing, &figures.losses, most))];
    let text = format!("{lost}, when tracer noticed");
    html! {
        div .lane {
            div .label { b .warn { "events lost" } span .sum { (text) } }
            div .drawn data-lost=[lane::sparse(figures.losses.iter().copied())] {
                (lane::picture(figures.bins, &paths, &text))
            }
        }
    }
}
