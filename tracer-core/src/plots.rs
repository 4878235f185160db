//! The numbers behind the plots of a report: activity over time, depth of queues, latencies, and what moved copies.
//!
//! [`Plots`] takes the facts of a trace in the order of their times. Its memory depends on the number of queues and rings only, and
//! both are limited. The tables of a report have the totals; here are their distributions. The bins of all lanes together have
//! every submission that was added.

mod copies;
mod depth;
mod lanes;
mod latency;
mod series;

use crate::tables::{Fact, Loss, Path};
use crate::tally::{Tally, more};

pub use copies::{Moved, Mover};
pub use depth::Depth;
pub use lanes::{Activity, Lane, Subject};
pub use latency::{Bar, Latency};
pub use series::{BINS, Band, Bin, Series, Span};

/// Collects the facts of a trace.
#[derive(Clone, Debug)]
pub struct Plots {
    span: Span,
    lanes: lanes::Counter,
    depths: depth::Counter,
    reserve: latency::Counter,
    launch: latency::Counter,
    copies: copies::Counter,
    losses: Series<u64>,
    tally: Tally,
}

/// What there is to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The first moment, CLOCK_MONOTONIC ns.
    pub begin_ns: u64,
    /// Width of a bin, ns.
    pub width_ns: u64,
    /// Bins of every series.
    pub bins: usize,
    /// Activity of queues and rings, in the order of first sight. What is beyond the limit is in a lane for all others.
    pub lanes: Vec<Lane>,
    /// Depth of each AQL queue of which an index is known.
    pub depths: Vec<Depth>,
    /// Time from reserve to doorbell.
    pub reserve: Latency,
    /// Time from the entry of the outermost recorded API call to the doorbell.
    pub launch: Latency,
    /// Copies and fills, by what moved the bytes.
    pub copies: Vec<Moved>,
    /// Events lost, at the time at which the loss was noticed.
    pub losses: Vec<u64>,
    /// Dispatches by path, whether or not their number is known to be whole.
    pub by_path: [u64; Path::ALL.len()],
    /// Dispatches and doorbells that have no rows of their own. Their runs, of less than 10 ms each, are spread evenly.
    pub aggregated: u64,
}

impl Plots {
    /// Returns empty plots of what happened from one time to another one, CLOCK_MONOTONIC ns. The end is `None` if it is unknown:
    /// then it is the time of the last fact.
    #[must_use]
    pub fn new(begin_ns: u64, end_ns: Option<u64>) -> Self {
        let span = Span::new(begin_ns, end_ns);
        Self {
            span,
            lanes: lanes::Counter::new(span),
            depths: depth::Counter::new(span),
            reserve: latency::Counter::default(),
            launch: latency::Counter::default(),
            copies: copies::Counter::default(),
            losses: Series::new(span),
            tally: Tally::default(),
        }
    }

    /// Adds a fact. Facts come in the order of their times. `launch_ns` is the time from the API call to the doorbell, of a dispatch
    /// ([`crate::analysis::Analysis::add`]).
    pub fn add(&mut self, fact: &Fact, launch_ns: Option<u64>) {
        self.tally.add(fact);
        self.lanes.add(fact);
        self.depths.add(fact);
        match fact {
            Fact::Dispatch(_) => self.launch.add(launch_ns),
            Fact::Doorbell(doorbell) => self.reserve.add(doorbell.reserve_to_doorbell_ns),
            Fact::Copy(copy) => self.copies.add(copy),
            Fact::Loss(Loss { time_ns, count, .. }) => more(self.losses.at(*time_ns), *count),
            _ => {}
        }
    }

    /// Returns what there is to draw, all of it with the same bins.
    #[must_use]
    pub fn finish(self) -> Figures {
        let mut lanes = self.lanes.finish();
        let mut depths = self.depths.finish();
        let mut losses = self.losses;
        let widths = lanes.iter().map(|lane| lane.activity.width_ns());
        let widths = widths.chain(depths.iter().map(|depth| depth.bands.width_ns()));
        let width_ns = widths.fold(losses.width_ns(), u64::max);
        lanes.iter_mut().for_each(|lane| lane.activity.widen(width_ns));
        depths.iter_mut().for_each(|depth| depth.bands.widen(width_ns));
        losses.widen(width_ns);
        let used = lanes.iter().map(|lane| lane.activity.len());
        let used = used.chain(depths.iter().map(|depth| depth.bands.len()));
        let used = used.chain([losses.len(), self.span.bins(width_ns)]);
        let bins = used.max().unwrap_or_default().max(1);
        Figures {
            begin_ns: self.span.begin_ns,
            width_ns,
            bins,
            losses: losses.bins(bins),
            lanes,
            depths,
            reserve: self.reserve.finish(),
            launch: self.launch.finish(),
            copies: self.copies.finish(),
            by_path: self.tally.dispatches,
            aggregated: self
                .tally
                .aggregated
                .dispatches
                .saturating_add(self.tally.aggregated.doorbells),
        }
    }
}

#[cfg(test)]
mod tests;
