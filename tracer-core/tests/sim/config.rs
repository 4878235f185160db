//! What a run is made of.

use proptest::prelude::*;
use tracer_common::aql::{PACKET_LEN, Packet, packet_type};

/// What varies between runs.
#[derive(Clone, Debug)]
pub struct Config {
    pub ring: u64,
    pub producers: usize,
    /// Index at which the queue stands when the run begins; not 0 only for a queue that is attached to.
    pub first: u64,
    /// Steps before the tracer attaches; `None`: it sees the queue's creation.
    pub attach_after: Option<usize>,
    /// Of 256 records, how many are dropped.
    pub drops: u8,
    /// Of 256 doorbells, how many are stored past every probe.
    pub direct: u8,
    /// Who looks at the queue in the end.
    pub last_look: LastLook,
    /// Whether doorbells with values that nobody reserved are rung.
    pub garbage: bool,
    /// Who takes a step, and how it decides.
    pub schedule: Vec<(u8, u8)>,
}

/// The look at a queue in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLook {
    Nobody,
    /// The collector, which knows nothing of doorbells whose records are lost.
    Collector,
    /// A program in the process.
    Program,
}

/// Any configuration in which every doorbell is probed.
pub fn configs(
    drops: impl Strategy<Value = u8>,
    garbage: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Config> {
    any_configs(drops, garbage, Just(0))
}

/// Any configuration, with producers that store to the doorbell themselves.
pub fn any_configs(
    drops: impl Strategy<Value = u8>,
    garbage: impl Strategy<Value = bool>,
    direct: impl Strategy<Value = u8>,
) -> impl Strategy<Value = Config> {
    let attach = prop_oneof![
        Just((None, 0)),
        (0..200_usize, prop_oneof![0..300_u64, 1 << 40..1_u64 << 41]).prop_map(|(at, i)| (Some(at), i))
    ];
    let ring = (2..=6_u32).prop_map(|log| 1_u64 << log);
    let schedule = proptest::collection::vec(any::<(u8, u8)>(), 50..1500);
    let last_look = prop_oneof![
        Just(LastLook::Nobody),
        Just(LastLook::Collector),
        Just(LastLook::Program)
    ];
    let past_probes = (direct, last_look);
    (ring, 1..=4_usize, attach, drops, garbage, past_probes, schedule).prop_map(
        |(ring, producers, (attach_after, first), drops, garbage, (direct, last_look), schedule)| Config {
            direct,
            last_look,
            ring,
            producers,
            first,
            attach_after,
            drops,
            garbage,
            schedule,
        },
    )
}

/// A packet whose every field says which index it is.
pub fn packet(kind: u8, index: u64) -> Packet {
    let mut bytes = [0; PACKET_LEN];
    bytes[0] = kind;
    bytes[1] = 0x15;
    if kind == packet_type::KERNEL_DISPATCH {
        bytes[2] = 1;
        bytes[4..10].copy_from_slice(&[64, 0, 1, 0, 1, 0]);
        bytes[12..24].copy_from_slice(&[0, 4, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        bytes[0x20..0x28].copy_from_slice(&((index + 1) * 64).to_le_bytes());
    }
    bytes[0x38..].copy_from_slice(&(index + 1).to_le_bytes());
    Packet { bytes }
}
