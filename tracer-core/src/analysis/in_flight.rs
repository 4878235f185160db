//! The time in which queues held work: packets that were published, and that the GPU had not taken.
//!
//! The read index of a queue is known at its doorbells and samples only. If such a moment finds a packet that was not taken, the queue
//! held work since the moment before it, or since the doorbell of that packet. If it finds that all were taken, the queue held work
//! for an unknown part of that time.

mod counter;
mod holder;
#[cfg(test)]
mod tests;
mod union;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub(super) use counter::Counter;
pub use holder::Held;

/// Percentage of the time from which the GPU is busy.
const BUSY: u64 = 90;
/// Percentage of the time up to which it is idle.
const IDLE: u64 = 50;

/// How long queues held work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct InFlight {
    /// From the first doorbell of an AQL queue to the moment that found the last packet taken, ns.
    pub phase_ns: u64,
    /// Time in which at least one queue held work.
    pub held: Held,
    /// The same of the queues of each process.
    pub processes: BTreeMap<u32, Held>,
    /// The same of each queue, as in `queues.queue`.
    pub queues: BTreeMap<u32, Held>,
    /// The same of the packets of each stream on a queue.
    pub streams: Vec<StreamHeld>,
    /// Time in which at least one kernel ran, by the GPUs' clocks, ns; `None` if the time of no dispatch is known.
    pub ran_ns: Option<u64>,
    /// Dispatches whose times are known, in ns.
    pub timed: u64,
    /// What limits the program.
    pub bound: Bound,
}

/// How long a queue held packets of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamHeld {
    /// Queue, as in `queues.queue`.
    pub queue: u32,
    /// Stream, as in `dispatches.stream`.
    pub stream: u64,
    /// The time.
    pub held: Held,
}

/// What limits a program: its launches, or the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The GPU: kernels ran for 90 % of the time at least, or a queue held the next packet for as long.
    Gpu,
    /// Launches: kernels ran for half of the time at most. The time of every dispatch is known.
    Launches,
    /// Neither of them for all of the time.
    Neither,
    /// Unknown: a kernel whose time is not known may run while every queue is empty.
    #[default]
    Unknown,
}

impl Bound {
    /// Returns what limits a program. `ran_ns`: the time in which kernels ran, if it is known of all.
    fn of(phase_ns: u64, held: Held, ran_ns: Option<u64>) -> Self {
        let at_least = |ns: u64, percent: u64| u128::from(ns) * 100 >= u128::from(phase_ns) * u128::from(percent);
        match ran_ns {
            _ if phase_ns == 0 => Self::Unknown,
            _ if at_least(held.least_ns, BUSY) => Self::Gpu,
            None => Self::Unknown,
            Some(ran) if at_least(ran, BUSY) => Self::Gpu,
            Some(ran) if at_least(ran, IDLE) => Self::Neither,
            Some(_) => Self::Launches,
        }
    }
}
