//! Kernel names: the code objects that a runtime has loaded, and the kernels in them.
//!
//! ROCr keeps a list of loaded code objects for debuggers, in the form of the C library's `struct r_debug`, under the
//! exported name `_amdgpu_r_debug`; it calls a function of its own around each change. [`lists`] reads that list from
//! the process's memory, [`parse`] a code object's ELF file. Both take what they read for the untrusted input that it is.

mod demangle;
mod elf;
pub mod list;
pub mod lists;
mod metadata;
mod msgpack;
mod source;
#[cfg(test)]
mod tests;
pub mod uri;

use tracer_core::code_object::{KernelSymbol, KernelsUnread};

pub(crate) use source::{MAX_READ, ReadAt, began_in, read as read_part};
pub(crate) use uri::{Part, Place};

/// What a code object says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The GPU that it is for, such as `amdgcn-amd-amdhsa--gfx942`; `None` if its metadata does not tell.
    pub target: Option<String>,
    /// Version of code objects, 2 to 6; `None` for one that is not known.
    pub version: Option<u32>,
    /// Its kernels, by the addresses of their descriptors.
    pub kernels: Vec<KernelSymbol>,
}

/// Why a code object can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No 64-bit ELF file for AMD GPUs.
    #[error("not a 64-bit ELF file for an AMD GPU; pass a code object, not a bundle or a host library")]
    NotCodeObject,
    /// Its structures contradict each other or point outside the file.
    #[error("malformed code object, {0}; if nothing is writing it now, build it again")]
    Malformed(String),
    /// More kernels, or longer tables, than any compiler's.
    #[error("the code object has {0}, more than tracer keeps")]
    TooLarge(&'static str),
}

impl From<object::read::Error> for ParseError {
    fn from(error: object::read::Error) -> Self {
        Self::Malformed(error.to_string().to_lowercase())
    }
}

impl From<&ParseError> for KernelsUnread {
    fn from(error: &ParseError) -> Self {
        match error {
            ParseError::NotCodeObject | ParseError::Malformed(_) => Self::Malformed,
            ParseError::TooLarge(_) => Self::TooLarge,
        }
    }
}

/// Reads a code object, all of whose file is `bytes`.
///
/// # Errors
/// [`ParseError`]; never a panic, whatever the bytes are.
pub fn parse(bytes: &[u8]) -> Result<Contents, ParseError> {
    elf::contents(bytes)
}
