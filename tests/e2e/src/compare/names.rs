//! Names of kernels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tracer_core::tables::{Dispatch, Fact, Kernel};

use super::queues;
use crate::scenario::Run;

/// Checks that every dispatch has the name by which the dispatcher knows its kernel.
pub fn own(run: &Run) -> usize {
    let Some(log) = &run.log else { return 0 };
    let handles: BTreeMap<u32, u64> = run.queues().map(|queue| (queue.queue, queue.handle)).collect();
    // Queues that have the same address one after the other all have the same kernels.
    let mut names: BTreeMap<(u64, u64), BTreeSet<Option<&str>>> = BTreeMap::new();
    for d in run.dispatches() {
        let key = (handles[&d.queue], d.index);
        names.entry(key).or_default().insert(d.kernel.as_deref());
    }
    let mut count = 0;
    for submission in &log.submissions {
        if let (Some(name), Some(found)) = (&submission.kernel, names.get(&(submission.queue, submission.index))) {
            assert!(found.contains(&Some(name.as_str())), "{submission:?}: {found:?}");
            assert!(!found.contains(&None), "{submission:?}: {found:?}");
            count += 1;
        }
    }
    count
}

/// Checks that every dispatch of a kernel that the device knows by name, such as HIP's own, has that name. Returns their number.
pub fn of_device(run: &Run) -> usize {
    let mut kernels: HashMap<(u32, u64), Vec<&Kernel>> = HashMap::new();
    for fact in &run.facts {
        if let Fact::Kernel(kernel) = fact {
            kernels
                .entry((kernel.pid, kernel.kernel_object))
                .or_default()
                .push(kernel);
        }
    }
    let dispatches: HashMap<(u32, u64), &Dispatch> = run.dispatches().map(|d| ((d.queue, d.index), d)).collect();
    let mut count = 0;
    for (truth, queue) in queues(run) {
        for packet in &truth.packets {
            let (Some(symbol), Some(d)) = (&packet.kernel, dispatches.get(&(queue.queue, packet.index))) else {
                continue;
            };
            let mut there = kernels.get(&(d.pid, d.kernel_object)).into_iter().flatten();
            let kernel = there.find(|kernel| *kernel.symbol == **symbol);
            let name = kernel.map(|kernel| kernel.name.clone());
            assert!(name.is_some(), "{symbol} is in no code object of the trace: {d:?}");
            assert_eq!(d.kernel, name, "{d:?}");
            count += 1;
        }
    }
    count
}
