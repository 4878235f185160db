//! The exported functions: stubs that jump through ROCr's API table, and where in that table.
//!
//! An exported function is `[endbr64;] mov table(%rip), %rX; jmp *slot(%rX)` in the builds measured; from 6.1 on,
//! `hsa_init` calls an initialiser first and is none. Both instructions are single-stepped, so at run time the slot is
//! read from the traced process and its target is probed instead, at [`super::site_in_function`]; a tool (a profiler)
//! may have replaced that target.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::code::{Body, Step};
use super::elf::Image;
use super::error::Absence;
use super::site::{Argument, ProbePoint, choose, locate};
use super::step::Confidence;

/// What the probes here read.
const ARGUMENTS: [Argument; 4] = [Argument::Rdi, Argument::Rsi, Argument::Rdx, Argument::Rcx];

/// What those of [`QUEUE_CREATE`] read, at entry and return: an argument on the stack, and where it is.
const ON_STACK: [Argument; 1] = [Argument::Rsp];

/// More than a stub ever has.
const STUB_LENGTH: u64 = 32;
/// The API has 27 such functions and aliases.
const MAX_EXPORTS: usize = 1024;

/// The exported functions that are of use for tracing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exports {
    /// `hsa_init`.
    pub init: Option<ExportSite>,
    /// `hsa_queue_create`.
    pub queue_create: Option<ExportSite>,
    /// `hsa_queue_destroy`.
    pub queue_destroy: Option<ExportSite>,
    /// `hsa_queue_{add,store,cas}_write_index_*`, in address order.
    pub reserves: Vec<ReserveSite>,
    /// `hsa_signal_store_*`, in address order: the last resort where no doorbell function was found.
    pub signal_stores: Vec<ExportSite>,
}

/// An exported function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportSite {
    /// Its names: aliases share one address and are one site.
    pub names: Vec<String>,
    /// Where to probe the exported function itself.
    pub probe: ProbePoint,
    /// Where the stub takes its target from; `None` if the function has another form.
    pub table: Option<TableSlot>,
    /// High if it is a stub of the known form.
    pub confidence: Confidence,
}

/// A slot of an API table: the target is `*(*(pointer_vaddr) + slot_offset)` in a process that maps the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TableSlot {
    /// Address, as linked, of the variable that points to the table.
    pub pointer_vaddr: u64,
    /// From the table's start.
    pub slot_offset: u32,
}

/// An exported function that advances a queue's write index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveSite {
    /// What it does with its arguments.
    pub operation: ReserveOperation,
    /// Where it is.
    pub export: ExportSite,
}

/// How a write index is advanced; the queue is the first argument of each.
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
        let rest = name.strip_prefix("hsa_queue_")?;
        let operations = [("add", Self::Add), ("store", Self::Store), ("cas", Self::Cas)];
        let named = |verb: &str| {
            rest.strip_prefix(verb)
                .is_some_and(|rest| rest.starts_with("_write_index_"))
        };
        operations
            .into_iter()
            .find(|(verb, _)| named(verb))
            .map(|(_, operation)| operation)
    }
}

/// Finds the exports, and says which are absent.
pub(super) fn exports(image: &Image<'_>) -> (Exports, Vec<Absence>) {
    let mut by_address: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let of_use = image.exported_functions().filter(|symbol| is_of_use(symbol.name));
    for symbol in of_use.take(MAX_EXPORTS) {
        let names = by_address.entry(symbol.vaddr).or_default();
        if !names.iter().any(|known| known == symbol.name) {
            names.push(symbol.name.to_owned());
        }
    }
    let mut exports = Exports::default();
    for site in by_address.into_iter().filter_map(|(vaddr, names)| {
        let creates = names.iter().any(|name| name == QUEUE_CREATE);
        export_site(image, vaddr, names, if creates { &ON_STACK } else { &ARGUMENTS })
    }) {
        let has = |name| site.names.iter().any(|known| known == name);
        match site.names.iter().find_map(|name| ReserveOperation::of(name)) {
            Some(operation) => exports.reserves.push(ReserveSite {
                operation,
                export: site,
            }),
            None if has(INIT) => exports.init = Some(site),
            None if has(QUEUE_CREATE) => exports.queue_create = Some(site),
            None if has(QUEUE_DESTROY) => exports.queue_destroy = Some(site),
            None => exports.signal_stores.push(site),
        }
    }
    let absent = exports.absent();
    (exports, absent)
}

pub(super) const INIT: &str = "hsa_init";
pub(super) const QUEUE_CREATE: &str = "hsa_queue_create";
const QUEUE_DESTROY: &str = "hsa_queue_destroy";

fn is_of_use(name: &str) -> bool {
    let named = [INIT, QUEUE_CREATE, QUEUE_DESTROY].contains(&name);
    named || name.starts_with("hsa_signal_store_") || ReserveOperation::of(name).is_some()
}

impl Exports {
    fn absent(&self) -> Vec<Absence> {
        let single = [
            (INIT, &self.init),
            (QUEUE_CREATE, &self.queue_create),
            (QUEUE_DESTROY, &self.queue_destroy),
        ];
        let missing = single.into_iter().filter(|(_, site)| site.is_none());
        let mut absent: Vec<_> = missing.map(|(name, _)| Absence::NotExported(name)).collect();
        if self.reserves.is_empty() {
            absent.push(Absence::NoReserves);
        }
        absent
    }
}

/// Where an exported function is probed, so that `keep` is as at its entry.
pub(super) fn export_site(
    image: &Image<'_>,
    vaddr: u64,
    mut names: Vec<String>,
    keep: &[Argument],
) -> Option<ExportSite> {
    names.sort_unstable();
    let body = Body::decode(vaddr, image.code(vaddr, STUB_LENGTH)?);
    let site = choose(&body, keep, &[])?;
    let table = table_slot(body.instructions());
    Some(ExportSite {
        names,
        probe: locate(image, vaddr, site)?,
        table,
        // Its name is one sign, the form of its code the other.
        confidence: if table.is_some() {
            Confidence::High
        } else {
            Confidence::Medium
        },
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
