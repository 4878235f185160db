//! How many packets were published and not taken, per queue over time.

use std::cmp::Reverse;
use std::fmt::Write;

use maud::{Markup, html};
use tracer_core::{
    losses,
    plots::{Band, Depth, Figures},
    summary::Report,
    units::{count, duration},
    words,
};

use crate::{axis, lane, timeline};

/// Most queues; the others are counted.
const MOST: usize = 16;

/// Draws the depth of the queues that were deepest.
pub(crate) fn section(figures: &Figures, report: &Report, zero_ns: u64) -> Markup {
    let mut depths: Vec<&Depth> = figures.depths.iter().collect();
    depths.sort_by_key(|depth| Reverse(depth.max));
    let more = depths.split_off(depths.len().min(MOST)).len();
    let process = |queue| timeline::found(queue, report).map_or(0, |queue| queue.pid);
    depths.sort_by_key(|depth| (process(depth.queue), depth.queue));
    let length = figures.width_ns.saturating_mul(figures.bins as u64);
    let hidden = report
        .losses
        .by_source
        .keys()
        .any(|source| losses::hide_doorbells(source));
    html! {
        section #depth {
            h2 { "Depth of queues over time" }
            @if depths.is_empty() {
                p .why { "No index of an AQL queue is known, so no depth is." }
            } @else {
                p .note {
                    "Packets that a doorbell had published and the GPU had not taken. A doorbell and a sample give the depth of a moment. \
                     Between them it is only bounded: the band is from the lowest to the highest possible depth in each "
                    (duration(figures.width_ns)) ". Where nothing is drawn, nothing is known."
                }
                div .lanes data-bins=(figures.bins) data-width=(figures.width_ns) data-from=(figures.begin_ns.saturating_sub(zero_ns)) {
                    @for depth in depths { (drawn(depth, report, figures)) }
                    (axis::time(figures.begin_ns.saturating_sub(zero_ns), length))
                }
                @if more > 0 { p .note { (words::count(more as u64, "more queue")) ", which were never deeper." } }
                @if hidden { p .why { "tracer lost events that may have been doorbells: queues may have been deeper than the bands." } }
            }
        }
    }
}

fn drawn(depth: &Depth, report: &Report, figures: &Figures) -> Markup {
    let bands = depth.bands.bins(figures.bins);
    let top = bands.iter().flatten().map(|(_, high)| *high).max().unwrap_or_default();
    let queue = timeline::found(depth.queue, report);
    let text = format!("{} at most when seen", words::count(depth.max, "packet"));
    let paths = [("depth", path(&bands, top))];
    html! {
        div .lane {
            div .label {
                b { "queue " (depth.queue) }
                @if let Some(queue) = queue { span { (timeline::described(queue, report)) } }
                span .sum { (text) }
            }
            div .drawn data-queue=(depth.queue) data-max=(depth.max) data-depth=(sparse(&bands)) {
                (lane::picture(figures.bins, &paths, &text))
                span .most { "up to " (count(top)) }
            }
        }
    }
}

/// Returns the path of bands: from the lowest to the highest depth, and visible also where these are equal.
fn path(bands: &[Band], top: u64) -> String {
    const THIN: f64 = 3.0;
    let y = |depth: u64| (100.0 - THIN) * (1.0 - axis::part(depth, top));
    let mut path = String::new();
    for (bin, band) in bands.iter().enumerate() {
        if let Some((low, high)) = band {
            let (top, height) = (y(*high), y(*low) - y(*high) + THIN);
            // A string takes everything.
            let _ = write!(path, "M{bin} {top:.1}h1v{height:.1}h-1z");
        }
    }
    path
}

/// Returns the bands as the script and tests read them: `12:0-5`.
fn sparse(bands: &[Band]) -> String {
    let known = bands
        .iter()
        .enumerate()
        .filter_map(|(bin, band)| band.map(|band| (bin, band)));
    let texts = known.map(|(bin, (low, high))| format!("{bin}:{low}-{high}"));
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_reaches_from_its_lowest_to_its_highest_depth() {
        let bands = [None, Some((0, 4)), Some((2, 2))];
        assert_eq!(path(&bands, 4), "M1 0.0h1v100.0h-1zM2 48.5h1v3.0h-1z");
        assert_eq!(sparse(&bands), "1:0-4 2:2-2");
    }
}
