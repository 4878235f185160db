//! Positions and ticks of axes. Positions are parts of the whole, from 0 to 1: the page is drawn at any width.

use maud::{Markup, html};
use tracer_core::units::duration;

/// Formats a position or a length as an attribute of SVG.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.2}%", part * 100.0)
}

/// Returns a part of a whole; 0 of nothing.
pub(crate) fn part(of: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { of as f64 / whole as f64 }
}

/// Returns ticks from 0 up to a time, ns: at most ten, at round distances.
pub(crate) fn ticks(length_ns: u64) -> Vec<u64> {
    const MOST: u64 = 8;
    let least = (length_ns / MOST).max(1);
    let mut power = 1;
    while power <= least / 10 {
        power *= 10;
    }
    let steps = [1, 2, 5, 10].map(|digit| digit * power);
    let step = steps.into_iter().find(|&step| step >= least).unwrap_or(10 * power);
    (0..=length_ns / step).map(|tick| tick * step).collect()
}

/// Draws an axis of time below lanes: ticks since the start of the recording.
pub(crate) fn time(from_ns: u64, length_ns: u64) -> Markup {
    html! {
        div .lane.axis aria-hidden="true" {
            div .label { "since the start" }
            svg .ticks { @for (number, tick) in ticks(length_ns).into_iter().enumerate() {
                @let at = part(tick, length_ns);
                line x1=(percent(at)) x2=(percent(at)) y1="0" y2="5" {}
                // A narrow page has every second text.
                text class=[(number % 2 == 1).then_some("odd")] x=(percent(at)) y="18" text-anchor=(anchor(at)) {
                    @match from_ns.saturating_add(tick) { 0 => "0", ns => (duration(ns)) }
                }
            } }
        }
    }
}

/// Returns which end of a text is at its position: texts stay inside of the plot.
pub(crate) fn anchor(at: f64) -> &'static str {
    match at {
        ..0.04 => "start",
        0.96.. => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(885), [0, 200, 400, 600, 800]);
        assert_eq!(ticks(1000), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(ticks(3_999), [0, 500, 1000, 1500, 2000, 2500, 3000, 3500]);
        assert_eq!(ticks(0), [0]);
        for length in (0..64).map(|shift| 1_u64 << shift) {
            assert!((1..=10).contains(&ticks(length).len()), "{length}");
        }
    }

    #[test]
    fn positions_are_parts() {
        assert_eq!([part(1, 4), part(3, 0)].map(percent), ["25.00%", "0.00%"]);
        assert_eq!([0.0, 0.5, 1.0].map(anchor), ["start", "middle", "end"]);
    }
}
