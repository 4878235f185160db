//! The account of a search: each decision, with the step that made it.

use serde::{Deserialize, Serialize};

use super::step::ResolverStep;

/// The target of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Sought {
    /// The functions that ring AQL doorbells.
    Doorbells,
    /// The function that reserves packets for the runtime itself.
    OwnReserve,
    /// Functions of a queue that need no probe.
    QueueFunctions,
    /// The functions that ring SDMA doorbells.
    Sdma,
    /// The function that notifies debuggers of code objects.
    CodeObjects,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// The result is probed.
    Used,
    /// The step found a function that needs no probe.
    Known,
    /// The step found the same functions as the one that is used.
    Agrees,
    /// The step found a result that was rejected.
    Refused,
    /// The input of the step is absent.
    Absent,
    /// The step was not tried.
    NotTried,
}

/// One decision of the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The target of the search.
    pub sought: Sought,
    /// The step that made the decision.
    pub step: ResolverStep,
    /// The input of the step: a section or a file, and the number of relevant items in it.
    pub looked_at: String,
    /// The outcome of the step.
    pub outcome: Outcome,
    /// The reason: a sentence without a full stop.
    pub reason: String,
}
