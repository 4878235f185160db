//! Where to put uprobes in an HSA runtime library, from the bytes of its file alone.
//!
//! ROCr writes doorbells in hidden C++ methods of stripped libraries, and exports only stubs that miss every submission
//! of its own. [`resolve`] finds those methods: by name where a symbol table is left, else by the shape of their class's
//! vtables. Either way a function counts only if its machine code provably rings a doorbell with its own argument:
//! a wrong probe is worse than none, so whatever is unclear or ambiguous becomes a note.
//!
//! Nothing is executed, nothing is assumed about versions, and no input makes it panic. Layouts that are taken for
//! granted come from the Itanium C++ ABI, the System V x86-64 ABI and HSA's public headers; those of ROCr classes were
//! read in its sources 5.2 to 6.4 and checked on Debian's builds 5.2.3, 6.1.2, 6.4.3 and 7.2.4.

mod aql_queue;
mod code;
mod doorbells;
mod elf;
mod error;
mod exports;
mod flow;
mod functions;
mod own_reserve;
mod pattern;
mod sdma;
mod site;
mod value;
mod vtables;

use std::fmt;

use aql_queue::AqlQueue;
use elf::Image;
use error::Absence;
use functions::Functions;

pub use error::ResolveError;
pub use exports::{ExportSite, Exports, ReserveOperation, ReserveSite, TableSlot};
pub use site::{Argument, FunctionSite, InstructionKind, ProbePoint, site_in_function};

/// What was found in one library. All addresses are those it was linked at; add the load bias of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// GNU build-id in lower-case hexadecimal: the key to cache this by.
    pub build_id: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Probing all of these sees every AQL doorbell that ROCr rings exactly once; empty if none was found for certain.
    pub doorbells: Vec<DoorbellSite>,
    /// Where the runtime reserves packets for its own dispatches, past the exported functions.
    pub own_reserve: Option<OwnReserveSite>,
    /// Probing all of these sees every SDMA doorbell that ROCr rings.
    pub sdma: Vec<SdmaSite>,
    /// The exported functions of use.
    pub exports: Exports,
    /// Why something is absent, a sentence each.
    pub notes: Vec<String>,
}

/// A function that rings AQL doorbells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorbellSite {
    /// Where to probe. There rdi and `value_register` are as at the function's entry, and no doorbell was written yet.
    pub probe: ProbePoint,
    /// Which of the four functions it is.
    pub role: DoorbellRole,
    /// `*(rdi + signal_offset)` is the address of the queue's `amd_signal_t`, with rdi as at the function's entry.
    pub signal_offset: i16,
    /// What holds the doorbell's value: the index of the last packet that is published.
    pub value_register: Argument,
    /// How the function was found.
    pub step: ResolverStep,
    /// The instructions that write to a doorbell; on one path of the function only one of them is executed.
    pub doorbell_stores: Vec<u64>,
    /// The function can call a driver function from a table (`hsaKmtQueueRingDoorbell`) instead of storing.
    pub thunk_bypass: bool,
}

/// How a doorbell function is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DoorbellRole {
    /// `AqlQueue::StoreRelaxed`; rdi is the queue.
    Main,
    /// The thunk of `StoreRelaxed` in the vtable of the queue's signal part; rdi is that part.
    SignalThunkRelaxed,
    /// The thunk of `StoreRelease` there.
    SignalThunkRelease,
    /// `AqlQueue::StoreRelease`; rdi is the queue.
    ReleaseMain,
}

impl fmt::Display for DoorbellRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Main => "AqlQueue::StoreRelaxed",
            Self::SignalThunkRelaxed => "the signal thunk of AqlQueue::StoreRelaxed",
            Self::SignalThunkRelease => "the signal thunk of AqlQueue::StoreRelease",
            Self::ReleaseMain => "AqlQueue::StoreRelease",
        })
    }
}

/// `AqlQueue::AddWriteIndexAcqRel`: the function by which the runtime reserves for its own dispatches (fills and copies by
/// kernels). The exported `hsa_queue_add_write_index_scacq_screl` ends in it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnReserveSite {
    /// Where to probe. There rdi is the runtime's queue object and rsi what is added to the write index.
    pub probe: ProbePoint,
    /// `*(rdi + queue_offset)` is the address of the queue's `hsa_queue_t`.
    pub queue_offset: i16,
}

