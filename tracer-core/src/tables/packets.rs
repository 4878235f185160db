//! Packets other than kernel dispatches.

use serde::Serialize;

use tracer_common::aql::SIGNALS;

use super::{Path, table};

/// Kind of a packet that is not a kernel dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PacketKind {
    /// Barrier-AND.
    BarrierAnd,
    /// Barrier-OR.
    BarrierOr,
    /// Agent dispatch.
    AgentDispatch,
    /// AMD vendor packet: PM4 indirect buffer.
    VendorPm4Ib,
    /// AMD vendor packet: barrier on a value.
    VendorBarrierValue,
    /// Vendor packet of another format.
    VendorOther,
    /// A type that the specification does not define.
    Undefined,
    /// Published, but the packet could not be read in time: see [`Unread`].
    Unread,
}

/// Why a published packet is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Unread {
    /// Its slot was reused before a walk reached it (earlier events were lost, or a walk was cut short).
    Reused,
    /// The GPU consumed it before it was read, and its body alone does not show its kind.
    Consumed,
    /// Its header never became valid while the queue was watched.
    NeverValid,
    /// The process's memory could not be read.
    Unreadable,
}

table! {
    /// Published packets other than kernel dispatches, and indexes whose packets are unread.
    pub struct OtherPacket: "packets" by time_ns, Events {
        /// Queue, as in `queues.queue`.
        pub queue: u32,
        /// Packet index in its queue, not modulo the ring's size; of a run, the first.
        pub index: u64 => "index",
        /// Indexes that the row represents: 1, or more for a run of unread ones.
        pub count: u64 => "packets",
        /// Process.
        pub pid: u32,
        /// Thread whose doorbell published it; 0 if unknown, or the path is `unseen`.
        pub tid: u32,
        /// Time of that doorbell, or time at which tracer gave up reading the packet.
        pub time_ns: u64 => "ns",
        /// Path: `doorbell`, `ring`, `thunk` or `unseen`.
        pub path: Path,
        /// `barrier-and`, `barrier-or`, `agent-dispatch`, `vendor-pm4-ib`, `vendor-barrier-value`, `vendor-other`, `undefined` or
        /// `unread`.
        pub kind: PacketKind,
        /// Why it is unread: `reused`, `consumed`, `never-valid` or `unreadable`; null if it was read.
        pub unread: Option<Unread>,
        /// Packet header, 16 bits, as read; 0 if unread. Its type (lower 8 bits) is 1 if the GPU had taken the packet: then the body
        /// alone shows the kind.
        pub header: u16,
        /// Handle of the completion signal; 0 if it has none, or if the packet's layout is unknown (`vendor-other`, `undefined`).
        pub completion_signal: u64,
        /// Handles of the signals that a barrier waits for; 0 where it waits for fewer than five. Null if it is no barrier, and in
        /// traces of older versions.
        pub waits_for: Option<[u64; SIGNALS]> => "handle" ["waits_for_0", "waits_for_1", "waits_for_2", "waits_for_3", "waits_for_4"],
    }
}
