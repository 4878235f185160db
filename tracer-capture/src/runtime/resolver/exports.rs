//! The exported functions: stubs that jump through ROCr's API table, and their slots in that table.
//!
//! In the builds measured, an exported function is `[endbr64;] mov table(%rip), %rX; jmp *slot(%rX)`; from 6.1 on, `hsa_init` calls
//! an initialiser first and is not such a stub. The kernel single-steps both instructions, so at run time tracer reads the slot
//! from the traced process and probes its target instead, at [`super::site_in_function`]. A tool (a profiler) may have replaced
//! that target.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::code::{Body, Step};
use super::elf::Image;
use super::error::Absence;
use super::site::{Argument, ProbePoint, probe_point};
use super::step::Confidence;

/// The arguments that these probes read.
const ARGUMENTS: [Argument; 4] = [Argument::Rdi, Argument::Rsi, Argument::Rdx, Argument::Rcx];

/// The registers that the probes of [`QUEUE_CREATE`] read at entry and return: they need an argument on the stack, and its address.
const ON_STACK: [Argument; 1] = [Argument::Rsp];

/// The registers that the probes of [`QUEUE_CREATE_DESCRIBED`] read at entry and return: the descriptors, their number, and the
/// stack.
const DESCRIBED: [Argument; 3] = [Argument::Rsi, Argument::Rdx, Argument::Rsp];

/// Limit in bytes, longer than any stub.
const STUB_LENGTH: u64 = 32;
/// The API has 27 such functions and aliases.
const MAX_EXPORTS: usize = 1024;

/// The exported functions that tracer uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exports {
    /// `hsa_init`.
    pub init: Option<ExportSite>,
    /// `hsa_queue_create`.
    pub queue_create: Option<ExportSite>,
    /// `hsa_amd_queue_create`, which newer runtimes have beside it.
    pub queue_create_described: Option<ExportSite>,
    /// `hsa_queue_destroy`.
    pub queue_destroy: Option<ExportSite>,
    /// `hsa_queue_{add,store,cas}_write_index_*`, in address order.
    pub reserves: Vec<ReserveSite>,
    /// `hsa_signal_store_*`, in address order: the last resort if no doorbell function was found.
    pub signal_stores: Vec<ExportSite>,
}

/// An exported function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportSite {
    /// Names of the function: aliases share one address and are one site.
    pub names: Vec<String>,
    /// The place for a probe in the exported function itself.
    pub probe: ProbePoint,
    /// The slot from which the stub takes its target; `None` if the function has another form.
    pub table: Option<TableSlot>,
    /// High if the function is a stub of the known form.
    pub confidence: Confidence,
}

/// A slot of an API table: the target is `*(*(pointer_vaddr) + slot_offset)` in a process that maps the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TableSlot {
    /// Address, as linked, of the variable that points to the table.
    pub pointer_vaddr: u64,
    /// Offset from the table's start.
    pub slot_offset: u32,
}

/// An exported function that advances a queue's write index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveSite {
    /// The operation on the write index.
    pub operation: ReserveOperation,
    /// The exported function.
    pub export: ExportSite,
}

/// The operation that advances a write index. The queue is the first argument of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReserveOperation {
    /// `(queue, increment)`.
    Add,
    /// `(queue, new value)`.
    Store,
    /// `(queue, expected value, new value)`.
    Cas,
}

impl ReserveOperation {
    fn of(name: &str) -> Option<Self> {
        let (verb, _order) = name.strip_prefix("hsa_queue_")?.split_once("_write_index_")?;
        match verb {
            "add" => Some(Self::Add),
            "store" => Some(Self::Store),
            "cas" => Some(Self::Cas),
            _ => None,
        }
    }
}

