//! Doorbells of SDMA queues, which ROCr's `BlitSdma` rings itself, past every exported function.
//!
//! `BlitSdma<...>::UpdateWriteAndDoorbellRegister` is not virtual, so no vtable leads to it; it is found by what it does.
//! There is one per instance of the template (GPU generations differ), and each is a site.

use super::SdmaSite;
use super::code::Body;
use super::elf::Image;
use super::error::Absence;
use super::flow::effects;
use super::functions::{Code, Functions};
use super::pattern::sdma_doorbell;
use super::site::{Argument, choose, locate};

/// Lengths of the functions examined: those measured have 143 to 191 bytes.
const LENGTHS: std::ops::Range<u64> = 48..300;
/// The object, `curr_index` and `new_index`.
const NEEDED: [Argument; 3] = [Argument::Rdi, Argument::Rsi, Argument::Rdx];
const SFENCE: [u8; 3] = [0x0f, 0xae, 0xf8];

/// All SDMA doorbell functions, in address order, and what is absent.
pub(super) fn sites(image: &Image<'_>, functions: &Functions) -> (Vec<SdmaSite>, Vec<Absence>) {
    let (mut sites, mut absent) = (Vec::new(), Vec::new());
    let fencing = |code: &Code<'_>| code.bytes.windows(SFENCE.len()).any(|window| window == SFENCE);
    for code in functions.of_length(image, LENGTHS).filter(fencing) {
        match site(image, code) {
            Some(Ok(site)) => sites.push(site),
            Some(Err(absence)) => absent.push(absence),
            None => {}
        }
    }
    if sites.is_empty() && absent.is_empty() {
        absent.push(Absence::NoSdma);
    }
    (sites, absent)
}

/// `None` for a function that is something else.
fn site(image: &Image<'_>, code: Code<'_>) -> Option<Result<SdmaSite, Absence>> {
    let body = Body::decode(code.vaddr, code.bytes);
    let doorbell = sdma_doorbell(&effects(&body)).filter(|_| body.is_complete())?;
    let doorbell_ptr_offset = i16::try_from(doorbell.doorbell_ptr_offset).ok()?;
    let wptr_ptr_offset = doorbell_ptr_offset.checked_add(8)?;
    let probe = choose(&body, &NEEDED, &[doorbell.store]).and_then(|site| locate(image, code.vaddr, site));
    let Some(probe) = probe else {
        return Some(Err(Absence::NoSdmaProbePoint(code.vaddr)));
    };
    Some(Ok(SdmaSite {
        probe,
        doorbell_ptr_offset,
        wptr_ptr_offset,
        curr_index_register: Argument::Rsi,
        new_index_register: Argument::Rdx,
        width: if doorbell.width == 8 { 64 } else { 32 },
        doorbell_store: doorbell.store,
    }))
}
