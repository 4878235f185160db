//! Lanes: one picture above the other, all with the same axis of time.

use std::fmt::Write;

use maud::{Markup, html};

/// The line on which bars stand, in hundredths of a lane's height from above. Below is what was busy.
const BASE: f64 = 82.0;
/// The least height of a bar: one submission among a million is visible.
const LEAST: f64 = 4.0;

/// Returns the bins with values, and their values, as the script and tests read them: `12:5 13:7`.
pub(crate) fn sparse(values: impl IntoIterator<Item = u64>) -> Option<String> {
    let mut text = String::new();
    for (bin, value) in values.into_iter().enumerate().filter(|(_, value)| *value > 0) {
        let gap = if text.is_empty() { "" } else { " " };
        // A string takes everything.
        let _ = write!(text, "{gap}{bin}:{value}");
    }
    (!text.is_empty()).then_some(text)
}

/// Returns the path of bars that stand on others. `below` and `values` are counts in each bin, and `most` is the count of the highest.
pub(crate) fn bars(below: &[u64], values: &[u64], most: u64) -> String {
    let height = |value: u64| match value {
        0 => 0.0,
        _ => (value as f64 / most.max(1) as f64 * BASE).max(LEAST),
    };
    let mut path = String::new();
    for (bin, (&below, &value)) in below
        .iter()
        .zip(values)
        .enumerate()
        .filter(|(_, (_, value))| **value > 0)
    {
        let (foot, height) = (BASE - height(below), height(value));
        let _ = write!(path, "M{bin} {foot:.1}v-{height:.1}h1v{height:.1}z");
    }
    path
}

/// Returns the path of the parts of bins in which something was busy: a strip below the bars.
pub(crate) fn strip(busy_ns: &[u64], width_ns: u64) -> String {
    const TOP: f64 = 86.0;
    let mut path = String::new();
    for (bin, &ns) in busy_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let part = (ns as f64 / width_ns.max(1) as f64).clamp(0.25, 1.0);
        let _ = write!(path, "M{bin} {TOP}h{part:.2}V100h-{part:.2}z");
    }
    path
}

/// Returns the path of bins over the whole height of a lane. Neighbours become one area.
pub(crate) fn areas(is_in: impl IntoIterator<Item = bool>) -> String {
    let mut path = String::new();
    let mut length = 0;
    let bins = is_in.into_iter().chain([false]);
    for (bin, is_in) in bins.enumerate() {
        if is_in {
            length += 1;
        } else if length > 0 {
            let _ = write!(path, "M{} 0h{length}V100h-{length}z", bin - length);
            length = 0;
        }
    }
    path
}

/// Draws the paths of a lane, each with its class, over a number of bins.
pub(crate) fn picture(bins: usize, paths: &[(&str, String)], described: &str) -> Markup {
    html! {
        svg .plot viewBox={ "0 0 " (bins) " 100" } preserveAspectRatio="none" role="img" aria-label=(described) {
            @for (class, path) in paths.iter().filter(|(_, path)| !path.is_empty()) {
                path class=(class) d=(path) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_values_name_their_bins() {
        assert_eq!(sparse([0, 5, 0, 7]).as_deref(), Some("1:5 3:7"));
        assert_eq!(sparse([0, 0]), None);
    }

    #[test]
    fn bars_stand_on_those_below() {
        // The second bin has 1 of 4 below, which takes 20.5 of 82, and 3 of 4 above.
        assert_eq!(bars(&[0, 1], &[4, 3], 4), "M0 82.0v-82.0h1v82.0zM1 61.5v-61.5h1v61.5z");
        // One of a million is not 0.
        assert_eq!(bars(&[0], &[1], 1_000_000), "M0 82.0v-4.0h1v4.0z");
    }

    #[test]
    fn strips_and_areas_have_the_width_of_their_bins() {
        assert_eq!(strip(&[0, 50, 1], 100), "M1 86h0.50V100h-0.50zM2 86h0.25V100h-0.25z");
        assert_eq!(areas([true, true, false, true]), "M0 0h2V100h-2zM3 0h1V100h-1z");
    }
}
