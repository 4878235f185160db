//! Advances of write indexes: the functions behind the exported `hsa_queue_{add,store,cas}_write_index_*`.
//!
//! The exported functions are two instructions, neither of which the kernel can emulate. Their target in the API table,
//! read from a process whose library is initialised, starts with one that it can.
//!
//! The runtime reserves for its own dispatches by a virtual function of `AqlQueue`, past all of these.

use std::collections::BTreeSet;

use tracer_common::record::reserve_op;

use super::{Prober, Site, Target, api_table};
use crate::{
    inventory::Probe,
    proc_maps::{FileId, Mapping},
    resolver::{Argument, OwnReserveSite, ReserveOperation, Resolution, ResolverStep},
};

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
        let behind = api_table::behind(target, &site.export, pid, &own, keep);
        // It ends in the runtime's own function, which is probed.
        if own_seen && behind.is_some() && site.export.names.iter().any(|name| name == ADD_ACQ_REL) {
            continue;
        }
        let (point, step) = behind.map_or((site.export.probe, ResolverStep::Export), |p| {
            (p, ResolverStep::ApiTable)
        });
        // Several names may share one function.
        if placed.insert(point.file_offset) {
            let site = Site {
                point,
                upper: u32::from(operation),
                role: site.export.names.join(", "),
                found: Some((step, site.export.confidence)),
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
        found: Some((own.step, own.confidence)),
    };
    prober.uprobe("reserve", "reserve", target, site)
}
