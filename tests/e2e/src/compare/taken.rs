//! The comparison for programs that store to doorbells themselves: no probe sees a doorbell, and packets are read from their slots.

use std::collections::BTreeMap;

use tracer_core::tables::{Dispatch, Evidence, OtherPacket, Path};

use super::{other_fields, packet_fields, queues};
use crate::scenario::Run;

/// Checks that the trace has every AQL packet that the device took by path `unseen`, with its fields, read from its slot; and no
/// other. Returns the number of dispatches.
pub fn taken(run: &Run) -> usize {
    let mut count = 0;
    for (truth, queue) in queues(run).into_iter().filter(|(truth, _)| truth.is_aql()) {
        let of_queue = run.dispatches().filter(|row| row.queue == queue.queue);
        let mut dispatches: BTreeMap<u64, &Dispatch> = of_queue.map(|row| (row.index, row)).collect();
        let of_queue = run.packets().filter(|row| row.queue == queue.queue);
        let mut others: BTreeMap<u64, &OtherPacket> = of_queue.map(|row| (row.index, row)).collect();
        for packet in &truth.packets {
            let there = (dispatches.remove(&packet.index), others.remove(&packet.index));
            match (packet.is_dispatch(), there) {
                (true, (Some(row), None)) => {
                    packet_fields(packet, row);
                    assert_eq!(
                        (row.path, row.evidence, row.tid),
                        (Path::Unseen, Evidence::Body, 0),
                        "{row:?}"
                    );
                    count += 1;
                }
                (false, (None, Some(row))) => {
                    other_fields(packet, row);
                    assert_eq!((row.path, row.tid), (Path::Unseen, 0), "{row:?}");
                }
                (_, there) => panic!("{packet:?}: {there:?}"),
            }
        }
        assert!(
            dispatches.is_empty() && others.is_empty(),
            "never taken: {dispatches:?} {others:?}"
        );
        let all = truth.packets.len() as u64;
        assert_eq!(
            (queue.unseen, queue.published, queue.unread, queue.watched_to_end),
            (Some(all), all, 0, Some(true)),
            "{queue:?}"
        );
    }
    count
}
