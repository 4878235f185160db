//! The configuration of a run.

use proptest::prelude::*;
use tracer_common::aql::{PACKET_LEN, Packet, packet_type};

/// Parameters that vary between runs.
#[derive(Clone, Debug)]
pub struct Config {
    pub ring: u64,
    pub producers: usize,
    /// Index of the queue when the run begins. It can differ from 0 only for a queue that tracer attaches to.
    pub first: u64,
    /// Number of steps before tracer attaches; `None` if tracer sees the queue's creation.
    pub attach_after: Option<usize>,
    /// Number of records that are dropped, of 256.
    pub drops: u8,
    /// Number of doorbells that are stored past every probe, of 256.
    pub direct: u8,
    /// Who takes the last sample of the queue.
    pub last_look: LastSample,
    /// Whether doorbells are rung with values that no producer has reserved.
    pub garbage: bool,
    /// Who takes each step, and the choice that it makes.
    pub schedule: Vec<(u8, u8)>,
}

/// The last sample of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSample {
    Nobody,
    /// The collector, which knows nothing of doorbells whose records were lost.
    Collector,
    /// A program in the process.
    Program,
}

/// Returns any configuration in which every doorbell is probed.
pub fn configs(
    drops: impl Strategy<Value = u8>,
    garbage: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Config> {
    any_configs(drops, garbage, Just(0))
}

/// Returns any configuration, with producers that store to the doorbell themselves.
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
        Just(LastSample::Nobody),
        Just(LastSample::Collector),
        Just(LastSample::Program)
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

/// Returns a packet in which every field encodes the index.
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
