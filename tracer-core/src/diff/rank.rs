//! The rank test: whether values of repeated runs differ in their location (Mann and Whitney 1947).
//!
//! The test assumes nothing of the distribution of the values. Up to [`EXACT_MOST`] values it counts every way to divide the pooled
//! ranks into the two groups, with equal values at their mean rank. So ties need no correction, and the smallest samples have exact
//! p-values. Beyond that, the normal approximation with corrections for ties and continuity takes over.

/// Number of values of both groups up to which p-values are exact.
pub const EXACT_MOST: usize = 40;

/// Returns the two-sided p-value: how probable it is that ranks lie at least this far apart if the groups do not differ. 1 if a
/// group is empty.
#[must_use]
pub fn two_sided(before: &[f64], after: &[f64]) -> f64 {
    let of = |one: &[f64], other: &[f64]| greater(one, other);
    (2.0 * of(before, after).min(of(after, before))).min(1.0)
}

/// Returns the one-sided p-value: how probable it is that `after` has ranks this high or higher if the groups do not differ. 1 if a
/// group is empty.
#[must_use]
pub fn greater(before: &[f64], after: &[f64]) -> f64 {
    if before.is_empty() || after.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(before, after);
    let observed: usize = ranks[before.len()..].iter().sum();
    if ranks.len() <= EXACT_MOST {
        exact(&ranks, after.len(), observed)
    } else {
        approximate(&ranks, after.len(), observed)
    }
}

/// Returns the lowest p-value that groups of these sizes can have, two-sided: that of groups that do not overlap.
#[must_use]
pub fn lowest(before: usize, after: usize) -> f64 {
    (2.0 * lowest_one_sided(before, after)).min(1.0)
}

/// Returns the lowest one-sided p-value that groups of these sizes can have.
#[must_use]
pub fn lowest_one_sided(before: usize, after: usize) -> f64 {
    // Every product is divisible, so the number of ways to choose one group is exact while it fits into a double.
    let ways = (1..=after).fold(1.0, |ways, n| ways * (before + n) as f64 / n as f64);
    1.0 / ways
}

/// Returns the least number of runs on each side with which a p-value can be at most `alpha`.
#[must_use]
pub fn runs_needed(alpha: f64) -> usize {
    (1..EXACT_MOST).find(|&n| lowest(n, n) <= alpha).unwrap_or(EXACT_MOST)
}

/// Returns twice the rank of each value among all values, `before` first. Equal values share the mean of their ranks, so twice a rank
/// is a whole number.
fn doubled_ranks(before: &[f64], after: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = before.iter().chain(after).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for ties in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        // The ranks first + 1 to first + length: twice their mean.
        let doubled = 2 * first + 1 + ties.len();
        ties.iter().for_each(|&at| ranks[at] = doubled);
        first += ties.len();
    }
    ranks
}

/// Counts the ways to choose `size` of the ranks, and those among them whose sum is at least `observed`.
fn exact(ranks: &[usize], size: usize, observed: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    // ways[n][s]: the ways to choose n ranks with the sum s. 40 over 20 is exact in a double.
    let mut ways = vec![vec![0.0_f64; most + 1]; size + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for n in (1..=size).rev() {
            let (fewer, more) = ways.split_at_mut(n);
            let (fewer, more) = (&fewer[n - 1], &mut more[0]);
            for (to, from) in more[rank..].iter_mut().zip(fewer) {
                *to += from;
            }
        }
    }
    let all: f64 = ways[size].iter().sum();
    let extreme: f64 = ways[size].iter().skip(observed).sum();
    extreme / all
}

