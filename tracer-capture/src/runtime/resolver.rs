//! Finds places for uprobes in an HSA runtime library, given only the bytes of its file.
//!
//! ROCr writes doorbells in hidden C++ methods of stripped libraries. The stubs that it exports miss every submission of its own.
//! [`resolve`] finds those methods by name if the library still has a symbol table, else by the shape of their class's vtables. In
//! both cases, a function counts only if its machine code provably rings a doorbell with its own argument. A wrong probe is worse
//! than no probe, so the resolver turns everything that is unclear or ambiguous into a note.
//!
//! The resolver executes nothing, assumes nothing about versions, and does not panic on any input. It relies on layouts from the
//! Itanium C++ ABI, the System V x86-64 ABI and HSA's public headers. The layouts of ROCr classes come from its sources 5.2 to 6.4,
//! and were checked on Debian's builds 5.2.3, 6.1.2, 6.4.3 and 7.2.4.

mod aql_queue;
mod c_library;
mod code;
mod code_objects;
pub mod debug;
mod decision;
mod doorbells;
mod elf;
mod entries;
mod error;
mod exports;
mod flow;
mod functions;
mod ladder;
mod operands;
mod pattern;
mod queue_functions;
mod sdma;
mod site;
mod step;
mod thunk;
mod value;
mod vtables;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use debug::{DebugFiles, NoDebugFiles};
use elf::Image;
use error::Absence;
use functions::Functions;

pub(crate) use elf::{MAX_NAME, build_id_in};

pub use c_library::{IoctlCall, ioctl_call};
pub use decision::{Decision, Outcome, Sought};
pub use entries::{Entries, Entry, entries};
pub use error::ResolveError;
pub use exports::{ExportSite, Exports, ReserveOperation, ReserveSite, TableSlot};
pub use queue_functions::{QueueFunction, QueueRole};
pub use site::{Argument, FunctionSite, InstructionKind, ProbePoint, site_in_function};
pub use step::{Confidence, ResolverStep};
pub use thunk::ThunkFlags;
pub use vtables::{SIGNAL_STORE_RELAXED, SIGNAL_STORE_RELEASE};

/// Limit in bytes. A larger file is not an HSA runtime (Debian's and AMD's have 3 to 30 MB, with debug information 200), and
/// reading it would only cost memory.
pub const MAX_FILE: u64 = 512 << 20;

/// The places found in one library. All addresses are as linked; add the load bias of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// GNU build-id in lower-case hexadecimal: the key for caching the resolution.
    pub build_id: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Probes on all of these see every AQL doorbell that ROCr rings exactly once. Empty if the resolver is not certain of any.
    pub doorbells: Vec<DoorbellSite>,
    /// The functions of `AqlQueue` that ring doorbells or pass calls on to those that do.
    pub functions: Vec<DoorbellFunction>,
    /// The place where the runtime reserves packets for its own dispatches, without the exported functions.
    pub own_reserve: Option<OwnReserveSite>,
    /// Functions of `AqlQueue` that are known and need no probe.
    pub queue_functions: Vec<QueueFunction>,
    /// Store functions of the signals of proxy queues, which tools put in front of queues.
    pub proxy_stores: BTreeSet<u64>,
    /// Probes on all of these see every SDMA doorbell that ROCr rings.
    pub sdma: Vec<SdmaSite>,
    /// The place where the runtime notifies debuggers of code objects that it loads and unloads.
    pub code_objects: Option<CodeObjectSite>,
    /// The exported functions that tracer uses.
    pub exports: Exports,
    /// The reasons why something is absent, a sentence each.
    pub notes: Vec<String>,
    /// Every decision, in order.
    pub account: Vec<Decision>,
}

impl Resolution {
    /// Returns whether a function that rings can call the driver's library instead of storing.
    #[must_use]
    pub fn may_hand_over(&self) -> bool {
        self.doorbells.iter().any(|site| site.thunk_bypass)
    }

    /// Returns the bytes that decide whether the runtime stores to doorbells or hands them to the driver's library, if they are the
    /// same for all functions that can do both. Returns `None` if no function can do both, or the bytes are not understood.
    #[must_use]
    pub fn thunk_flags(&self) -> Option<&ThunkFlags> {
        let mut either = self.doorbells.iter().filter(|site| site.thunk_bypass);
        let first = either.next()?.thunk_flags.as_ref()?;
        either
            .all(|site| site.thunk_flags.as_ref() == Some(first))
            .then_some(first)
    }

