//! The creators of queues, by the program's own log.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::{Fact, Queue, QueueOrigin};

use crate::scenario::Run;

/// Checks that the program's queues are recorded as the program's, and that all other used queues are recorded as the runtime's
/// own. The trace says nothing about queues that existed before the recording.
pub fn own(run: &Run) {
    let word = Word::of(run);
    let used = |queue: &&Queue| queue.kind == "compute-aql" && queue.doorbells > 0;
    for queue in run.queues().filter(used) {
        if queue.origin == QueueOrigin::Adopted {
            assert_eq!(queue.internal, None, "{queue:?}");
        } else if let Some(is_programs) = word.is_programs(queue) {
            assert_eq!(queue.internal, Some(!is_programs), "{queue:?}");
        } else {
            assert!(queue.internal.is_some(), "{queue:?}");
        }
    }
}

/// The evidence for the creator of a queue.
enum Word {
    /// The handles of the queues that a program itself created.
    Programs(BTreeSet<u64>),
    /// HIP does not report its queues. But kernels of HIP and of the program have names in the code objects that they loaded, and
    /// kernels of the runtime were never loaded as code objects. For a queue without kernels, the recorded calls show its creator,
    /// if there are any.
    Hip {
        /// By queue: whether all kernels on it have names.
        named: BTreeMap<u32, bool>,
        /// Handles that calls returned.
        made: BTreeSet<u64>,
    },
}

impl Word {
    fn of(run: &Run) -> Self {
        if let Some(queues) = run.own_queues() {
            return Self::Programs(queues.into_iter().map(|(handle, _)| handle).collect());
        }
        let (mut named, mut made) = (BTreeMap::new(), BTreeSet::new());
        for fact in &run.facts {
            match fact {
                Fact::Dispatch(dispatch) => {
                    let all = named.entry(dispatch.queue).or_insert(true);
                    *all &= dispatch.kernel.is_some();
                }
                Fact::ApiCall(call) if call.function == "hsa_queue_create" => made.extend(call.object),
                _ => {}
            }
        }
        Self::Hip { named, made }
    }

    /// Returns whether a queue is the program's; `None` if that is unknown.
    fn is_programs(&self, queue: &Queue) -> Option<bool> {
        match self {
            Self::Programs(handles) => Some(handles.contains(&queue.handle)),
            Self::Hip { named, made } => {
                let by_calls = (!made.is_empty()).then(|| made.contains(&queue.handle));
                named.get(&queue.queue).copied().or(by_calls)
            }
        }
    }
}
