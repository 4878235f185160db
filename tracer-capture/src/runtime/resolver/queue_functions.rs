//! Functions of `AqlQueue` that do not ring doorbells.
//!
//! `BlitKernel` and others call `AddWriteIndexAcqRel`, without an exported function, to reserve packets on the runtime's own queues.
//!
//! The other functions need no probe. Exported functions call `StoreWriteIndex*`; tracer probes those functions if it watches
//! reserves, and nothing in the runtime calls `StoreWriteIndex*`. The doorbell functions ring for the packets that `ExecutePM4`
//! publishes. The resolver reports the places of these functions for readers of a runtime's machine code, and for users who want a
//! probe there.

use serde::{Deserialize, Serialize};

use super::aql_queue::{AqlQueue, MAX_EXECUTE_PM4};
use super::code::MAX_LENGTH;
use super::decision::{Outcome, Sought};
use super::error::Absence;
use super::flow::effects;
use super::functions::Functions;
use super::pattern::write_index_field;
use super::site::{Argument, ProbePoint, probe_point};
use super::step::{Confidence, ResolverStep};
use super::{OwnReserveSite, Resolution};

/// The role of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
pub enum QueueRole {
    /// `AqlQueue::StoreWriteIndexRelaxed`: rsi becomes the write index.
    #[strum(to_string = "AqlQueue::StoreWriteIndexRelaxed")]
    StoreWriteIndexRelaxed,
    /// `AqlQueue::StoreWriteIndexRelease`.
    #[strum(to_string = "AqlQueue::StoreWriteIndexRelease")]
    StoreWriteIndexRelease,
    /// `AqlQueue::ExecutePM4`: publishes rdx bytes of PM4 commands at rsi, in a vendor packet.
    #[strum(to_string = "AqlQueue::ExecutePM4")]
    ExecutePm4,
}

impl QueueRole {
    /// All roles, in the order of the class.
    pub const ALL: [Self; 3] = [
        Self::StoreWriteIndexRelaxed,
        Self::StoreWriteIndexRelease,
        Self::ExecutePm4,
    ];

    /// Returns the function's address, as a step of the ladder found it.
    fn of(self, queue: &AqlQueue) -> Option<u64> {
        match self {
            Self::StoreWriteIndexRelaxed => queue.store_write_index_relaxed,
            Self::StoreWriteIndexRelease => queue.store_write_index_release,
            Self::ExecutePm4 => queue.execute_pm4,
        }
    }

    /// Returns why the function needs no probe.
    fn why_not_probed(self) -> &'static str {
        match self {
            Self::StoreWriteIndexRelaxed | Self::StoreWriteIndexRelease => {
                "the exported function that calls it is probed if tracer watches reserves"
            }
            Self::ExecutePm4 => "probed functions ring the doorbell for its packets",
        }
    }
}

/// A function of `AqlQueue` that is known and not probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFunction {
    /// The role of the function.
    pub role: QueueRole,
    /// The place for a probe. At this place, the arguments are still in their registers; rdi is the runtime's queue object.
    pub probe: ProbePoint,
    /// `*(rdi + queue_offset)` is the address of the queue's `hsa_queue_t`; `None` if the function's code does not show the offset.
    pub queue_offset: Option<i16>,
    /// How the function was found.
    pub step: ResolverStep,
    /// Confidence in the result.
    pub confidence: Confidence,
}

/// Finds the functions of a class that pass the examination.
pub(super) fn find(
    resolution: &mut Resolution,
    functions: &Functions<'_>,
    queue: &AqlQueue,
    step: ResolverStep,
    confidence: Confidence,
) {
    let vaddr = queue.add_write_index;
    let (outcome, reason) = match vaddr.map(|vaddr| own_reserve(functions, vaddr)) {
        Some(Some((probe, queue_offset))) => {
            resolution.own_reserve = Some(OwnReserveSite {
                probe,
                queue_offset,
                step,
                confidence,
            });
            let reason = format!("adds to the write index of the queue at rdi{queue_offset:+#x}");
            (Outcome::Used, reason)
        }
        Some(None) => (Outcome::Refused, resolution.miss(&Absence::NoOwnReserve)),
        None => (Outcome::Absent, resolution.miss(&Absence::NoOwnReserve)),
    };
    let looked_at = vaddr.map_or_else(
        || "no function that every step found".to_owned(),
        |vaddr| format!("AqlQueue::AddWriteIndexAcqRel at {vaddr:#x}"),
    );
    resolution.decide(Sought::OwnReserve, step, looked_at, outcome, reason);
    for role in QueueRole::ALL {
        let vaddr = role.of(queue);
        let (outcome, reason) = match vaddr.map(|vaddr| examine(functions, role, vaddr)) {
            Some(Ok((probe, queue_offset))) => {
                resolution.queue_functions.push(QueueFunction {
                    role,
                    probe,
                    queue_offset,
                    step,
                    confidence,
                });
                (Outcome::Known, role.why_not_probed())
            }
            Some(Err(why)) => (Outcome::Refused, why),
            None => (Outcome::Absent, "not found by every step"),
        };
        let looked_at = vaddr.map_or_else(|| role.to_string(), |vaddr| format!("{role} at {vaddr:#x}"));
        resolution.decide(Sought::QueueFunctions, step, looked_at, outcome, reason);
    }
}

/// Returns the place for a probe in `AddWriteIndexAcqRel`, and the offset of the queue's address in its object; `None` if the
/// function is not of the known form.
fn own_reserve(functions: &Functions<'_>, vaddr: u64) -> Option<(ProbePoint, i16)> {
    let body = functions.body(vaddr, MAX_LENGTH)?;
    let effects = effects(&body);
    let queue_offset = write_index_field(&effects.locked_adds).filter(|_| body.complete)?;
    let adds: Vec<u64> = effects.locked_adds.iter().map(|add| add.vaddr).collect();
    let probe = probe_point(functions.image, &body, &[Argument::Rdi, Argument::Rsi], &adds)?;
    Some((probe, queue_offset))
}

/// Returns the place for a probe in the function, and the offset of the queue's address in its object.
fn examine(functions: &Functions<'_>, role: QueueRole, vaddr: u64) -> Result<(ProbePoint, Option<i16>), &'static str> {
    let code = functions.code(vaddr).ok_or("not a function with unwind information")?;
    let arguments = [Argument::Rdi, Argument::Rsi, Argument::Rdx];
    let (longest, too_long, keep) = match role {
        QueueRole::ExecutePm4 => (MAX_EXECUTE_PM4, "too long to publish one packet", &arguments[..]),
        _ => (MAX_LENGTH, "too long to store one index", &arguments[..2]),
    };
    // This check precedes decoding, because a name may belong to a function as long as the file.
    if code.bytes.len() > longest {
        return Err(too_long);
    }
    let body = code.decode();
    let queue_offset = match role {
        // `as_aql_queue` has examined a function that the vtables lead to; one that has the right name is trusted.
        QueueRole::ExecutePm4 => None,
        _ => {
            let field = write_index_field(&effects(&body).stores).filter(|_| body.complete);
            Some(field.ok_or("it does not store rsi to the write index of its queue")?)
        }
    };
    let probe = probe_point(functions.image, &body, keep, &[]);
    let probe = probe.ok_or("no instruction that can be probed once per call")?;
    Ok((probe, queue_offset))
}
