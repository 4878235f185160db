//! Code objects found in a process, and the kernels in them.
//!
//! A code object is an ELF file for a GPU. The runtime keeps a list of the code objects that it has loaded (`_amdgpu_r_debug`, for
//! debuggers). A dispatch packet identifies its kernel by the address of a kernel descriptor in a code object.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A kernel, as its code object describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Offset of its descriptor in the code object as linked. A packet's `kernel_object` is this offset plus the load base.
    pub offset: u64,
    /// Name in the code object, without the descriptor's suffix `.kd`.
    pub symbol: Arc<str>,
    /// Name in the source language (demangled); the same as `symbol` if that is not mangled.
    pub name: Arc<str>,
    /// Resources that the kernel needs.
    pub resources: KernelResources,
}

/// Resources that a kernel needs, according to its metadata; `None` where the metadata does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Bytes of its arguments.
    pub kernarg_bytes: Option<u32>,
    /// Bytes of group memory (LDS) of a workgroup, without the memory that a dispatch adds.
    pub group_bytes: Option<u32>,
    /// Bytes of private memory (scratch) of a work item.
    pub private_bytes: Option<u32>,
    /// Vector registers of a work item, without accumulation registers where those are counted separately.
    pub vgprs: Option<u32>,
    /// Accumulation vector registers; GPUs without them report 0 or nothing.
    pub agprs: Option<u32>,
    /// Scalar registers of a wave.
    pub sgprs: Option<u32>,
    /// Work items of a wave: 32 or 64.
    pub wavefront: Option<u32>,
    /// The largest workgroup that it can run with, in work items.
    pub max_workgroup: Option<u32>,
}

/// Why the kernels of a code object are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum KernelsUnread {
    /// Its file, or the memory that it was loaded from, could not be read.
    Unreadable,
    /// Its file has changed since the process started, so it may differ from the code object that was loaded.
    Changed,
    /// The bytes that were read are not a valid code object.
    Malformed,
    /// It has more kernels than tracer keeps.
    TooLarge,
    /// The runtime gives its source in an unknown form.
    UnknownSource,
}

/// How a code object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CodeObjectOrigin {
    /// It was loaded while tracer watched the runtime's list.
    Loaded,
    /// It was in the runtime's list when tracer read the list for the first time, or read it again after it had missed a change.
    Found,
}

/// A code object in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// Number assigned by capture; never reused.
    pub id: u64,
    /// How it was found.
    pub origin: CodeObjectOrigin,
    /// Load bias: the value that the loader added to its addresses.
    pub base: u64,
    /// Its source, as given by the runtime: `file://PATH#offset=..&size=..` or `memory://PID#offset=..&size=..`.
    pub uri: String,
    /// Target GPU, such as `amdgcn-amd-amdhsa--gfx942`; `None` if its metadata does not say.
    pub target: Option<String>,
    /// Code object version, 2 to 6; `None` if it was not read.
    pub version: Option<u32>,
    /// Its kernels, or why they are not known.
    pub kernels: Result<Vec<KernelSymbol>, KernelsUnread>,
}
