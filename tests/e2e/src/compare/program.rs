//! The comparison for recordings that see only doorbells that the program rings through the API.

use std::collections::BTreeSet;

use tracer_core::tables::Fact;

use super::{Compared, doorbells, ioctls, no_losses, packets, queues, rung};
use crate::scenario::Run;

/// Compares the program's own queues with the truth. The trace must have no doorbell of the runtime's queues. Also returns how many
/// packets the device took from those.
pub fn of_program(run: &Run) -> (Compared, usize) {
    no_losses(run);
    let own = run.own_queues().expect("queues");
    let of_program: BTreeSet<u64> = own.into_iter().map(|(handle, _)| handle).collect();
    let (mut compared, mut of_runtime) = (Compared::default(), 0);
    for (truth, queue) in queues(run).iter().filter(|(truth, _)| truth.is_aql()) {
        compared.queues += 1;
        if of_program.contains(&queue.handle) {
            packets(run, truth, queue, &mut compared);
            compared.doorbells += doorbells(run, truth, queue);
        } else {
            let rings = |fact: &&Fact| matches!(fact, Fact::Doorbell(d) if d.queue == Some(queue.queue));
            assert_eq!(
                run.facts.iter().filter(rings).count(),
                0,
                "{queue:?} belongs to the runtime"
            );
            of_runtime += truth.packets.len();
        }
    }
    rung::own(run);
    rung::counts(run);
    compared.ioctls = ioctls(run);
    (compared, of_runtime)
}
