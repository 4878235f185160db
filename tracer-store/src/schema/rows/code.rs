//! Code objects and their kernels.

use tracer_core::fact::{CodeObject, Kernel};

use super::{Row, names, rows};
use crate::columns::Buffer;
use crate::schema::Column;
use crate::schema::field::{Field, Get, Misfit, describe};

rows! {
    CodeObject {
        code_object, "", "Number of the code object in the trace, from 0, in the order of loading; never reused.";
        pid, "", "Process.";
        origin, "", "How tracer found the code object: `loaded` (it saw the load) or `found` (it existed before, or tracer missed a change).";
        load_base, "address", "Load bias: what the loader added to its addresses.";
        uri, "", "URI that the runtime gives: `file://` and a path, or `memory://` and a process id, with offset and size.";
        target, "", "Target GPU, such as `amdgcn-amd-amdhsa--gfx942`; null if the code object does not name it.";
        version, "", "Version of code objects, 2 to 6; null if it was not read.";
        kernels, "kernels", "Number of its kernels; null if unknown.";
        unread, "", "Why they are unknown: `unreadable`, `changed`, `malformed`, `too-large` or `unknown-source`; null if they are known.";
        loaded_ns, "ns", "Time at which it was loaded, or found.";
        unloaded_ns, "ns", "Time at which it was unloaded, or its process ended; null if it existed at the end of the trace, or tracer did not see its end.";
    }

    Kernel {
        code_object, "", "Code object, as in `code_objects.code_object`.";
        pid, "", "Process.";
        loaded_ns, "ns", "Time at which the code object was loaded, or found.";
        kernel_object, "address", "The kernel descriptor, as in `dispatches.kernel_object`.";
        name, "", "Name, demangled.";
        symbol, "", "Name in the code object, without the descriptor's suffix.";
        kernarg_bytes, "bytes", "Size of the arguments; null if not given.";
        group_bytes, "bytes", "Group memory (LDS) of a workgroup, without what a dispatch adds; null if not given.";
        private_bytes, "bytes", "Private memory (scratch) of a work item; null if not given.";
        vgprs, "registers", "Vector registers of a work item; null if not given.";
        agprs, "registers", "Accumulation vector registers; null if not given.";
        sgprs, "registers", "Scalar registers of a wave; null if not given.";
        wavefront, "work items", "Work items of a wave; null if not given.";
        max_workgroup, "work items", "Largest workgroup that it can run with; null if not given.";
    }
}
