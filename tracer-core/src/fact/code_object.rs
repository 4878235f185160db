//! Code objects and their kernels.

use std::sync::Arc;

use crate::code_object::{CodeObjectOrigin, KernelsUnread};

/// A code object in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// Number in the trace, from 0, in the order of loading.
    pub code_object: u32,
    /// Process.
    pub pid: u32,
    /// How it came to be known.
    pub origin: CodeObjectOrigin,
    /// Load bias: what the loader added to its addresses.
    pub load_base: u64,
    /// Where it comes from, as the runtime tells it.
    pub uri: String,
    /// The GPU that it is for; `None` if it does not tell.
    pub target: Option<String>,
    /// Version of code objects; `None` if it was not read.
    pub version: Option<u32>,
    /// Kernels in it; `None` if they are not known.
    pub kernels: Option<u32>,
    /// Why they are not known.
    pub unread: Option<KernelsUnread>,
    /// When it was loaded, or found.
    pub loaded_ns: u64,
    /// When it was unloaded, or its process ended; `None` if it lived at the trace's end, or that was not seen.
    pub unloaded_ns: Option<u64>,
}

/// A kernel in a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Code object, by its number in the trace.
    pub code_object: u32,
    /// Process.
    pub pid: u32,
    /// When the code object was loaded, or found.
    pub loaded_ns: u64,
    /// Address of its descriptor: what a dispatch names it by.
    pub kernel_object: u64,
    /// Name, demangled.
    pub name: Arc<str>,
    /// Name in the code object, without the descriptor's suffix.
    pub symbol: Arc<str>,
    /// Bytes of its arguments.
    pub kernarg_bytes: Option<u32>,
    /// Bytes of group memory of a workgroup.
    pub group_bytes: Option<u32>,
    /// Bytes of private memory of a work item.
    pub private_bytes: Option<u32>,
    /// Vector registers.
    pub vgprs: Option<u32>,
    /// Accumulation vector registers.
    pub agprs: Option<u32>,
    /// Scalar registers.
    pub sgprs: Option<u32>,
    /// Work items of a wave.
    pub wavefront: Option<u32>,
    /// Work items of the largest workgroup.
    pub max_workgroup: Option<u32>,
}
