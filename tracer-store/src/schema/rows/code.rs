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
        origin, "", "How it came to be known: `loaded` (that was watched) or `found` (it was there before, or a change was missed).";
        load_base, "address", "What was added to its addresses as it was loaded.";
        uri, "", "Where it comes from, as the runtime tells it: `file://` and a path, or `memory://` and a process id, with offset and size.";
        target, "", "GPU that it is for, such as `amdgcn-amd-amdhsa--gfx942`; null if it does not tell.";
        version, "", "Version of code objects, 2 to 6; null if it was not read.";
        kernels, "kernels", "Kernels in it; null if they are not known.";
        unread, "", "Why they are not known: `unreadable`, `changed`, `malformed`, `too-large` or `unknown-source`; null if they are.";
        loaded_ns, "ns", "Time at which it was loaded, or found.";
        unloaded_ns, "ns", "Time at which it was unloaded, or its process ended; null if it lived at the trace's end, or that was not seen.";
    }

    Kernel {
        code_object, "", "Code object, as in `code_objects.code_object`.";
        pid, "", "Process.";
        loaded_ns, "ns", "Time at which the code object was loaded, or found.";
        kernel_object, "address", "The kernel descriptor, as in `dispatches.kernel_object`.";
        name, "", "Name, demangled.";
        symbol, "", "Name in the code object, without the descriptor's suffix.";
        kernarg_bytes, "bytes", "Size of the arguments; null if not told.";
        group_bytes, "bytes", "Group memory (LDS) of a workgroup, without what a dispatch adds; null if not told.";
        private_bytes, "bytes", "Private memory (scratch) of a work item; null if not told.";
        vgprs, "registers", "Vector registers of a work item; null if not told.";
        agprs, "registers", "Accumulation vector registers; null if not told.";
        sgprs, "registers", "Scalar registers of a wave; null if not told.";
        wavefront, "work items", "Work items of a wave; null if not told.";
        max_workgroup, "work items", "Largest workgroup that it can run with; null if not told.";
    }
}
