//! Comparison of what the script of `tracer record --script` captures of a device: queues, packets, doorbells and ioctls.

use super::{Compared, doorbells, ioctls, no_losses, packets, queues, rung};
use crate::scenario::Run;

/// Compares everything that the import of a script's output has. Panics at the first difference.
pub fn of_script(run: &Run) -> Compared {
    no_losses(run);
    let compared = of_scripted_batches(run, u64::MAX);
    assert!(run.queues().all(|queue| queue.unread == 0));
    compared
}

/// Does the same, but of queues whose doorbells published more packets than the script reads at each, `unread` packets are unread.
pub fn of_scripted_batches(run: &Run, unread: u64) -> Compared {
    let pairs = queues(run);
    let mut compared = Compared {
        queues: pairs.len(),
        ..Compared::default()
    };
    for (truth, queue) in pairs.iter().filter(|(truth, _)| truth.is_aql()) {
        compared.doorbells += doorbells(run, truth, queue);
        if queue.unread == 0 {
            packets(run, truth, queue, &mut compared);
        } else {
            let all = queue.dispatches + queue.other_packets + queue.unread;
            assert_eq!(
                (all, queue.published, queue.unread),
                (truth.packets.len() as u64, all, unread),
                "{queue:?}"
            );
        }
    }
    compared.ioctls = ioctls(run);
    rung::own(run);
    if run.log.is_some() {
        rung::counts(run);
    }
    compared
}
