//! What is read out of processes while they are held, on its way to whoever takes the records: with the moment at which it
//! became true.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc::{Receiver, Sender, channel},
};

use tracer_core::{
    code_object::CodeObject,
    event::{self, Event, Origin},
};

/// Something that was found.
pub enum Finding {
    /// A code object that is there now.
    Loaded(CodeObject),
    /// The number of one that is not any more.
    Unloaded(u64),
    /// The list of code objects could not be read.
    ListUnread,
    /// Whether the process's runtimes hand doorbells to the driver's library; `None` if that is not known any more.
    HandsOver(Option<bool>),
}

/// The side that finds.
#[derive(Clone)]
pub struct Finder {
    sender: Sender<(Origin, Finding)>,
    waiting: Arc<AtomicUsize>,
}

/// The side that takes.
pub struct Findings {
    receiver: Receiver<(Origin, Finding)>,
    waiting: Arc<AtomicUsize>,
}

/// Both sides.
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
    /// Puts it where it is taken. What the process does after that has its records later than this.
    pub fn tell(&self, origin: Origin, finding: Finding) {
        // Who takes them may be gone at the end; then nobody wants them.
        if self.sender.send((origin, finding)).is_ok() {
            self.waiting.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Findings {
    /// Hands over what came. Costs nothing if that is nothing.
    ///
    /// To be called after a record has been found in the ring buffer and before it is taken: what a process did after
    /// a change has its record later than the change was put here.
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
