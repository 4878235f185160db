//! Facts that tracer reads out of paused processes, on their way to the thread that takes the records, each with the moment at
//! which it became true.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc::{Receiver, Sender, channel},
};

use tracer_core::{
    code_object::CodeObject,
    event::{self, Event, Origin},
};

/// A finding.
pub enum Finding {
    /// A code object that is loaded now.
    Loaded(CodeObject),
    /// The number of a code object that is no longer loaded.
    Unloaded(u64),
    /// The list of code objects could not be read.
    ListUnread,
    /// Whether the process's runtimes hand doorbells to the driver's library; `None` if that is not known any more.
    HandsOver(Option<bool>),
}

/// The sending side.
#[derive(Clone)]
pub struct Finder {
    sender: Sender<(Origin, Finding)>,
    waiting: Arc<AtomicUsize>,
}

/// The receiving side.
pub struct Findings {
    receiver: Receiver<(Origin, Finding)>,
    waiting: Arc<AtomicUsize>,
}

/// Creates both sides.
pub fn findings() -> (Finder, Findings) {
    let (sender, receiver) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let finder = Finder {
        sender,
        waiting: Arc::clone(&waiting),
    };
    (finder, Findings { receiver, waiting })
}

impl Finder {
    /// Sends a finding. Records of what the process does afterwards are later than the finding.
    pub fn tell(&self, origin: Origin, finding: Finding) {
        // The receiver may be gone at the end; then the finding is not needed.
        if self.sender.send((origin, finding)).is_ok() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Findings {
    /// Hands over the findings that have arrived. Costs nothing if there are none.
    ///
    /// Call this after finding a record in the ring buffer and before taking it: a process's record of what it did after a change
    /// is later than the finding of that change.
    pub fn take(&self, sink: &mut impl FnMut(&Event<'_>)) {
        while self.waiting.load(Ordering::Acquire) > 0 {
            let Ok((origin, finding)) = self.receiver.try_recv() else {
                return;
            };
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let change = match &finding {
                Finding::HandsOver(hands_over) => {
                    sink(&Event::Thunk(origin, *hands_over));
                    continue;
                }
                Finding::Loaded(loaded) => event::CodeObjectChange::Loaded(loaded),
                Finding::Unloaded(id) => event::CodeObjectChange::Unloaded { id: *id },
                Finding::ListUnread => event::CodeObjectChange::Unread,
            };
            sink(&Event::CodeObject(event::CodeObject { origin, change }));
        }
    }
}
