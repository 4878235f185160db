//! Advances of write indexes: the functions behind the exported `hsa_queue_{add,store,cas}_write_index_*`.
//!
//! The exported functions are two instructions, neither of which the kernel can emulate. Their target in the API table,
//! read from a process whose library is initialised, starts with one that it can.
//!
//! The runtime reserves for its own dispatches by a virtual function of `AqlQueue`, past all of these.

use std::{collections::BTreeSet, os::unix::fs::FileExt};

use tracer_common::record::reserve_op;

use super::{Prober, Site, Target};
use crate::{
    inventory::Probe,
    proc_maps::{FileId, Mapping},
    resolver::{
        Argument, InstructionKind, OwnReserveSite, ProbePoint, ReserveOperation, ReserveSite, Resolution,
        site_in_function,
    },
    sys,
};

/// Enough of a function to find a probe site in.
const CODE_LEN: usize = 128;
/// The exported function that ends in `AqlQueue::AddWriteIndexAcqRel`.
const ADD_ACQ_REL: &str = "hsa_queue_add_write_index_scacq_screl";

/// Attaches to every reserve function of the library, as process `pid` has it mapped in `mappings`.
pub fn attach(
    prober: &mut Prober,
    target: &Target<'_>,
    resolution: &Resolution,
    pid: u32,
    file: &FileId,
    mappings: &[Mapping],
) -> Vec<Probe> {
    let mut probes = Vec::new();
    let runtime = resolution.own_reserve.map(|site| attach_own(prober, target, &site));
    let own_seen = runtime.as_ref().is_some_and(Probe::attached);
    probes.extend(runtime);
    let own: Vec<&Mapping> = mappings.iter().filter(|m| m.file == *file).collect();
    let mut placed = BTreeSet::new();
    for site in &resolution.exports.reserves {
        let (operation, keep): (u16, &[Argument]) = match site.operation {
            ReserveOperation::Add => (reserve_op::ADD, &[Argument::Rdi, Argument::Rsi]),
            ReserveOperation::Store => (reserve_op::STORE, &[Argument::Rdi, Argument::Rsi]),
            ReserveOperation::Cas => (reserve_op::CAS, &[Argument::Rdi, Argument::Rsi, Argument::Rdx]),
        };
        let behind = behind_table(target, site, pid, &own, keep);
        // It ends in the runtime's own function, which is probed.
        if own_seen && behind.is_some() && site.export.names.iter().any(|name| name == ADD_ACQ_REL) {
            continue;
        }
        let (point, step) = behind.map_or((site.export.probe, "exported stub"), |p| (p, "API table"));
        // Several names may share one function.
        if placed.insert(point.file_offset) {
            let site = Site {
                point,
                upper: u32::from(operation),
                role: site.export.names.join(", "),
                step: Some(step.to_owned()),
            };
            probes.push(prober.uprobe("reserve", "reserve", target, site));
        }
    }
    probes
}

/// Attaches to the function by which the runtime reserves for itself.
fn attach_own(prober: &mut Prober, target: &Target<'_>, own: &OwnReserveSite) -> Probe {
    let site = Site {
        point: own.probe,
        upper: u32::from(own.queue_offset.cast_unsigned()) << 16 | u32::from(reserve_op::ADD),
        role: "AqlQueue::AddWriteIndexAcqRel".to_owned(),
        step: Some("vtable".to_owned()),
    };
    prober.uprobe("reserve", "reserve", target, site)
}

/// The probe site in the function that the stub jumps to; `None` if that lies in another file (a tool has put itself
/// in between) or offers no site.
fn behind_table(
    target: &Target<'_>,
    site: &ReserveSite,
    pid: u32,
    own: &[&Mapping],
    keep: &[Argument],
) -> Option<ProbePoint> {
    let table = site.export.table?;
    let stub = site.export.probe;
    let mapping = own
        .iter()
        .find(|m| stub.file_offset >= m.offset && stub.file_offset - m.offset < m.end.saturating_sub(m.start))?;
    let bias = mapping
        .start
        .wrapping_add(stub.file_offset - mapping.offset)
        .wrapping_sub(stub.vaddr);
    let pointer = sys::read_u64(pid, bias.wrapping_add(table.pointer_vaddr)).ok()?;
    let function = sys::read_u64(pid, pointer.wrapping_add(u64::from(table.slot_offset))).ok()?;
    let holder = own.iter().find(|m| (m.start..m.end).contains(&function))?;
    let file_offset = function - holder.start + holder.offset;
    let mut code = [0; CODE_LEN];
    // From the file: memory may show the breakpoints of other probes.
    target.file.read_exact_at(&mut code, file_offset).ok()?;
    let vaddr = function.wrapping_sub(bias);
    let found = site_in_function(&code, vaddr, keep)?;
    (found.instruction != InstructionKind::Other).then_some(ProbePoint {
        function: vaddr,
        vaddr: vaddr.wrapping_add(found.offset),
        file_offset: file_offset + found.offset,
        instruction: found.instruction,
    })
}
