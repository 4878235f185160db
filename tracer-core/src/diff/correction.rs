//! Corrections of p-values for many comparisons: among a hundred figures that do not differ, five have a p-value of at most 0.05.

/// Adjusts p-values after Benjamini and Hochberg (1995): of what has an adjusted p-value of at most x, a share of x is expected to be
/// false. For tables, where readers look for what may have changed.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let all = p.len() as f64;
    // From the highest one down: no adjusted p-value is above that of a higher one.
    adjusted(p, true, |p, rank| p * all / rank as f64, f64::min)
}

/// Adjusts p-values after Holm (1979): x is the probability that any adjusted p-value is at most x by chance. For thresholds, where
/// each false alarm fails a build.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let all = p.len();
    adjusted(p, false, |p, rank| p * (all - rank + 1) as f64, f64::max)
}

/// Adjusts each p-value by its rank, from 1 on, and makes the results follow the order of the p-values.
fn adjusted(p: &[f64], down: bool, by_rank: impl Fn(f64, usize) -> f64, follow: fn(f64, f64) -> f64) -> Vec<f64> {
    let mut order: Vec<(usize, usize)> = {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
        (1..).zip(order).collect()
    };
    if down {
        order.reverse();
    }
    let mut results = vec![0.0; p.len()];
    let mut last = None;
    for (rank, at) in order {
        let own = by_rank(p[at], rank).min(1.0);
        let value = last.map_or(own, |last| follow(own, last));
        (results[at], last) = (value, Some(value));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
    }

    /// As R's `p.adjust` has them, not in the order of the values.
    #[test]
    fn adjusted_values_are_the_known_ones() {
        let p = [0.04, 0.01, 0.03, 0.02, 0.5];
        close(&benjamini_hochberg(&p), &[0.05, 0.05, 0.05, 0.05, 0.5]);
        close(&holm(&p), &[0.09, 0.05, 0.09, 0.08, 0.5]);
        close(&benjamini_hochberg(&[0.6, 0.9]), &[0.9, 0.9]);
        close(&holm(&[0.6, 0.9]), &[1.0, 1.0]);
        close(&holm(&[]), &[]);
        close(&benjamini_hochberg(&[0.03]), &[0.03]);
    }
}
