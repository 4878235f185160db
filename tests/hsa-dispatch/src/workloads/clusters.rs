//! Kernels on grids of clusters of workgroups: AMD's extended kernel dispatch, between plain ones.

use clap::Args;

use super::accumulator::Accumulator;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::Result;
use crate::hsa::QueueKind;
use crate::packet::{Clusters, Grid};
use crate::report::Outcome;

/// The launch size: 5 clusters of 2 workgroups.
const CLUSTERS: Clusters = Clusters {
    count: 5,
    size: 2,
    workgroup: 64,
};

/// Options of `clusters`.
#[derive(Args, Debug)]
pub struct OfClusters {
    /// Extended dispatches. Each third packet is a plain dispatch.
    #[arg(short, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub n: u32,
}

impl OfClusters {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let grid = Grid {
            items: CLUSTERS.items(),
            workgroup: CLUSTERS.workgroup,
        };
        let sums = Accumulator::new(context, grid)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let plain = self.n / 2;
        let mut producer = context.producer(&queue, (self.n + plain) as usize);
        let start = clock::now();
        for at in 0..self.n {
            let mut packet = sums.ext_packet(CLUSTERS);
            if at + 1 == self.n {
                packet = packet.completing(done.handle());
            }
            if at % 2 == 1 {
                producer.submit(&[sums.packet()])?;
            }
            producer.submit(&[packet])?;
        }
        done.wait("the last dispatch", context.timeout, &[&queue])?;
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        sums.verify("the clusters", (self.n + plain).into())
    }
}
