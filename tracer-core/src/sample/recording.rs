//! A recording that every rule accepts: one process with one queue.

use crate::sample;
use crate::summary::Capabilities;
use crate::tables::{Dispatch, Doorbell, Fact, Ioctl, Loss, Queue, RingJob};
use crate::verify::{Context, Device, Ended, Scheduler};

/// When the command began.
pub const BEGAN: u64 = 1_000;

/// Returns the circumstances of the recording.
#[must_use]
pub fn context() -> Context {
    Context {
        capabilities: sample::EVERYTHING,
        complete: true,
        devices: vec![Device {
            gpu_id: 5,
            name: "gfx1100".to_owned(),
            gfx_target_version: 110_000,
            scheduler: Some(Scheduler::Mes),
            evidence: vec!["gfx_target_version 110000".to_owned()],
        }],
        libraries: vec!["/lib/libhsa-runtime64.so.1".to_owned()],
        command_began_ns: Some(BEGAN),
        command: Some(Ended::Code(0)),
        ..Context::default()
    }
}

/// Returns its queue, with this many dispatches.
#[must_use]
pub fn queue(published: u64) -> Queue {
    Queue {
        destroyed_ns: Some(9_000),
        read_index: Some(3),
        ..sample::queue(published)
    }
}

/// Returns the dispatch at an index, whose reserve was seen.
#[must_use]
pub fn dispatch(index: u64) -> Dispatch {
    let time_ns = 2_000 + 100 * index;
    Dispatch {
        reserve_ns: Some(time_ns - 50),
        ..sample::dispatch(index, time_ns)
    }
}

/// Returns the doorbell of the dispatch at an index.
#[must_use]
pub fn doorbell(value: u64) -> Doorbell {
    Doorbell {
        reserve_to_doorbell_ns: Some(50),
        ..sample::doorbell(value, 2_000 + 100 * value)
    }
}

/// Returns packets that were not read.
#[must_use]
pub fn unread(index: u64, count: u64) -> Fact {
    Fact::Packet(sample::unread(index, count, 3_000))
}

/// Returns a successful ioctl of a thread of the process.
#[must_use]
pub fn ioctl(enter_ns: u64, tid: u32) -> Fact {
    Fact::Ioctl(Ioctl {
        tid,
        ..sample::ioctl("SVM", (enter_ns, enter_ns + 20))
    })
}

/// Returns a job of a DRM client.
#[must_use]
pub fn job(ring: &str, class: &str, traced: Option<bool>) -> RingJob {
    RingJob {
        time_ns: 2_500,
        ring: Some(ring.to_owned()),
        class: class.to_owned(),
        device: None,
        context: Some(1),
        seqno: Some(1),
        job_id: None,
        client_id: Some(4),
        reason: None,
        pid: traced.map(|_| 7),
        tid: traced.map(|_| 8),
        traced,
        submit_ns: traced.map(|_| 2_500),
        run_ns: Some(2_600),
        done_ns: Some(2_700),
        queued: None,
    }
}

/// Returns a loss of packets.
#[must_use]
pub fn loss(count: u64) -> Fact {
    Fact::Loss(Loss {
        time_ns: 2_000,
        source: "packets-ring".to_owned(),
        count,
    })
}

/// Returns the facts of a queue with this many dispatches, each with its doorbell.
#[must_use]
pub fn good(dispatches: u64) -> Vec<Fact> {
    let mut facts = vec![Fact::Queue(queue(dispatches))];
    for index in 0..dispatches {
        facts.push(Fact::Doorbell(doorbell(index)));
        facts.push(Fact::Dispatch(dispatch(index)));
    }
    facts
}

/// Removes a capability.
pub type Take = fn(&mut Capabilities);

/// Every capability, by name, with the function that removes it.
pub const TAKE: [(&str, Take); 8] = [
    ("doorbells", |known| known.doorbells = false),
    ("packets", |known| known.packets = false),
    ("sdma_doorbells", |known| known.sdma_doorbells = false),
    ("reserves", |known| known.reserves = false),
    ("ioctls", |known| known.ioctls = false),
    ("kernel_rings", |known| known.kernel_rings = false),
    ("thunk", |known| known.thunk = false),
    ("unseen", |known| known.unseen = false),
];