/// Returns the same p-value by the normal distribution.
fn approximate(ranks: &[usize], size: usize, observed: usize) -> f64 {
    let all = ranks.len() as f64;
    let (after, before) = (size as f64, all - size as f64);
    let expected = after * (all + 1.0) / 2.0;
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let ties = sorted.chunk_by(|a, b| a == b).map(|ties| ties.len() as f64);
    let ties: f64 = ties.map(|n| n.powi(3) - n).sum();
    let variance = before * after / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let sum = observed as f64 / 2.0;
    let z = (sum - expected - 0.5) / variance.sqrt();
    libm::erfc(z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }

    /// Values of the handbooks of other programs: the example of scipy's `mannwhitneyu`, and that of R's `wilcox.test` (Hollander
    /// and Wolfe 1973, p. 69).
    #[test]
    fn known_samples_have_their_known_p_values() {
        let (males, females) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        close(two_sided(&males, &females), 0.111_111);
        close(two_sided(&females, &males), 0.111_111);
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        close(greater(&early, &at_term), 0.1272);
        // The same by the normal distribution, as scipy has it.
        let ranks = doubled_ranks(&females, &males);
        let observed = ranks[females.len()..].iter().sum();
        close(2.0 * approximate(&ranks, males.len(), observed), 0.111_347);
    }

    /// Critical values of the tables of U: two-sided, 5 %.
    #[test]
    fn groups_that_do_not_overlap_have_the_lowest_p_value() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        for (n, expected) in [(1, 1.0), (2, 1.0 / 3.0), (3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            close(two_sided(&low[..n], &high[..n]), expected);
            close(lowest(n, n), expected);
            close(greater(&low[..n], &high[..n]), expected / 2.0);
        }
        // U = 2 of 5 and 5 is in the tables of 5 %, U = 3 is not.
        let with = |values: [f64; 5]| two_sided(&low, &values);
        close(with([3.5, 7.0, 8.0, 9.0, 10.0]), 8.0 / 252.0);
        close(with([2.5, 7.0, 8.0, 9.0, 10.0]), 14.0 / 252.0);
        assert_eq!([0.05, 0.01, 0.5, 1.0].map(runs_needed), [4, 5, 2, 1]);
    }

    #[test]
    fn what_cannot_differ_has_the_p_value_1() {
        close(two_sided(&[], &[1.0]), 1.0);
        close(two_sided(&[3.0; 4], &[3.0; 6]), 1.0);
        close(two_sided(&[3.0; 40], &[3.0; 40]), 1.0);
    }

    /// The variance of a sum of ranks that are drawn without replacement, by its definition.
    #[test]
    fn equal_values_vary_less() {
        let values = |least: u32| (0..30).map(|n| f64::from(least + n % 2)).collect::<Vec<_>>();
        let (before, after) = (values(1), [values(1), values(2)].concat());
        let ranks = doubled_ranks(&before, &after);
        let observed: usize = ranks[before.len()..].iter().sum();
        let (all, drawn) = (ranks.len() as f64, after.len() as f64);
        let mean = (all + 1.0) / 2.0;
        let squares: f64 = ranks.iter().map(|&rank| (rank as f64 / 2.0 - mean).powi(2)).sum();
        let deviation = (drawn * (all - drawn) / all / (all - 1.0) * squares).sqrt();
        let z = (observed as f64 / 2.0 - drawn * mean - 0.5) / deviation;
        let expected = libm::erfc(z / std::f64::consts::SQRT_2) / 2.0;
        assert!(
            (greater(&before, &after) - expected).abs() < 1e-12 && expected < 0.05,
            "{expected}"
        );
    }

    /// Enumerates every choice of a group: how many have a sum of at least the observed one.
    fn enumerated(before: &[f64], after: &[f64]) -> f64 {
        let ranks = doubled_ranks(before, after);
        let observed: usize = ranks[before.len()..].iter().sum();
        let (mut all, mut extreme) = (0_u32, 0_u32);
        for choice in 0..1_u32 << ranks.len() {
            if choice.count_ones() as usize == after.len() {
                let chosen = ranks.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
                all += 1;
                extreme += u32::from(chosen.map(|(_, rank)| rank).sum::<usize>() >= observed);
            }
        }
        f64::from(extreme) / f64::from(all)
    }

    fn values(most: u32, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((0..most).prop_map(f64::from), count)
    }

    proptest! {
        /// Few different values: there are ties.
        #[test]
        fn p_values_are_those_of_enumeration(before in values(5, 1..6), after in values(5, 1..6)) {
            let (found, expected) = (greater(&before, &after), enumerated(&before, &after));
            prop_assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }

        #[test]
        fn the_approximation_continues_the_exact_test(before in values(1000, 18..21), after in values(1000, 18..21)) {
            let ranks = doubled_ranks(&before, &after);
            let observed = ranks[before.len()..].iter().sum();
            let (one, other) = (exact(&ranks, after.len(), observed), approximate(&ranks, after.len(), observed));
            prop_assert!((one - other).abs() < 0.01, "{one}, {other}");
        }

        #[test]
        fn neither_order_nor_scale_matters(before in values(50, 1..8), after in values(50, 1..8)) {
            let p = two_sided(&before, &after);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!(p + 1e-12 >= lowest(before.len(), after.len()));
            let scaled = |values: &[f64]| values.iter().rev().map(|value| value * 8.0 + 3.0).collect::<Vec<_>>();
            prop_assert!((two_sided(&scaled(&before), &scaled(&after)) - p).abs() < 1e-12);
            prop_assert!((two_sided(&after, &before) - p).abs() < 1e-12);
        }
    }
}
