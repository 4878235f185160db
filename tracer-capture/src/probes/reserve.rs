//! Advances of write indexes: the functions behind the exported `hsa_queue_{add,store,cas}_write_index_*`.
//!
//! The exported functions consist of two instructions, neither of which the kernel can emulate. Their target in the API table, read
//! from a process whose library is initialised, starts with one that it can.
//!
//! The runtime reserves for its own dispatches by a virtual function of `AqlQueue`, which bypasses all of these.

use std::collections::BTreeSet;

use tracer_common::record::reserve_op;

use super::{Prober, Site, Target, api_table::Process};
use crate::{
    confined::NotRead,
    inventory::Probe,
    runtime::resolver::{Argument, OwnReserveSite, ReserveOperation, Resolution, ResolverStep},
};
use tracer_core::family::Family;

/// The exported function that ends in `AqlQueue::AddWriteIndexAcqRel`.
const ADD_ACQ_REL: &str = "hsa_queue_add_write_index_scacq_screl";

/// The operations, with their numbers in records, and the registers that the program reads.
const OPERATIONS: [(ReserveOperation, u16, &[Argument]); 3] = [
    (ReserveOperation::Add, reserve_op::ADD, &[Argument::Rdi, Argument::Rsi]),
    (
        ReserveOperation::Store,
        reserve_op::STORE,
        &[Argument::Rdi, Argument::Rsi],
    ),
    (
        ReserveOperation::Cas,
        reserve_op::CAS,
        &[Argument::Rdi, Argument::Rsi, Argument::Rdx],
    ),
];

/// A place for a probe.
pub struct Place {
    site: Site,
    /// Whether the function there ends in the runtime's own function.
    ends_in_own: bool,
}

/// Finds every reserve function of the library in a process that has initialised it.
///
/// # Errors
/// Fails with [`NotRead`] if the process can't be read now.
pub fn places(resolution: &Resolution, process: &Process<'_>) -> Result<Vec<Place>, NotRead> {
    let mut places = Vec::new();
    let mut placed = BTreeSet::new();
    for (wanted, number, keep) in OPERATIONS {
        let sites = resolution.exports.reserves.iter();
        let exports = sites.filter(|site| site.operation == wanted).map(|site| &site.export);
        let behind = process.behind(exports.clone(), keep)?;
        for (export, behind) in exports.zip(behind) {
            let (point, step) = match behind {
                Some(point) => (point, ResolverStep::ApiTable),
                None => (export.probe, ResolverStep::Export),
            };
            // Several names may share one function.
            if placed.insert(point.file_offset) {
                places.push(Place {
                    site: Site {
                        upper: u32::from(number),
                        ..Site::of(export, point, step)
                    },
                    ends_in_own: behind.is_some() && export.names.iter().any(|name| name == ADD_ACQ_REL),
                });
            }
        }
    }
    Ok(places)
}

/// Attaches to these places, and to the function by which the runtime reserves for itself.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution, places: Vec<Place>) -> Vec<Probe> {
    let runtime = resolution.own_reserve.map(|site| attach_own(prober, target, &site));
    let own_seen = runtime.as_ref().is_some_and(Probe::attached);
    let seen_there = |place: &Place| own_seen && place.ends_in_own;
    let places = places.into_iter().filter(|place| !seen_there(place));
    let probes = places.map(|place| prober.uprobe("reserve", Family::Reserve, target, place.site));
    let probes: Vec<Probe> = probes.collect();
    runtime.into_iter().chain(probes).collect()
}

/// Attaches to the function by which the runtime reserves for itself.
fn attach_own(prober: &mut Prober, target: &Target<'_>, own: &OwnReserveSite) -> Probe {
    let site = Site {
        point: own.probe,
        upper: u32::from(own.queue_offset.cast_unsigned()) << 16 | u32::from(reserve_op::ADD),
        role: "AqlQueue::AddWriteIndexAcqRel".to_owned(),
        found: Some((own.step, own.confidence)),
    };
    prober.uprobe("reserve", Family::Reserve, target, site)
}
