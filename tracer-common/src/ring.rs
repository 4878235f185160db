//! Rings of the kernel driver, as the DRM scheduler names them, and the driver's own jobs on them.
//!
//! The names are those of `amdgpu_ring.name` (char\[16\]), as the ring files of drivers/gpu/drm/amd/amdgpu build them: `gfx_0.0.0`,
//! `comp_1.0.0`, `comp_0.1.0.3` (MI300), `sdma0`, `sdma1.2`, `page0`, `vcn_unified_1`, `jpeg_dec_0.7`. Documents also write forms
//! without the underscore, such as `compute0.0`; the parser accepts them too.

named! {
    /// The kind of engine that a ring feeds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum RingClass {
        /// `gfx*`: the graphics engine.
        Gfx = "gfx",
        /// `comp_*`: kernel compute queues.
        Compute = "comp",
        /// `sdma*`: copy engines.
        Sdma = "sdma",
        /// `page*`: page-table queues of the copy engines.
        Page = "page",
        /// `vcn_*`: video.
        Vcn = "vcn",
        /// `jpeg_*`.
        Jpeg = "jpeg",
        /// `uvd*`, `vce*`, `vpe`: older and other media engines.
        Media = "media",
        /// `kiq_*`: the driver's queue to the scheduler firmware. It runs no DRM scheduler jobs.
        Kiq = "kiq",
        /// `mes_*`: the queue to the MES. It runs no DRM scheduler jobs.
        Mes = "mes",
        /// A name of another driver, or of another form.
        Other = "other",
    }
}

/// The maximum count of numbers in a ring's name: xcc, me, pipe, queue.
pub const MAX_NUMBERS: usize = 4;

/// A parsed ring name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingName {
    /// The kind of engine that the ring feeds.
    pub class: RingClass,
    numbers: [u8; MAX_NUMBERS],
    count: u8,
}

/// The location of a ring of the graphics or compute engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Accelerator die; `None` on GPUs whose ring names do not contain it.
    pub xcc: Option<u8>,
    /// Micro engine.
    pub me: u8,
    /// Pipe.
    pub pipe: u8,
    /// Queue.
    pub queue: u8,
}

impl RingClass {
    /// Returns the class of a word; `None` if it is not the name of a ring.
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "gfx" | "gfx_low" | "gfx_high" => Self::Gfx,
            "comp" | "compute" => Self::Compute,
            "sdma" => Self::Sdma,
            "page" => Self::Page,
            "vcn" | "vcn_dec" | "vcn_enc" | "vcn_unified" => Self::Vcn,
            "jpeg" | "jpeg_dec" => Self::Jpeg,
            "uvd" | "uvd_enc" | "vce" | "vpe" => Self::Media,
            "kiq" => Self::Kiq,
            "mes" | "mes_kiq" => Self::Mes,
            _ => return None,
        })
    }
}

impl RingName {
    /// Parses a name. A name outside the grammar is [`RingClass::Other`], without numbers.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        Self::of_grammar(name).unwrap_or(Self {
            class: RingClass::Other,
            numbers: [0; MAX_NUMBERS],
            count: 0,
        })
    }

    fn of_grammar(name: &str) -> Option<Self> {
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let (word, rest) = name.split_at(digits);
        // `gfx_0.0.0` and `sdma0`, but not `comp_` alone.
        let word = if rest.is_empty() {
            word
        } else {
            word.strip_suffix('_').unwrap_or(word)
        };
        let class = RingClass::of(word)?;
        let mut numbers = [0; MAX_NUMBERS];
        let mut count = 0;
        if !rest.is_empty() {
            for part in rest.split('.') {
                // `parse` would accept a sign.
                let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                *numbers.get_mut(usize::from(count))? = part.parse().ok().filter(|_| plain)?;
                count += 1;
            }
        }
        Some(Self { class, numbers, count })
    }

    /// Returns the numbers, in the order of the name.
    #[must_use]
    pub fn numbers(&self) -> &[u8] {
        self.numbers.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Returns the ring's location, if its name contains it: me.pipe.queue, with the xcc before them on GPUs that have several.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let placed = matches!(
            self.class,
            RingClass::Gfx | RingClass::Compute | RingClass::Kiq | RingClass::Mes
        );
        let at = |xcc, me, pipe, queue| placed.then_some(Place { xcc, me, pipe, queue });
        match *self.numbers() {
            [me, pipe, queue] => at(None, me, pipe, queue),
            [xcc, me, pipe, queue] => at(Some(xcc), me, pipe, queue),
            _ => None,
        }
    }
}

/// Client ids of jobs from this value on are not those of a DRM file but the driver's own reasons
/// (drivers/gpu/drm/amd/amdgpu/amdgpu_job.h counts them down from `u64::MAX`).
const FIRST_REASON: u64 = u64::MAX - 63;

