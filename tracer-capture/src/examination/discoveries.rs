//! Facts that tracer reads out of paused processes, on their way to the thread that takes the records, each with the moment at
//! which it became true.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc::{Receiver, Sender, channel},
};

use tracer_core::{
    code_object::CodeObject,
    event::{self, CodeObjectChange, Event, Origin},
    placement::Placement,
};

/// A discovery.
pub enum Discovery {
    /// A code object that is loaded now.
    Loaded(CodeObject),
    /// The number of a code object that is no longer loaded.
    Unloaded(u64),
    /// The list of code objects could not be read.
    ListUnread,
    /// Whether the process's runtimes hand doorbells to the driver's library; `None` if that is not known any more.
    HandsOver(Option<bool>),
    /// Where the process runs.
    Placed(Placement),
}

/// The sending side.
#[derive(Clone)]
pub struct DiscoverySender {
    sender: Sender<(Origin, Discovery)>,
    waiting: Arc<AtomicUsize>,
}

/// The receiving side.
pub struct Discoveries {
    receiver: Receiver<(Origin, Discovery)>,
    waiting: Arc<AtomicUsize>,
}

/// Creates both sides.
pub fn discoveries() -> (DiscoverySender, Discoveries) {
    let (sender, receiver) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let finder = DiscoverySender {
        sender,
        waiting: Arc::clone(&waiting),
    };
    (finder, Discoveries { receiver, waiting })
}

impl DiscoverySender {
    /// Sends a discovery. Records of what the process does afterwards are later than the discovery.
    pub fn report(&self, origin: Origin, discovery: Discovery) {
        // The receiver may be gone at the end; then the discovery is not needed.
        if self.sender.send((origin, discovery)).is_ok() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Discoveries {
    /// Hands over the discoveries that have arrived. Costs nothing if there are none.
    ///
    /// Call this after a record was found in the ring buffer, and before it is handled: a process's record of what it did after a
    /// change is later than the discovery of that change.
    pub fn take(&self, sink: &mut impl FnMut(&Event<'_>)) {
        while self.waiting.load(Ordering::Acquire) > 0 {
            let Ok((origin, discovery)) = self.receiver.try_recv() else {
                return;
            };
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let changed = |change| Event::CodeObject(event::CodeObject { origin, change });
            sink(&match &discovery {
                Discovery::Placed(placement) => Event::Placed(origin, placement),
                Discovery::HandsOver(hands_over) => Event::Thunk(origin, *hands_over),
                Discovery::Loaded(loaded) => changed(CodeObjectChange::Loaded(loaded)),
                Discovery::Unloaded(id) => changed(CodeObjectChange::Unloaded { id: *id }),
                Discovery::ListUnread => changed(CodeObjectChange::Unread),
            });
        }
    }
}
