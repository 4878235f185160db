//! Detects whether every compute queue that a process created had doorbell probes.

use std::collections::BTreeSet;

use tracer_capture::inventory::Inventory;
use tracer_core::{
    event::Event,
    tables::{Queue, QueueOrigin},
};

/// Maximum number of processes that are kept in each set.
const MAX: usize = 1 << 16;

/// Processes in which probes were hit.
#[derive(Debug, Default)]
pub struct Probed {
    /// Processes that hit any probe in an HSA runtime.
    runtime: BTreeSet<u32>,
    /// Processes that hit a doorbell probe.
    doorbell: BTreeSet<u32>,
    /// The last process that hit a doorbell probe: a process rings many doorbells in a row.
    last: Option<u32>,
}

impl Probed {
    /// Takes an observation.
    pub fn saw(&mut self, event: &Event<'_>) {
        match event {
            Event::Doorbell(event) if self.last != Some(event.origin.pid) => {
                self.last = Some(event.origin.pid);
                add(&mut self.doorbell, event.origin.pid);
            }
            Event::HsaQueue(event) => add(&mut self.runtime, event.origin.pid),
            Event::CodeObject(event) => add(&mut self.runtime, event.origin.pid),
            Event::SdmaDoorbell(event) => add(&mut self.runtime, event.origin.pid),
            Event::Thunk(origin, _) => add(&mut self.runtime, origin.pid),
            _ => {}
        }
    }

    /// Returns whether a process created a compute queue, or had one without a runtime, for which no doorbell probe was attached.
    ///
    /// Probes belong to files. A process whose doorbells were seen has doorbell probes. A process in whose runtime another probe
    /// was hit has them, too, if all runtimes that were found have doorbell probes. A process that created a queue and hit no probe
    /// at all uses a runtime that was not found, or none.
    pub fn lacks<'a>(&self, mut queues: impl Iterator<Item = &'a Queue>, inventory: &Inventory) -> bool {
        let whole = inventory.runtimes_have_doorbells();
        queues.any(|queue| {
            let seen = queue.origin != QueueOrigin::Adopted;
            let compute = seen && queue.kind.starts_with("compute");
            let has = self.doorbell.contains(&queue.pid) || whole && self.runtime.contains(&queue.pid);
            compute && !has
        })
    }
}

fn add(pids: &mut BTreeSet<u32>, pid: u32) {
    if pids.len() < MAX {
        pids.insert(pid);
    }
}

#[cfg(test)]
mod tests {
    use tracer_capture::inventory::{Library, Probe};
    use tracer_core::{event::Origin, family::Family};

    use super::*;

    fn queue(pid: u32, kind: &str, origin: QueueOrigin) -> Queue {
        Queue {
            pid,
            kind: kind.to_owned(),
            origin,
            ..tracer_core::sample::queue(0)
        }
    }

    fn inventory(attached: bool) -> Inventory {
        Inventory {
            libraries: vec![Library {
                path: "a".to_owned(),
                ..Library::default()
            }],
            probes: vec![Probe {
                family: Family::Doorbell,
                target: "a".to_owned(),
                error: (!attached).then(|| "no room".to_owned()),
                ..Probe::default()
            }],
            ..Inventory::default()
        }
    }

    #[test]
    fn only_a_compute_queue_that_was_created_without_probes_counts() {
        let mut probed = Probed::default();
        let origin = Origin {
            pid: 7,
            ..Origin::default()
        };
        probed.saw(&Event::Thunk(origin, None));
        let lacks = |probed: &Probed, queue: &Queue, attached| probed.lacks([queue].into_iter(), &inventory(attached));
        let created = |pid, kind| queue(pid, kind, QueueOrigin::Created);
        // A command that opens no GPU has nothing to lack, whatever it maps.
        assert!(!probed.lacks([].into_iter(), &inventory(false)));
        assert!(!lacks(&probed, &created(7, "sdma"), false));
        assert!(!lacks(&probed, &queue(7, "compute", QueueOrigin::Adopted), false));
        assert!(lacks(&probed, &queue(9, "compute", QueueOrigin::Listed), true));
        assert!(!lacks(&probed, &created(7, "compute-aql"), true));
        assert!(lacks(&probed, &created(7, "compute-aql"), false));
        assert!(lacks(&probed, &created(8, "compute-aql"), true));
        assert!(lacks(&probed, &created(8, "compute-pm4"), true));
        probed.doorbell.insert(8);
        assert!(!lacks(&probed, &created(8, "compute-aql"), false));
    }
}
