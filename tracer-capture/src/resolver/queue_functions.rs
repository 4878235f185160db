//! Functions of `AqlQueue` that need no probe: `StoreWriteIndex*` lie behind exported functions, which are probed where
//! reserves are watched, and nothing in the runtime calls them; what `ExecutePM4` publishes, the doorbell functions ring. Whoever reads
//! a runtime's machine code, or wants a probe there, is told where they are.

use serde::{Deserialize, Serialize};
use std::fmt;

use super::aql_queue::{AqlQueue, MAX_EXECUTE_PM4};
use super::code::Body;
use super::doorbells::MAX_LENGTH;
use super::elf::Image;
use super::flow::effects;
use super::functions::Functions;
use super::ladder::{Decision, Outcome, Sought};
use super::pattern::store_write_index;
use super::site::{Argument, ProbePoint, choose, locate};
use super::step::{Confidence, ResolverStep};

/// Which function it is.
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
    /// Every one, in the order of the class.
    pub const ALL: [Self; 3] = [
        Self::StoreWriteIndexRelaxed,
        Self::StoreWriteIndexRelease,
        Self::ExecutePm4,
    ];

    /// Its address, as a step of the ladder found it.
    fn of(self, queue: &AqlQueue) -> Option<u64> {
        match self {
            Self::StoreWriteIndexRelaxed => queue.store_write_index_relaxed,
            Self::StoreWriteIndexRelease => queue.store_write_index_release,
            Self::ExecutePm4 => queue.execute_pm4,
        }
    }

    /// Why it needs no probe.
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
    /// Which one.
    pub role: QueueRole,
    /// Where a probe would go: its arguments are still in their registers there, of which rdi is the runtime's queue object.
    pub probe: ProbePoint,
    /// `*(rdi + queue_offset)` is the address of the queue's `hsa_queue_t`; `None` where the function does not tell.
    pub queue_offset: Option<i16>,
    /// How it was found.
    pub step: ResolverStep,
    /// How sure that is.
    pub confidence: Confidence,
}

/// Those of a class that are what they should be, and a decision about each.
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
            None => (
                Outcome::Absent,
                "not found by every step".to_owned(),
            ),
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

/// Where a probe would go in it, and where its object keeps the queue.
fn look(
    image: &Image<'_>,
    functions: &Functions,
    role: QueueRole,
    vaddr: u64,
) -> Result<(ProbePoint, Option<i16>), &'static str> {
    let code = functions
        .code(image, vaddr)
        .ok_or("not a function with unwind information")?;
    // Before it is decoded: a name may be one of a function as long as the file.
    let (longest, too_long) = match role {
        QueueRole::ExecutePm4 => (MAX_EXECUTE_PM4, "too long to publish one packet"),
        _ => (MAX_LENGTH, "too long to store one index"),
    };
    if code.bytes.len() > longest {
        return Err(too_long);
    }
    let body = Body::decode(code.vaddr, code.bytes);
    let queue_offset = match role {
        // As `as_aql_queue` has looked at it; a name is believed.
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
