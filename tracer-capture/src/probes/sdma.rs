//! SDMA doorbells: the instances of BlitSdma's store function that the resolver found.

use super::{Prober, Target};
use crate::{inventory::Probe, resolver::Resolution};

/// Attaches to every instance.
pub fn attach(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Vec<Probe> {
    let sites = resolution.sdma.iter();
    sites
        .map(|site| {
            let displacement = i32::from(site.wptr_ptr_offset) as u32;
            let role = format!("BlitSdma::UpdateWriteAndDoorbellRegister ({} bits)", site.width);
            prober.uprobe(
                "sdma_doorbell",
                "sdma",
                target,
                &site.probe,
                displacement,
                role,
                Some("pattern".to_owned()),
            )
        })
        .collect()
}
