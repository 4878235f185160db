//! Values in a fixed number of bins over a time that need not be known before.

/// Most bins of a series.
pub const BINS: usize = 400;

/// Width of a bin before the first fact, if the end is unknown, ns.
const FIRST_WIDTH_NS: u64 = 1000;

/// The time that series are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first moment, CLOCK_MONOTONIC ns. What was before it counts there.
    pub begin_ns: u64,
    /// The last moment, if it is known. What was after it counts there.
    pub end_ns: Option<u64>,
}

/// A value of a bin.
pub trait Bin: Clone + Default {
    /// Adds the value of the bin that follows: both become one.
    fn merge(&mut self, next: &Self);
}

impl Bin for u64 {
    fn merge(&mut self, next: &Self) {
        *self = self.saturating_add(*next);
    }
}

/// The lowest and the highest value that is known to have been possible in a bin; `None` if nothing is known.
pub type Band = Option<(u64, u64)>;

impl Bin for Band {
    fn merge(&mut self, next: &Self) {
        *self = match (*self, *next) {
            (Some((low, high)), Some((next_low, next_high))) => Some((low.min(next_low), high.max(next_high))),
            (one, other) => one.or(other),
        };
    }
}

/// Bins of equal width. If a time is beyond the last bin, the width doubles, and two bins become one, so that no value is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series<T> {
    span: Span,
    width_ns: u64,
    /// Up to the last bin in use.
    bins: Vec<T>,
}

impl Span {
    /// Returns the time between two moments; an end before the begin is the begin.
    #[must_use]
    pub fn new(begin_ns: u64, end_ns: Option<u64>) -> Self {
        Self {
            begin_ns,
            end_ns: end_ns.map(|end| end.max(begin_ns)),
        }
    }

    /// Returns a time in the span: the nearest one.
    pub(super) fn within(self, time_ns: u64) -> u64 {
        time_ns.max(self.begin_ns).min(self.end_ns.unwrap_or(u64::MAX))
    }

    /// Returns the bins of a width that the span takes; 0 if its end is unknown.
    pub(super) fn bins(self, width_ns: u64) -> usize {
        self.end_ns
            .map_or(0, |end| ((end - self.begin_ns) / width_ns) as usize + 1)
    }

    fn width_ns(self) -> u64 {
        match self.end_ns {
            Some(end) => (end - self.begin_ns) / BINS as u64 + 1,
            None => FIRST_WIDTH_NS,
        }
    }
}

impl<T: Bin> Series<T> {
    /// Returns a series without values.
    #[must_use]
    pub fn new(span: Span) -> Self {
        Self {
            span,
            width_ns: span.width_ns(),
            bins: Vec::new(),
        }
    }

    /// Returns the width of a bin, ns.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns the number of bins up to the last one in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Returns whether no bin is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Returns the bin of a time.
    pub fn at(&mut self, time_ns: u64) -> &mut T {
        let since = self.span.within(time_ns) - self.span.begin_ns;
        while since / self.width_ns >= BINS as u64 {
            self.double();
        }
        let at = (since / self.width_ns) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, T::default());
        }
        &mut self.bins[at]
    }

    /// Calls `visit` with each bin of the times from one to another one, and with the ns of them that are in the bin. The last
    /// time is not included.
    pub(super) fn each(&mut self, from_ns: u64, to_ns: u64, mut visit: impl FnMut(&mut T, u64)) {
        let (mut from, to) = (self.span.within(from_ns), self.span.within(to_ns));
        if from >= to {
            return;
        }
        // The width is that of the last bin from now on.
        self.at(to - 1);
        while from < to {
            let past = (from - self.span.begin_ns) % self.width_ns;
            let next = from.saturating_add(self.width_ns - past).min(to);
            visit(self.at(from), next - from);
            from = next;
        }
    }

    /// Returns the ns of the times from one to another one that are in the span.
    pub(super) fn ns_within(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.span.within(to_ns).saturating_sub(self.span.within(from_ns))
    }

    /// Doubles the width of the bins until it is `width_ns`, a width of a series of the same span.
    pub(super) fn widen(&mut self, width_ns: u64) {
        while self.width_ns < width_ns {
            self.double();
        }
    }

    /// Adds the values of another series, whose bins have the same width.
    pub(super) fn add(&mut self, other: &Self) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), T::default());
        }
        let pairs = self.bins.iter_mut().zip(&other.bins);
        pairs.for_each(|(bin, other)| bin.merge(other));
    }

    /// Returns the values, and those of unused bins up to a number of bins.
    #[must_use]
    pub fn bins(&self, bins: usize) -> Vec<T> {
        let mut values = self.bins.clone();
        values.resize(bins, T::default());
        values
    }

    /// Returns the values up to the last bin in use.
    #[must_use]
    pub fn used(&self) -> &[T] {
        &self.bins
    }

    fn double(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let pairs = self.bins.chunks(2).map(|pair| {
            let mut one = pair[0].clone();
            pair[1..].iter().for_each(|next| one.merge(next));
            one
        });
        self.bins = pairs.collect();
    }
}