/// Finds the exported functions, and returns which are absent.
pub(super) fn exports(image: &Image<'_>) -> (Exports, Vec<Absence>) {
    let mut by_address: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let of_use = image.dynsym().functions().filter(|(name, _)| is_of_use(name));
    for (name, vaddr) in of_use.take(MAX_EXPORTS) {
        by_address.entry(vaddr).or_default().insert(name.to_owned());
    }
    let mut exports = Exports::default();
    for site in by_address.into_iter().filter_map(|(vaddr, names)| {
        let keep: &[Argument] = if names.contains(QUEUE_CREATE) {
            &ON_STACK
        } else if names.contains(QUEUE_CREATE_DESCRIBED) {
            &DESCRIBED
        } else {
            &ARGUMENTS
        };
        export_site(image, vaddr, names.into_iter().collect(), keep)
    }) {
        let has = |name| site.names.iter().any(|known| known == name);
        match site.names.iter().find_map(|name| ReserveOperation::of(name)) {
            Some(operation) => exports.reserves.push(ReserveSite {
                operation,
                export: site,
            }),
            None if has(INIT) => exports.init = Some(site),
            None if has(QUEUE_CREATE) => exports.queue_create = Some(site),
            None if has(QUEUE_CREATE_DESCRIBED) => exports.queue_create_described = Some(site),
            None if has(QUEUE_DESTROY) => exports.queue_destroy = Some(site),
            None => exports.signal_stores.push(site),
        }
    }
    let single = [
        (INIT, &exports.init),
        (QUEUE_CREATE, &exports.queue_create),
        (QUEUE_DESTROY, &exports.queue_destroy),
    ];
    let missing = single.into_iter().filter(|(_, site)| site.is_none());
    let missing = missing.map(|(name, _)| Absence::NotExported(name));
    let no_reserves = exports.reserves.is_empty().then_some(Absence::NoReserves);
    let absent = missing.chain(no_reserves).collect();
    (exports, absent)
}

pub(super) const INIT: &str = "hsa_init";
pub(super) const QUEUE_CREATE: &str = "hsa_queue_create";
const QUEUE_CREATE_DESCRIBED: &str = "hsa_amd_queue_create";
const QUEUE_DESTROY: &str = "hsa_queue_destroy";

fn is_of_use(name: &str) -> bool {
    let named = [INIT, QUEUE_CREATE, QUEUE_CREATE_DESCRIBED, QUEUE_DESTROY].contains(&name);
    named || name.starts_with("hsa_signal_store_") || ReserveOperation::of(name).is_some()
}

/// Returns the place for a probe in an exported function, at which the registers in `keep` have the same contents as at the entry.
pub(super) fn export_site(image: &Image<'_>, vaddr: u64, names: Vec<String>, keep: &[Argument]) -> Option<ExportSite> {
    let body = Body::decode(vaddr, image.code(vaddr, STUB_LENGTH)?);
    let table = table_slot(&body.instructions);
    Some(ExportSite {
        names,
        probe: probe_point(image, &body, keep, &[])?,
        table,
        // The name is one sign, the form of the code the other.
        confidence: Confidence::of(table.is_some()),
    })
}

/// Decodes the stub: a load of the table's address, then a jump through one of its slots.
fn table_slot(instructions: &[Instruction]) -> Option<TableSlot> {
    let [load, jump] = match instructions {
        [first, load, jump, ..] if first.mnemonic() == Mnemonic::Endbr64 => [load, jump],
        [load, jump, ..] => [load, jump],
        _ => return None,
    };
    let loads = load.mnemonic() == Mnemonic::Mov && load.op0_register().is_gpr64() && load.is_ip_rel_memory_operand();
    let jumps = Step::of(jump) == Step::IndirectJump && jump.op0_kind() == OpKind::Memory;
    let through = jump.memory_base() == load.op0_register() && jump.memory_index() == iced_x86::Register::None;
    let slot_offset = u32::try_from(jump.memory_displacement64()).ok()?;
    let slot = TableSlot {
        pointer_vaddr: load.ip_rel_memory_address(),
        slot_offset,
    };
    (loads && jumps && through).then_some(slot)
}