/// Returns why the driver itself created a job, by the client id that it assigned; `None` for the id of a DRM client.
///
/// The codes are not an ABI. A code that is not known here is `driver-unknown`.
#[must_use]
pub const fn reason(client_id: u64) -> Option<&'static str> {
    if client_id < FIRST_REASON {
        return None;
    }
    Some(match u64::MAX - client_id {
        0 => "vm-update",
        1 => "vm-update-pdes",
        2 => "vm-update-range",
        3 => "vm-pt-clear",
        4 => "ttm-map-buffer",
        5 => "ttm-access-memory-sdma",
        6 => "ttm-copy-buffer",
        7 => "clear-on-release",
        8 => "move-blit",
        9 => "ttm-clear-buffer",
        10 => "cleaner-shader",
        11 => "flush-gpu-tlb",
        12 => "kfd-gart-map",
        13 => "vcn-ring-test",
        14 => "gfx-ring-test",
        15 => "sdma-ring-test",
        16 => "vpe-ring-test",
        17 => "run-shader",
        _ => "driver-unknown",
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{vec, vec::Vec};

    use super::*;

    fn parsed(name: &str) -> (RingClass, Vec<u8>) {
        let ring = RingName::parse(name);
        (ring.class, ring.numbers().to_vec())
    }

    #[test]
    fn names_of_the_driver() {
        let cases: &[(&str, RingClass, &[u8])] = &[
            ("gfx", RingClass::Gfx, &[]),
            ("gfx_low", RingClass::Gfx, &[]),
            ("gfx_1", RingClass::Gfx, &[1]),
            ("gfx_0.0.0", RingClass::Gfx, &[0, 0, 0]),
            ("comp_1.0.0", RingClass::Compute, &[1, 0, 0]),
            ("comp_1.3.7", RingClass::Compute, &[1, 3, 7]),
            ("comp_7.1.3.1", RingClass::Compute, &[7, 1, 3, 1]),
            ("sdma0", RingClass::Sdma, &[0]),
            ("sdma1.3", RingClass::Sdma, &[1, 3]),
            ("page12", RingClass::Page, &[12]),
            ("vcn_dec", RingClass::Vcn, &[]),
            ("vcn_enc1.0", RingClass::Vcn, &[1, 0]),
            ("vcn_unified_1", RingClass::Vcn, &[1]),
            ("jpeg_dec_0.7", RingClass::Jpeg, &[0, 7]),
            ("uvd_enc0", RingClass::Media, &[0]),
            ("vpe", RingClass::Media, &[]),
            ("kiq_0.2.1.0", RingClass::Kiq, &[0, 2, 1, 0]),
            ("mes_3.0.0", RingClass::Mes, &[3, 0, 0]),
            ("mes_kiq_3.1.0", RingClass::Mes, &[3, 1, 0]),
        ];
        for &(name, class, numbers) in cases {
            assert_eq!(parsed(name), (class, numbers.to_vec()), "{name}");
        }
    }

    #[test]
    fn names_of_documents() {
        assert_eq!(parsed("compute0.0"), (RingClass::Compute, vec![0, 0]));
        assert_eq!(parsed("sdma0.0"), (RingClass::Sdma, vec![0, 0]));
    }

    #[test]
    fn what_is_no_ring_of_the_driver_is_other() {
        for name in [
            "",
            "compositor",
            "comp_",
            "comp_a.b.c",
            "comp_1.0.0.0.0",
            "comp_1..0",
            "comp_1.0.",
            "sdma-1",
            "sdma300",
            "sdma+1",
            "gfx_0.0.0x",
            "GFX",
            "bcs0",
        ] {
            assert_eq!(parsed(name), (RingClass::Other, vec![]), "{name}");
        }
    }

    #[test]
    fn places() {
        let place = |name| RingName::parse(name).place();
        let at = |xcc, me, pipe, queue| Some(Place { xcc, me, pipe, queue });
        assert_eq!(place("comp_1.2.3"), at(None, 1, 2, 3));
        assert_eq!(place("comp_5.1.2.3"), at(Some(5), 1, 2, 3));
        assert_eq!(place("sdma1.2"), None);
        assert_eq!(place("compute0.0"), None);
    }

    #[test]
    fn reasons_differ_from_clients() {
        assert_eq!(reason(u64::MAX), Some("vm-update"));
        assert_eq!(reason(u64::MAX - 17), Some("run-shader"));
        assert_eq!(reason(u64::MAX - 63), Some("driver-unknown"));
        assert_eq!(reason(u64::MAX - 64), None);
        assert_eq!(reason(0), None);
    }
}