    /// Returns the exported functions that store to any signal, doorbells included. They are probed if no doorbell function was
    /// found. The runtime's own dispatches do not call them. Empty if doorbell functions are known.
    #[must_use]
    pub fn last_resort(&self) -> &[ExportSite] {
        if self.doorbells.is_empty() {
            &self.exports.signal_stores
        } else {
            &[]
        }
    }

    /// Notes that something is absent. Returns the reason in words.
    fn miss(&mut self, absence: &Absence) -> String {
        self.notes.push(absence.to_string());
        absence.to_string()
    }

    /// Adds a decision to the account.
    fn decide(
        &mut self,
        sought: Sought,
        step: ResolverStep,
        looked_at: impl Into<String>,
        outcome: Outcome,
        reason: impl Into<String>,
    ) {
        self.account.push(Decision {
            sought,
            step,
            looked_at: looked_at.into(),
            outcome,
            reason: reason.into(),
        });
    }
}

/// A function of `AqlQueue` that rings doorbells or leads to a function that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorbellFunction {
    /// The role of the function.
    pub role: DoorbellRole,
    /// Address, as linked.
    pub vaddr: u64,
    /// Offset of the queue from the address in rdi at the function's entry.
    pub adjustment: i32,
    /// Whether the function itself stores to the doorbell and is probed. Otherwise it passes the call on to one that stores.
    pub rings: bool,
}

/// A function that rings AQL doorbells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorbellSite {
    /// The place for the probe. At this place, rdi and `value_register` have the same contents as at the function's entry, and no
    /// doorbell was written yet.
    pub probe: ProbePoint,
    /// The role of the function, one of four.
    pub role: DoorbellRole,
    /// `*(rdi + signal_offset)` is the address of the queue's `amd_signal_t`, with rdi as at the function's entry.
    pub signal_offset: i16,
    /// The register that contains the doorbell's value: the index of the last published packet.
    pub value_register: Argument,
    /// How the function was found.
    pub step: ResolverStep,
    /// Confidence in the result.
    pub confidence: Confidence,
    /// The instructions that write to a doorbell. Any path of the function executes only one of them.
    pub doorbell_stores: Vec<u64>,
    /// Whether the function can call a driver function from a table (`hsaKmtQueueRingDoorbell`) instead of storing.
    pub thunk_bypass: bool,
    /// The bytes that decide whether it does so; `None` if it can't, or they are not understood.
    pub thunk_flags: Option<ThunkFlags>,
}

/// The role of a doorbell function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
pub enum DoorbellRole {
    /// `AqlQueue::StoreRelaxed`; rdi is the queue.
    #[strum(to_string = "AqlQueue::StoreRelaxed")]
    Main,
    /// The thunk of `StoreRelaxed` in the vtable of the queue's signal part; rdi is that part.
    #[strum(to_string = "the signal thunk of AqlQueue::StoreRelaxed")]
    SignalThunkRelaxed,
    /// The thunk of `StoreRelease` in the same vtable; rdi is the signal part.
    #[strum(to_string = "the signal thunk of AqlQueue::StoreRelease")]
    SignalThunkRelease,
    /// `AqlQueue::StoreRelease`; rdi is the queue.
    #[strum(to_string = "AqlQueue::StoreRelease")]
    ReleaseMain,
}

/// `AqlQueue::AddWriteIndexAcqRel`: the function that reserves packets for the runtime's own dispatches (fills and copies by
/// kernels). The exported `hsa_queue_add_write_index_scacq_screl` also ends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnReserveSite {
    /// The place for the probe. At this place, rdi is the runtime's queue object, and rsi is the increment of the write index.
    pub probe: ProbePoint,
    /// `*(rdi + queue_offset)` is the address of the queue's `hsa_queue_t`.
    pub queue_offset: i16,
    /// How the function was found.
    pub step: ResolverStep,
    /// Confidence in the result.
    pub confidence: Confidence,
}

