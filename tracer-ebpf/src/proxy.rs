//! Proxies: queues in memory that a tool (a profiler) puts in front of the runtime's own. The program writes packets there and
//! rings a signal. A function of the runtime then hands the packets to the tool, which publishes any packets it chooses.
//!
//! A proxy is distinguished from a queue by the kind of its doorbell, in the queue that `hsa_queue_create` returns to the program.
//! It has the layout and use of a queue, so its packets are walked like a queue's: by a probe at the functions that its signal
//! calls.

use aya_ebpf::{macros::map, maps::LruHashMap};
use tracer_common::{
    queue::{
        BASE_ADDRESS, DOORBELL_SIGNAL, SIGNAL_KIND, SIGNAL_KIND_DOORBELL, SIGNAL_KIND_LEGACY_DOORBELL, SIGNAL_OBJECT,
        SIZE,
    },
    record::{LossSource, hold_reason},
};

use crate::{
    doorbell,
    maps::{Current, lose},
    pause::{Pause, pause},
    user,
};

/// The key of a proxy's signal, as its functions identify it.
#[repr(C)]
#[derive(Clone, Copy)]
struct ObjectKey {
    object: u64,
    tgid: u32,
    generation: u32,
}

/// Addresses of the `amd_queue_t` of proxies.
#[map]
static PROXIES: LruHashMap<ObjectKey, u64> = LruHashMap::with_max_entries(16 << 10, 0);

/// The queue that `hsa_queue_create` returned.
///
/// There is no `Option` around it: Linux 6.1 refuses to copy one, because nothing is written where it has no value.
#[derive(Clone, Copy)]
pub struct Made {
    /// 1 if it is a proxy; otherwise the rest is 0.
    pub is_proxy: u32,
    pub size: u32,
    pub base: u64,
    /// The object whose functions ring it; 0 if that could not be read.
    object: u64,
}

/// Examines the queue that `hsa_queue_create` returned.
#[inline(always)]
pub fn look(queue: u64) -> Made {
    let mut made = Made::NONE;
    let at = |offset: usize| queue.wrapping_add(offset as u64);
    let Some(signal) = user::read::<u64>(at(DOORBELL_SIGNAL)) else {
        lose(LossSource::ProxyUnknown, 1);
        return made;
    };
    let Some(kind) = user::read::<i64>(signal.wrapping_add(SIGNAL_KIND as u64)) else {
        lose(LossSource::ProxyUnknown, 1);
        return made;
    };
    if kind != SIGNAL_KIND_DOORBELL && kind != SIGNAL_KIND_LEGACY_DOORBELL {
        made.is_proxy = 1;
        made.size = user::read(at(SIZE)).unwrap_or(0);
        made.base = user::read(at(BASE_ADDRESS)).unwrap_or(0);
        made.object = user::read(signal.wrapping_add(SIGNAL_OBJECT as u64)).unwrap_or(0);
    }
    made
}

impl Made {
    /// Not a proxy.
    pub const NONE: Self = Self {
        is_proxy: 0,
        size: 0,
        base: 0,
        object: 0,
    };

    /// Starts to watch a proxy. No packet was written to it yet, so its doorbells are watched from its first packet on. The process
    /// is paused for that. `stack` is its stack pointer.
    #[inline(always)]
    pub fn watch(self, current: Current, queue: u64, stack: u64) {
        doorbell::begin_queue(current, queue);
        if PROXIES.insert(key_of(current, self.object), queue, 0).is_err() {
            lose(LossSource::QueueMap, 1);
        }
        let wanted = Pause {
            address: self.object,
            ..Pause::at_probe(hold_reason::PROXY, 0, stack)
        };
        pause(current, wanted);
    }
}

/// Finds the proxy that an object's function rings. A proxy that existed before it could be watched is not known.
#[inline(always)]
pub fn find(current: Current, object: u64) -> Option<u64> {
    // SAFETY: an entry is one word, and each of its states is valid.
    let proxy = unsafe { PROXIES.get(key_of(current, object)) }.copied();
    if proxy.is_none() {
        lose(LossSource::ProxyUnknown, 1);
    }
    proxy
}

#[inline(always)]
fn key_of(current: Current, object: u64) -> ObjectKey {
    ObjectKey {
        object,
        tgid: current.tgid,
        generation: current.generation,
    }
}
