//! SDMA doorbells: the instances of `BlitSdma`'s store function that the resolver found.

use super::{Prober, Site, Target};
use crate::{inventory::Probe, runtime::resolver::Resolution};
use tracer_core::family::Family;

/// Attaches to every instance.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let sites = resolution.sdma.iter();
    sites
        .map(|site| {
            let site = Site {
                point: site.probe,
                upper: u32::from(site.width) << 16 | u32::from(site.wptr_ptr_offset.cast_unsigned()),
                role: format!("BlitSdma::UpdateWriteAndDoorbellRegister ({} bits)", site.width),
                found: Some((site.step, site.confidence)),
            };
            prober.uprobe("sdma_doorbell", Family::Sdma, target, site)
        })
        .collect()
}
