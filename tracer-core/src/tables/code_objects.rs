//! Code objects and their kernels.

use std::sync::Arc;

use super::table;
use crate::code_object::{CodeObjectOrigin, KernelsUnread};

table! {
    /// Code objects that runtimes loaded: ELF files with GPU kernels.
    pub struct CodeObject: "code_objects" by loaded_ns, Snapshots {
        /// Number of the code object in the trace, from 0, in the order of loading; never reused.
        pub code_object: u32,
        /// Process.
        pub pid: u32,
        /// How tracer found the code object: `loaded` (it saw the load) or `found` (it existed before, or tracer missed a change).
        pub origin: CodeObjectOrigin,
        /// Load bias: what the loader added to its addresses.
        pub load_base: u64 => "address",
        /// URI that the runtime gives: `file://` and a path, or `memory://` and a process id, with offset and size.
        pub uri: String,
        /// Target GPU, such as `amdgcn-amd-amdhsa--gfx942`; null if the code object does not name it.
        pub target: Option<String>,
        /// Version of code objects, 2 to 6; null if it was not read.
        pub version: Option<u32>,
        /// Number of its kernels; null if unknown.
        pub kernels: Option<u32> => "kernels",
        /// Why they are unknown: `unreadable`, `changed`, `malformed`, `too-large` or `unknown-source`; null if they are known.
        pub unread: Option<KernelsUnread>,
        /// Time at which it was loaded, or found.
        pub loaded_ns: u64 => "ns",
        /// Time at which it was unloaded, or its process ended; null if it existed at the end of the trace, or tracer did not see
        /// its end.
        pub unloaded_ns: Option<u64> => "ns",
    }
}

table! {
    /// Kernels of the code objects.
    pub struct Kernel: "kernels" by loaded_ns, Events {
        /// Code object, as in `code_objects.code_object`.
        pub code_object: u32,
        /// Process.
        pub pid: u32,
        /// Time at which the code object was loaded, or found.
        pub loaded_ns: u64 => "ns",
        /// The kernel descriptor, as in `dispatches.kernel_object`.
        pub kernel_object: u64 => "address",
        /// Name, demangled as LLVM does; the same as `symbol` if it is not mangled, or in an unknown way.
        pub name: Arc<str>,
        /// Name in the code object, without the descriptor's suffix.
        pub symbol: Arc<str>,
        /// Size of the arguments; null if not given.
        pub kernarg_bytes: Option<u32> => "bytes",
        /// Group memory (LDS) of a workgroup, without what a dispatch adds; null if not given.
        pub group_bytes: Option<u32> => "bytes",
        /// Private memory (scratch) of a work item; null if not given.
        pub private_bytes: Option<u32> => "bytes",
        /// Vector registers of a work item; null if not given.
        pub vgprs: Option<u32> => "registers",
        /// Accumulation vector registers; null if not given.
        pub agprs: Option<u32> => "registers",
        /// Scalar registers of a wave; null if not given.
        pub sgprs: Option<u32> => "registers",
        /// Work items of a wave; null if not given.
        pub wavefront: Option<u32> => "work items",
        /// Largest workgroup that it can run with; null if not given.
        pub max_workgroup: Option<u32> => "work items",
    }
}
