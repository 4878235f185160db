//! Code objects as they were found in a process, and the kernels in them.
//!
//! A code object is an ELF file for a GPU. The runtime keeps a list of those that it has loaded
//! (`_amdgpu_r_debug`, for debuggers), and a dispatch packet names its kernel by the address of a descriptor in one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A kernel, as its code object describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Where its descriptor lies in the code object as linked: a packet's `kernel_object` is this plus the load base.
    pub offset: u64,
    /// Name in the code object, without the descriptor's suffix `.kd`.
    pub symbol: Arc<str>,
    /// The name in the language that it was written in: that of the symbol where it is not mangled.
    pub name: Arc<str>,
    /// What it takes.
    pub resources: KernelResources,
}

/// What a kernel takes, by its metadata; `None` where that does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Bytes of its arguments.
    pub kernarg_bytes: Option<u32>,
    /// Bytes of group memory (LDS) of a workgroup, without what a dispatch adds.
    pub group_bytes: Option<u32>,
    /// Bytes of private memory (scratch) of a work item.
    pub private_bytes: Option<u32>,
    /// Vector registers of a work item, without accumulation registers where those are counted apart.
    pub vgprs: Option<u32>,
    /// Accumulation vector registers; GPUs without them tell 0 or nothing.
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
pub enum KernelsUnread {
    /// Its file or the memory that it was loaded from could not be read.
    Unreadable,
    /// Its file has changed since the process began, so it may be another one than was loaded.
    Changed,
    /// What was read is no sound code object.
    Malformed,
    /// It has more than is kept.
    TooLarge,
    /// The runtime tells where it comes from in a form that is not known.
    UnknownSource,
}

impl KernelsUnread {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Changed => "changed",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
            Self::UnknownSource => "unknown-source",
        }
    }
}

/// How a code object came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeObjectOrigin {
    /// It was loaded while that was watched.
    Loaded,
    /// It was in the runtime's list when that was first read, or read again after a change was missed.
    Found,
}

impl CodeObjectOrigin {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Found => "found",
        }
    }
}

/// A code object in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// Number that capture gave it, never again to another one.
    pub id: u64,
    /// How it came to be known.
    pub origin: CodeObjectOrigin,
    /// Load bias: what the loader added to its addresses.
    pub base: u64,
    /// Where it comes from, as the runtime tells it: `file://PATH#offset=..&size=..` or `memory://PID#offset=..&size=..`.
    pub uri: String,
    /// The GPU that it is for, such as `amdgcn-amd-amdhsa--gfx942`; `None` if its metadata does not tell.
    pub target: Option<String>,
    /// Version of code objects that it is of, 2 to 6; `None` if it was not read.
    pub version: Option<u32>,
    /// Its kernels.
    pub kernels: Result<Vec<KernelSymbol>, KernelsUnread>,
}
