//! Errors that end a resolution, and reasons why a part of it is absent.

use super::{DoorbellRole, ResolverStep};
use serde::{Deserialize, Serialize};

/// The reason why a file could not be resolved at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ResolveError {
    /// The bytes do not start with an ELF header.
    #[error("not an ELF file: pass the shared library itself, not a linker script or an archive")]
    NotElf,
    /// The file is an ELF file of another class, byte order or machine.
    #[error("not an x86-64 ELF file: only 64-bit x86 builds of the HSA runtime can be traced")]
    Not64BitX86,
    /// The file is a valid library, but not the HSA runtime.
    #[error("not an HSA runtime: it does not export hsa_init and hsa_queue_create; pass libhsa-runtime64.so.1")]
    NoHsaRuntime,
    /// The file has segments, but no section headers.
    #[error(
        "its section headers were stripped: install the original library from its package (strip keeps section headers, sstrip does not)"
    )]
    NoSections,
    /// The file has more than [`super::MAX_FILE`] bytes.
    #[error(
        "larger than any HSA runtime ({} bytes): pass libhsa-runtime64.so.1",
        super::MAX_FILE
    )]
    TooLarge,
    /// The ELF structures contradict each other or point outside the file.
    #[error("malformed ELF file, {0}: reinstall the library if it is not still being written")]
    Malformed(String),
}

impl From<object::read::Error> for ResolveError {
    fn from(error: object::read::Error) -> Self {
        Self::Malformed(error.to_string().to_lowercase())
    }
}

/// The reason why a part of a resolution is absent although the library is valid. Becomes one line of [`super::Resolution::notes`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Absence {
    #[error("no .eh_frame that can be believed: function boundaries are unknown, so no function body was examined")]
    NoFunctions,
    #[error("no vtable has the shape of AqlQueue (a queue with an ExecutePM4 and a signal sub-object)")]
    NoQueueClass,
    #[error(
        "several classes look like AqlQueue (vtables at {0:#x} and {1:#x}): not guessing which one rings doorbells"
    )]
    SeveralQueueClasses(u64, u64),
    #[error("it does not name a function of AqlQueue")]
    NotNamed,
    #[error(".symtab names AqlQueue::StoreRelaxed but not {0}")]
    SymbolMissing(&'static str),
    #[error(".symtab names {0} more than once, at different addresses")]
    SymbolAmbiguous(&'static str),
    #[error(
        "AqlQueue::StoreRelaxed is at {named:#x} by {step}, but at {shaped:#x} by vtable-shape: not guessing which is right"
    )]
    StepsDisagree {
        step: ResolverStep,
        named: u64,
        shaped: u64,
    },
    #[error("{0} at {1:#x} is not a function with unwind information")]
    NotAFunction(DoorbellRole, u64),
    #[error("AqlQueue::StoreRelaxed at {0:#x} does not store rsi to a doorbell in a known way")]
    NoDoorbellStore(u64),
    #[error("{0} at {1:#x} neither rings a doorbell nor hands over to StoreRelaxed: its doorbells would be missed")]
    NeitherStoresNorForwards(DoorbellRole, u64),
    #[error("{0} at {1:#x} writes a doorbell in a way that was not understood")]
    UnknownDoorbellStore(DoorbellRole, u64),
    #[error("{role} at {function:#x} finds its signal at {found:#x}, but StoreRelaxed implies {expected:#x}")]
    SignalOffsetMismatch {
        role: DoorbellRole,
        function: u64,
        found: i32,
        expected: i32,
    },
    #[error(
        "{role} at {function:#x} rings a doorbell and also calls {callee:#x}, which rings one: doorbells would count twice"
    )]
    CountsTwice {
        role: DoorbellRole,
        function: u64,
        callee: u64,
    },
    #[error("{0} at {1:#x} has no instruction that can be probed once per call")]
    NoProbePoint(DoorbellRole, u64),
    #[error("no function has the shape of BlitSdma's doorbell update: tracer sees SDMA copies only by their API calls")]
    NoSdma,
    #[error("the BlitSdma function at {0:#x} has no instruction that can be probed once per call")]
    NoSdmaProbePoint(u64),
    #[error("{0} is not exported")]
    NotExported(&'static str),
    #[error(
        "AqlQueue::AddWriteIndexAcqRel was not recognised: tracer cannot see reserves of the runtime's own dispatches"
    )]
    NoOwnReserve,
    #[error("{0}: kernel names are unknown")]
    NoCodeObjects(&'static str),
    #[error("no hsa_queue_*_write_index_* function is exported: tracer cannot see reserves")]
    NoReserves,
}
