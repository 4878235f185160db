//! Records about queues other than their doorbells.

use tracer_common::record::{self, hsa_queue_flags, progress_flags};
use tracer_core::event::{Event, HsaQueue, Occasion, Progress, Proxied, Signal};

use super::origin;

/// Reports a last sample of a queue.
pub(super) fn progress(r: &record::Progress, sink: &mut impl FnMut(&Event<'_>)) {
    sink(&Event::Progress(Progress {
        origin: origin(&r.header),
        after_ns: r.after_ns,
        handle: r.queue,
        read_index: r.read_index,
        write_index: r.write_index,
        rung_end: (r.rung_end != record::UNKNOWN).then_some(r.rung_end),
        occasion: match r.header.flags & progress_flags::OCCASION {
            progress_flags::DESTROY => Occasion::Destroy,
            progress_flags::DESTROYED => Occasion::Destroyed,
            _ => Occasion::ProcessEnd,
        },
    }));
}

/// Reports last reads of completion signals.
pub(super) fn signals(r: &record::Signals, sink: &mut impl FnMut(&Event<'_>)) {
    for state in r.signals.iter().filter(|state| state.signal != 0) {
        sink(&Event::Signal(Signal {
            origin: origin(&r.header),
            after_ns: r.after_ns,
            state: *state,
        }));
    }
}

/// Reports a queue that a program created.
pub(super) fn hsa_queue(r: &record::HsaQueue, sink: &mut impl FnMut(&Event<'_>)) {
    sink(&Event::HsaQueue(HsaQueue {
        origin: origin(&r.header),
        exit_ns: r.exit_ns,
        handle: r.queue,
        proxy: (r.header.flags & hsa_queue_flags::PROXY != 0).then_some(Proxied {
            ring_base: r.base,
            ring_packets: r.size,
        }),
    }));
}