/// How a function was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResolverStep {
    /// By its name in `.symtab`.
    Symtab,
    /// By the shape of its class's vtables.
    VtableShape,
}

impl fmt::Display for ResolverStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Symtab => ".symtab",
            Self::VtableShape => "vtable shape",
        })
    }
}

/// A function that rings SDMA doorbells: an instance of `BlitSdma::UpdateWriteAndDoorbellRegister`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdmaSite {
    /// Where to probe. There rdi and the two index registers are as at the function's entry.
    pub probe: ProbePoint,
    /// `*(rdi + doorbell_ptr_offset)` is the address of the doorbell.
    pub doorbell_ptr_offset: i16,
    /// `*(rdi + wptr_ptr_offset)` is the address of the write pointer that the GPU reads.
    pub wptr_ptr_offset: i16,
    /// What holds the ring position, in bytes, at which the published commands begin.
    pub curr_index_register: Argument,
    /// What holds the ring position, in bytes, at which they end. It is the doorbell's value if `width` is 64; the
    /// 32-bit variant (rings that wrap) stores it modulo the ring's size.
    pub new_index_register: Argument,
    /// Bits that are stored: 32 or 64.
    pub width: u8,
    /// The instruction that writes to the doorbell.
    pub doorbell_store: u64,
}

/// Finds the probe sites in an HSA runtime library; `elf` is its whole file.
///
/// # Errors
/// If it is not an x86-64 ELF file, or not an HSA runtime, or so damaged that its tables cannot be read. A runtime in
/// which something could not be found is not an error: see [`Resolution::notes`].
pub fn resolve(elf: &[u8]) -> Result<Resolution, ResolveError> {
    let image = Image::parse(elf)?;
    if !is_hsa_runtime(&image) {
        return Err(ResolveError::NoHsaRuntime);
    }
    let functions = Functions::read(&image);
    let (exports, mut absent) = exports::exports(&image);
    let (mut doorbells, mut sdma, mut own_reserve) = (Vec::new(), Vec::new(), None);
    if functions.is_empty() {
        absent.push(Absence::NoFunctions);
    } else {
        (doorbells, own_reserve) = climb(&image, &functions, &mut absent);
        let (sites, missed) = sdma::sites(&image, &functions);
        sdma = sites;
        absent.extend(missed);
    }
    Ok(Resolution {
        build_id: image.build_id(),
        soname: image.soname(),
        doorbells,
        own_reserve,
        sdma,
        exports,
        notes: absent.iter().map(Absence::to_string).collect(),
    })
}

/// Whether a file is an HSA runtime: it exports `hsa_init` and `hsa_queue_create`.
///
/// Meant for every library that a process maps: it reads the ELF header, the section headers and, by the hash table,
/// a few entries of the dynamic symbol table.
pub fn looks_like_hsa_runtime(elf: &[u8]) -> bool {
    Image::parse(elf).is_ok_and(|image| is_hsa_runtime(&image))
}

fn is_hsa_runtime(image: &Image<'_>) -> bool {
    image.exports(exports::INIT) && image.exports(exports::QUEUE_CREATE)
}

/// A way to find `AqlQueue`; `Ok(None)` where it does not apply to the library.
type Step = fn(&Image<'_>, &Functions) -> Result<Option<AqlQueue>, Absence>;

/// From the best evidence to the weakest.
const LADDER: [Step; 2] = [|image, _| aql_queue::by_symtab(image), aql_queue::by_vtable_shape];

/// The sites of the first step whose functions pass validation.
fn climb(
    image: &Image<'_>,
    functions: &Functions,
    absent: &mut Vec<Absence>,
) -> (Vec<DoorbellSite>, Option<OwnReserveSite>) {
    for step in LADDER {
        let found = step(image, functions).and_then(|queue| {
            let sites = |queue: AqlQueue| Ok((doorbells::sites(image, functions, &queue)?, queue));
            queue.map(sites).transpose()
        });
        match found {
            Ok(Some(((sites, missed), queue))) => {
                absent.extend(missed);
                let own_reserve = own_reserve::site(image, functions, &queue);
                absent.extend(own_reserve.is_none().then_some(Absence::NoOwnReserve));
                return (sites, own_reserve);
            }
            Ok(None) => {}
            Err(absence) => absent.push(absence),
        }
    }
    (Vec::new(), None)
}
