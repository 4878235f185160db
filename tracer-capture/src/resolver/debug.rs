//! Separate debug files, as the resolver asks for them. Where they are looked for is not its business.

use serde::{Deserialize, Serialize};

/// What identifies the debug file of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DebugKey {
    /// Build-id of the library, lower-case hexadecimal.
    pub build_id: Option<String>,
    /// `.gnu_debuglink`: the file's name and the checksum of its contents.
    pub link: Option<(String, u32)>,
}

/// A function that a debug file names, of those that [`is_of_use`] names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFunction {
    /// Mangled name.
    pub name: String,
    /// Address, as linked.
    pub vaddr: u64,
}

/// A place where a debug file could have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Its path, or what was asked.
    pub place: String,
    /// Why it was not used: there is none, or it is of another build.
    pub why_not: NotUsed,
}

/// Why a place gave no debug file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotUsed {
    /// There is none.
    Absent(String),
    /// There is one, which is not believed.
    Refused(String),
    /// Nobody looked.
    NotTried(String),
}

/// What looking gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// Places that did not help, in order.
    pub tried: Vec<Tried>,
    /// The first file that is the library's, and its functions of use.
    pub found: Option<(String, Vec<NamedFunction>)>,
}

/// Looks for debug files.
pub trait DebugFiles {
    /// The debug file of a library.
    fn look(&mut self, key: &DebugKey) -> Lookup;
}

/// Looks nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDebugFiles;

impl DebugFiles for NoDebugFiles {
    fn look(&mut self, _: &DebugKey) -> Lookup {
        let why_not = NotUsed::NotTried("only the contents of the library are available".to_owned());
        let place = "debug files".to_owned();
        Lookup {
            tried: vec![Tried { place, why_not }],
            found: None,
        }
    }
}

/// Whether the resolver has a use for a function of that name.
#[must_use]
pub fn is_of_use(name: &str) -> bool {
    name.contains("8AqlQueue") || super::sdma::is_name(name)
}
