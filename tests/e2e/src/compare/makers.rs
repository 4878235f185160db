//! Whose queues are, by what the program says itself.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::fact::{Fact, Queue, QueueOrigin};

use crate::scenario::Run;

/// The program's queues are the program's, all others that were used are its runtime's own; of those that were there before
/// the recording nothing is said.
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

/// What tells whose queues are.
enum Word {
    /// The handles of its own, by a program that makes them itself.
    Programs(BTreeSet<u64>),
    /// HIP does not tell its queues. But kernels of its own and of the program have names in the code objects that they
    /// loaded, and those of the runtime were never loaded by anybody. Where there is no kernel, calls tell, if recorded.
    Hip {
        /// By queue, whether all kernels on it have names.
        named: BTreeMap<u32, bool>,
        /// Handles that calls gave.
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

    /// Whether a queue is the program's; `None` where that can't be told.
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
