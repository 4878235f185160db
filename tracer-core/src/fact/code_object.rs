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
    /// How it was found.
    pub origin: CodeObjectOrigin,
    /// Load bias: the value that the loader added to its addresses.
    pub load_base: u64,
    /// Its source, as given by the runtime.
    pub uri: String,
    /// Target GPU; `None` if the metadata does not say.
    pub target: Option<String>,
    /// Code object version; `None` if it was not read.
    pub version: Option<u32>,
    /// Number of kernels in it; `None` if they are not known.
    pub kernels: Option<u32>,
    /// Why the kernels are not known.
    pub unread: Option<KernelsUnread>,
    /// Time at which it was loaded, or found.
    pub loaded_ns: u64,
    /// Time at which it was unloaded, or its process exited; `None` if it was loaded at the end of the trace, or if the time was
    /// not seen.
    pub unloaded_ns: Option<u64>,
}

/// A kernel in a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Number of the code object in the trace.
    pub code_object: u32,
    /// Process.
    pub pid: u32,
    /// Time at which the code object was loaded, or found.
    pub loaded_ns: u64,
    /// Address of its descriptor. A dispatch identifies the kernel by this address.
    pub kernel_object: u64,
    /// Demangled name.
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
