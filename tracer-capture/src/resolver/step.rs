//! How a place in a library was found, and how sure that is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The rungs of the ladder, from the best evidence to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolverStep {
    /// By its name in the library's own `.symtab`.
    Symtab,
    /// By its name in the `.symtab` of a separate debug file.
    DebugFile,
    /// By its place in a class that has the shape of `AqlQueue`.
    VtableShape,
    /// By what its machine code does, among all functions.
    CodePattern,
    /// The target of an exported function, in the API table of a process.
    ApiTable,
    /// An exported function.
    Export,
    /// A virtual function of an object in a process.
    Process,
}

impl ResolverStep {
    /// The word in data and in reports.
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

/// How sure it is that a probe sees what it is for. Whatever is not sure gets no probe at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The interface's contract says so, and the function's code was not examined; or it sees only a part.
    Low,
    /// One sign (a name, a place in a class, or the code alone) says so, and the machine code does what it should.
    Medium,
    /// Two signs that are independent of each other say so, and the machine code does what it should.
    High,
}

impl Confidence {
    /// The word in data and in reports.
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
