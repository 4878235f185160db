//! The interface through which the resolver asks for separate debug files. The implementation decides where to search.

use serde::{Deserialize, Serialize};

/// Identifies the debug file of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DebugKey {
    /// Build-id of the library, lower-case hexadecimal.
    pub build_id: Option<String>,
    /// `.gnu_debuglink`: the file's name and the checksum of its contents.
    pub link: Option<(String, u32)>,
}

/// A function that a debug file names, and that [`is_of_use`] accepts.
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
    /// The path, or the name of the source.
    pub place: String,
    /// Why the place was not used: it has no file, or the file is of another build.
    pub why_not: NotUsed,
}

/// The reason why a place provided no debug file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotUsed {
    /// The place has no file.
    Absent(String),
    /// The place has a file, but it was rejected.
    Refused(String),
    /// The place was not searched.
    NotTried(String),
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The places without a usable file, in order.
    pub tried: Vec<Tried>,
    /// The first file that belongs to the library, and those of its functions that the resolver uses.
    pub found: Option<(String, Vec<NamedFunction>)>,
}

/// Searches for debug files.
pub trait DebugFiles {
    /// Searches for the debug file of a library.
    fn find(&mut self, key: &DebugKey) -> Lookup;
}

/// An implementation that searches nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDebugFiles;

impl DebugFiles for NoDebugFiles {
    fn find(&mut self, _: &DebugKey) -> Lookup {
        let why_not = NotUsed::NotTried("only the contents of the library are available".to_owned());
        let place = "debug files".to_owned();
        Lookup {
            tried: vec![Tried { place, why_not }],
            found: None,
        }
    }
}

/// Returns whether the resolver uses a function of that name.
#[must_use]
pub fn is_of_use(name: &str) -> bool {
    name.contains("8AqlQueue") || super::sdma::is_name(name)
}
