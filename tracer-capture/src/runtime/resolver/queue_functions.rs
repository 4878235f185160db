//! Functions of `AqlQueue` that need no probe. Exported functions call `StoreWriteIndex*`; tracer probes those functions if it
//! watches reserves, and nothing in the runtime calls `StoreWriteIndex*`. The doorbell functions ring for the packets that
//! `ExecutePM4` publishes. The resolver reports the places of these functions for readers of a runtime's machine code, and for
//! users who want a probe there.

use serde::{Deserialize, Serialize};
use std::fmt;

use super::aql_queue::{AqlQueue, MAX_EXECUTE_PM4};
use super::code::{Body, MAX_LENGTH};
use super::decision::{Decision, Outcome, Sought};
use super::elf::Image;
use super::flow::effects;
use super::functions::Functions;
use super::pattern::store_write_index;
use super::site::{Argument, ProbePoint, choose, locate};
use super::step::{Confidence, ResolverStep};

/// The role of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueueRole {
    /// `AqlQueue::StoreWriteIndexRelaxed`: rsi becomes the write index.
    StoreWriteIndexRelaxed,
    /// `AqlQueue::StoreWriteIndexRelease`.
    StoreWriteIndexRelease,
    /// `AqlQueue::ExecutePM4`: publishes rdx bytes of PM4 commands at rsi, in a vendor packet.
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

    fn arguments(self) -> &'static [Argument] {
        match self {
            Self::StoreWriteIndexRelaxed | Self::StoreWriteIndexRelease => &[Argument::Rdi, Argument::Rsi],
            Self::ExecutePm4 => &[Argument::Rdi, Argument::Rsi, Argument::Rdx],
        }
    }
}

impl fmt::Display for QueueRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoreWriteIndexRelaxed => "AqlQueue::StoreWriteIndexRelaxed",
            Self::StoreWriteIndexRelease => "AqlQueue::StoreWriteIndexRelease",
            Self::ExecutePm4 => "AqlQueue::ExecutePM4",
        })
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

/// Returns the functions of a class that pass the examination, and a decision about each function.
pub(super) fn find(
    image: &Image<'_>,
    functions: &Functions,
    queue: &AqlQueue,
    (step, confidence): (ResolverStep, Confidence),
) -> (Vec<QueueFunction>, Vec<Decision>) {
    let mut found = Vec::new();
    let mut account = Vec::new();
    for role in QueueRole::ALL {
        let vaddr = role.of(queue);
        let function = vaddr.map(|vaddr| look(image, functions, role, vaddr));
        let (outcome, reason) = match function {
            Some(Ok((probe, queue_offset))) => {
                found.push(QueueFunction {
                    role,
                    probe,
                    queue_offset,
                    step,
                    confidence,
                });
                (Outcome::Known, role.why_not_probed().to_owned())
            }
            Some(Err(why)) => (Outcome::Refused, why.to_owned()),
            None => (Outcome::Absent, "not found by every step".to_owned()),
        };
        account.push(Decision {
            sought: Sought::QueueFunctions,
            step,
            looked_at: vaddr.map_or_else(|| role.to_string(), |vaddr| format!("{role} at {vaddr:#x}")),
            outcome,
            reason,
        });
    }
    (found, account)
}

/// Returns the place for a probe in the function, and the offset of the queue's address in its object.
fn look(
    image: &Image<'_>,
    functions: &Functions,
    role: QueueRole,
    vaddr: u64,
) -> Result<(ProbePoint, Option<i16>), &'static str> {
    let code = functions
        .code(image, vaddr)
        .ok_or("not a function with unwind information")?;
    // This check precedes decoding, because a name may belong to a function as long as the file.
    let (longest, too_long) = match role {
        QueueRole::ExecutePm4 => (MAX_EXECUTE_PM4, "too long to publish one packet"),
        _ => (MAX_LENGTH, "too long to store one index"),
    };
    if code.bytes.len() > longest {
        return Err(too_long);
    }
    let body = Body::decode(code.vaddr, code.bytes);
    let queue_offset = match role {
        // `as_aql_queue` has examined a function that the vtables lead to; one that has the right name is trusted.
        QueueRole::ExecutePm4 => None,
        _ => {
            let field = store_write_index(&effects(&body)).filter(|_| body.is_complete());
            let field = field.and_then(|field| i16::try_from(field).ok());
            Some(field.ok_or("it does not store rsi to the write index of its queue")?)
        }
    };
    let site = choose(&body, role.arguments(), &[]).ok_or("no instruction that can be probed once per call")?;
    let probe = locate(image, code.vaddr, site).ok_or("not in the file")?;
    Ok((probe, queue_offset))
}