/// A function that rings SDMA doorbells: an instance of `BlitSdma::UpdateWriteAndDoorbellRegister`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdmaSite {
    /// The place for the probe. At this place, rdi and the two index registers have the same contents as at the function's entry.
    pub probe: ProbePoint,
    /// `*(rdi + doorbell_ptr_offset)` is the address of the doorbell.
    pub doorbell_ptr_offset: i16,
    /// `*(rdi + wptr_ptr_offset)` is the address of the write pointer that the GPU reads.
    pub wptr_ptr_offset: i16,
    /// The register that contains the ring position in bytes at which the published commands start.
    pub curr_index_register: Argument,
    /// The register that contains the ring position in bytes at which they end. It is the doorbell's value if `width` is 64; the
    /// 32-bit variant (rings that wrap) stores it modulo the ring's size.
    pub new_index_register: Argument,
    /// Number of bits stored: 32 or 64.
    pub width: u8,
    /// The instruction that writes to the doorbell.
    pub doorbell_store: u64,
    /// How the function was found.
    pub step: ResolverStep,
    /// Confidence in the result.
    pub confidence: Confidence,
}

/// The function that the runtime calls around each change of its list of code objects (`_amdgpu_r_debug`, `r_brk`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeObjectSite {
    /// The place for the probe.
    pub probe: ProbePoint,
    /// Address of the list, as linked.
    pub debug: u64,
    /// Offset of the list from the probed instruction.
    pub debug_displacement: i32,
    /// How the function was found.
    pub step: ResolverStep,
    /// Confidence in the result.
    pub confidence: Confidence,
}

/// Finds the probe sites in an HSA runtime library. `elf` is the contents of the whole file.
///
/// # Errors
/// If the file is not an x86-64 ELF file, not an HSA runtime, or so damaged that its tables cannot be read. A runtime in which some
/// place could not be found is not an error: see [`Resolution::notes`].
pub fn resolve(elf: &[u8]) -> Result<Resolution, ResolveError> {
    resolve_with(elf, &mut NoDebugFiles)
}

/// Like [`resolve`]. Also searches for the separate debug file of a library that names no functions.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_with(elf: &[u8], debug: &mut dyn DebugFiles) -> Result<Resolution, ResolveError> {
    let image = Image::parse(elf)?;
    if !is_hsa_runtime(&image) {
        return Err(ResolveError::NoHsaRuntime);
    }
    let functions = Functions::read(&image);
    let (exports, absent) = exports::exports(&image);
    let mut resolution = Resolution {
        build_id: image.build_id(),
        soname: image.soname(),
        exports,
        notes: absent.iter().map(Absence::to_string).collect(),
        ..Resolution::default()
    };
    if functions.is_empty() {
        // No step is possible.
        let reason = resolution.miss(&Absence::NoFunctions);
        let (sought, step) = (Sought::Doorbells, ResolverStep::VtableShape);
        resolution.decide(sought, step, ".eh_frame", Outcome::Absent, reason);
    } else {
        let names = ladder::climb(&mut resolution, &functions, debug);
        let others = names.iter().map(|named| (named.name.as_str(), named.vaddr));
        let named = image.symtab().functions().chain(others);
        let of_sdma = named.filter(|(name, _)| sdma::is_name(name));
        let of_sdma: BTreeSet<u64> = of_sdma.map(|(_, vaddr)| vaddr).collect();
        sdma::find(&mut resolution, &functions, &of_sdma);
        code_objects::find(&mut resolution, &functions);
    }
    ladder::last_resort(&mut resolution);
    Ok(resolution)
}

/// Returns the GNU build-id of an ELF file.
pub fn build_id(elf: &[u8]) -> Option<String> {
    Image::parse(elf).ok()?.build_id()
}

/// Returns whether a file is an HSA runtime: it exports `hsa_init` and `hsa_queue_create`.
///
/// The function reads the ELF header, the section headers and the dynamic symbol table.
pub fn looks_like_hsa_runtime(elf: &[u8]) -> bool {
    Image::parse(elf).is_ok_and(|image| is_hsa_runtime(&image))
}

fn is_hsa_runtime(image: &Image<'_>) -> bool {
    let is_exported = |wanted: &str| image.dynsym().functions().any(|(name, _)| name == wanted);
    is_exported(exports::INIT) && is_exported(exports::QUEUE_CREATE)
}
