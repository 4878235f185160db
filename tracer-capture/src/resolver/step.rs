//! How a place in a library was found, and the confidence in it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The steps of the ladder, from the strongest evidence to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl ResolverStep {
    /// Returns the word in data and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Symtab => "symtab",
            Self::DebugFile => "debug-file",
            Self::VtableShape => "vtable-shape",
            Self::CodePattern => "code-pattern",
            Self::ApiTable => "api-table",
            Self::Export => "export",
            Self::Process => "process",
        }
    }
}

impl fmt::Display for ResolverStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Confidence that a probe sees the intended calls. A place without sufficient confidence gets no probe at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The interface's contract says so, and the function's code was not examined; or the probe sees only a part.
    Low,
    /// One sign (a name, a place in a class, or the code alone) says so, and the machine code has the expected effects.
    Medium,
    /// Two independent signs say so, and the machine code has the expected effects.
    High,
}

impl Confidence {
    /// Returns the word in data and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
