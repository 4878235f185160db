//! How a place in a library was found, and the confidence in it.

use serde::{Deserialize, Serialize};

/// The steps of the ladder, from the strongest evidence to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ResolverStep {
    /// By name in the library's own `.symtab`.
    Symtab,
    /// By name in the `.symtab` of a separate debug file.
    DebugFile,
    /// By the place in a class that has the shape of `AqlQueue`.
    VtableShape,
    /// By the machine code, among all functions.
    CodePattern,
    /// The target of an exported function, in the API table of a process.
    ApiTable,
    /// An exported function.
    Export,
    /// A virtual function of an object in a process.
    Process,
}

/// Confidence that a probe sees the intended calls. A place without sufficient confidence gets no probe at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Confidence {
    /// The interface's contract says so, and the function's code was not examined; or the probe sees only a part.
    Low,
    /// One sign (a name, a place in a class, or the code alone) says so, and the machine code has the expected effects.
    Medium,
    /// Two independent signs say so, and the machine code has the expected effects.
    High,
}

impl Confidence {
    /// Returns the confidence in a result with the expected effects: high if a second sign says so.
    pub(super) fn of(second_sign: bool) -> Self {
        if second_sign { Self::High } else { Self::Medium }
    }
}
