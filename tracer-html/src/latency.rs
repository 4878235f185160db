//! Distributions of times from a reserve, and from an API call, to the doorbell.

use maud::{Markup, html};
use tracer_core::{
    plots::{Bar, Figures, Latency},
    summary::Capabilities,
    units::{count, duration},
};

use crate::axis::{anchor, percent};

/// Draws both distributions; of some kernels, the first one.
pub(crate) fn section(figures: &Figures, watched: &Capabilities, is_of_kernels: bool) -> Markup {
    html! {
        section #latency {
            h2 { "Time to the doorbell" }
            p .note {
                "How long submissions took, on an axis whose steps multiply. All times include the cost of tracer's probes."
            }
            div .pair {
                (one("launch", "From API call to doorbell", "dispatches in recorded calls", &figures.launch, no_launch(watched)))
                @if !is_of_kernels {
                    (one("reserve", "From reserved index to doorbell", "doorbells", &figures.reserve, no_reserve(watched)))
                }
            }
        }
    }
}

fn no_launch(watched: &Capabilities) -> &'static str {
    if watched.api {
        "Unknown: no doorbell was in a recorded call."
    } else {
        "Unknown: calls were not recorded (record --api all)."
    }
}

fn no_reserve(watched: &Capabilities) -> &'static str {
    if watched.reserves {
        "Unknown: no doorbell had a reserve of its thread before it."
    } else {
        "Unknown: reserves were not recorded (record --detail full)."
    }
}

fn one(id: &str, title: &str, what: &str, latency: &Latency, unknown: &str) -> Markup {
    let Some(stats) = latency.stats else {
        return html! { figure { figcaption { b { (title) } } p .why { (unknown) } } };
    };
    let most = latency.bars.iter().map(|bar| bar.count).max().unwrap_or_default();
    let scale = Scale::of(&latency.bars);
    let text = format!(
        "{} {what}: p50 {}, p99 {}, max {}; the highest bar is {}",
        latency.known,
        duration(stats.p50),
        duration(stats.p99),
        duration(stats.max),
        count(most)
    );
    let bars: Vec<String> = latency
        .bars
        .iter()
        .map(|bar| format!("{}:{}", bar.from_ns, bar.count))
        .collect();
    html! {
        figure {
            figcaption { b { (title) } span .sum { (text) } }
            svg .histogram role="img" aria-label=(text) data-latency=(id) data-known=(latency.known)
                data-p50=(stats.p50) data-p99=(stats.p99) data-bars=(bars.join(" ")) {
                svg .field y="34" height="120" {
                    @for bar in latency.bars.iter().filter(|bar| bar.count > 0) {
                        @let (from, to) = (scale.at(bar.from_ns), scale.at(bar.to_ns));
                        @let height = (bar.count as f64 / most.max(1) as f64).max(0.015);
                        rect .bar x=(percent(from)) width=(percent((to - from).max(0.001)))
                            y=(percent(1.0 - height)) height=(percent(height)) {
                            title { (duration(bar.from_ns)) " to " (duration(bar.to_ns)) ": " (bar.count) }
                        }
                    }
                }
                @for (name, ns, y) in [("p50", stats.p50, 12), ("p99", stats.p99, 27)] {
                    @let at = scale.at(ns);
                    line .mark x1=(percent(at)) x2=(percent(at)) y1=(y + 2) y2="154" {}
                    text .mark x=(percent(at)) y=(y) text-anchor=(anchor(at)) { (name) " " (duration(ns)) }
                }
                line .base x1="0" x2="100%" y1="154" y2="154" {}
                @for tick in scale.ticks() {
                    @let at = scale.at(tick);
                    line .base x1=(percent(at)) x2=(percent(at)) y1="154" y2="159" {}
                    text x=(percent(at)) y="172" text-anchor=(anchor(at)) { (short(tick)) }
                }
            }
            @if latency.unknown > 0 {
                p .note { (latency.unknown) " more have no such time." }
            }
        }
    }
}

/// Formats a round time without decimals: `100 ns`, `1 us`.
fn short(ns: u64) -> String {
    duration(ns).replace(".0 ", " ")
}

/// A logarithmic axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns the axis of bars, with the width of a bar more at each end.
    fn of(bars: &[Bar]) -> Self {
        let first = bars.first().map_or(1, |bar| bar.from_ns.max(1));
        let last = bars.last().map_or(2, |bar| bar.to_ns.max(2));
        Self {
            from: (first as f64).log2() - 0.25,
            to: (last as f64).log2() + 0.25,
        }
    }

    /// Returns the position of a time.
    fn at(self, ns: u64) -> f64 {
        (((ns.max(1) as f64).log2() - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Returns the powers of ten on the axis, and on a short axis multiples of these.
    fn ticks(self) -> Vec<u64> {
        let decades = (self.to - self.from) / std::f64::consts::LOG2_10;
        let digits: &[u64] = match decades {
            ..0.7 => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            ..2.5 => &[1, 2, 5],
            _ => &[1],
        };
        let powers = (0..19).map(|power| 10_u64.pow(power));
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
        all.filter(|&ns| (self.from..=self.to).contains(&(ns as f64).log2()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(from_ns: u64, to_ns: u64) -> Bar {
        Bar {
            from_ns,
            to_ns,
            count: 1,
        }
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = Scale::of(&[bar(1024, 1218), bar(1 << 20, 1 << 20)]);
        assert_eq!((scale.from, scale.to), (9.75, 20.25));
        let distance = |one, other| scale.at(other) - scale.at(one);
        // One of ten and a half doublings.
        for one in [2048, 1 << 17] {
            assert!((distance(one, 2 * one) - 1.0 / 10.5).abs() < 1e-9);
        }
        assert_eq!(scale.ticks(), [1000, 10_000, 100_000, 1_000_000]);
        assert_eq!(Scale::of(&[bar(900, 6000)]).ticks(), [1000, 2000, 5000]);
        assert_eq!(Scale::of(&[bar(600, 900)]).ticks(), [600, 700, 800, 900, 1000]);
        assert_eq!([100, 1000, 20_000].map(short), ["100 ns", "1 us", "20 us"]);
    }
}
