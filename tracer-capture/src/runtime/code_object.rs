//! Kernel names: the code objects that a runtime has loaded, and the kernels in them.
//!
//! For debuggers, ROCr exports a list of loaded code objects under the name `_amdgpu_r_debug`, in the form of the C library's
//! `struct r_debug`. It calls a function of its own around each change. [`lists`] reads the list from the process's memory, and
//! [`parse`] reads a code object's ELF file. Both treat their input as untrusted.

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

use tracer_core::code_object::KernelSymbol;

pub(crate) use demangle::demangle;
pub(crate) use source::{MAX_READ, began_in, read as read_part};
pub(crate) use uri::{Part, Place};

/// The metadata and the kernels of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The target GPU, such as `amdgcn-amd-amdhsa--gfx942`; `None` if the metadata does not name it.
    pub target: Option<String>,
    /// Version of the code object format, 2 to 6; `None` if the version is unknown.
    pub version: Option<u32>,
    /// The kernels, sorted by the addresses of their descriptors.
    pub kernels: Vec<KernelSymbol>,
}

/// The reason why a code object can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The file is not a 64-bit ELF file for AMD GPUs.
    #[error("not a 64-bit ELF file for an AMD GPU; pass a code object, not a bundle or a host library")]
    NotCodeObject,
    /// The file's structures contradict each other or point outside the file.
    #[error("malformed code object, {0}; if nothing is writing it now, build it again")]
    Malformed(String),
    /// The code object has more kernels, or longer tables, than any compiler creates.
    #[error("the code object has {0}, more than tracer keeps")]
    TooLarge(&'static str),
}

impl From<object::read::Error> for ParseError {
    fn from(error: object::read::Error) -> Self {
        Self::Malformed(error.to_string().to_lowercase())
    }
}

/// Reads a code object from `bytes`, the contents of the whole file.
///
/// # Errors
/// [`ParseError`]. The function never panics, whatever `bytes` contains.
pub fn parse(bytes: &[u8]) -> Result<Contents, ParseError> {
    elf::contents(bytes)
}
