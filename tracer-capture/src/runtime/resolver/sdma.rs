//! Finds the functions that ring the doorbells of SDMA queues. ROCr's `BlitSdma` rings them itself, without any exported function.
//!
//! `BlitSdma<...>::UpdateWriteAndDoorbellRegister` is not virtual, so no vtable leads to it. The resolver finds it by its machine
//! code. There is one function per instance of the template (GPU generations differ), and each is a site.

use std::collections::BTreeSet;

use super::SdmaSite;
use super::code::Body;
use super::decision::{Decision, Outcome, Sought};
use super::elf::Image;
use super::error::Absence;
use super::flow::effects;
use super::functions::{Code, Functions};
use super::pattern::sdma_doorbell;
use super::site::{Argument, choose, locate};
use super::step::{Confidence, ResolverStep};

/// Lengths in bytes of the functions examined: those measured have 143 to 191 bytes.
const LENGTHS: std::ops::Range<u64> = 48..300;
/// The object, `curr_index` and `new_index`.
const NEEDED: [Argument; 3] = [Argument::Rdi, Argument::Rsi, Argument::Rdx];
const SFENCE: [u8; 3] = [0x0f, 0xae, 0xf8];
/// Largest number of functions of such a length with a store fence to examine; builds have under 100.
const MAX_EXAMINED: usize = 4096;

/// Returns whether a mangled name is that of an instance.
pub(super) fn is_name(name: &str) -> bool {
    name.contains("8BlitSdma") && name.contains("30UpdateWriteAndDoorbellRegister")
}

/// Finds all SDMA doorbell functions, in address order, and returns what is absent, and why. `named` contains the addresses of
/// functions with the name of one.
pub(super) fn sites(
    image: &Image<'_>,
    functions: &Functions,
    named: &BTreeSet<u64>,
) -> (Vec<SdmaSite>, Vec<Absence>, Decision) {
    let (mut sites, mut absent, mut examined) = (Vec::new(), Vec::new(), 0);
    let fencing = |code: &Code<'_>| code.bytes.windows(SFENCE.len()).any(|window| window == SFENCE);
    for code in functions.of_length(image, LENGTHS).filter(fencing).take(MAX_EXAMINED) {
        examined += 1;
        match site(image, code) {
            Some(Ok(mut site)) => {
                if named.contains(&site.probe.function) {
                    site.confidence = Confidence::High;
                }
                sites.push(site);
            }
            Some(Err(absence)) => absent.push(absence),
            None => {}
        }
    }
    if sites.is_empty() && absent.is_empty() {
        absent.push(Absence::NoSdma);
    }
    let decision = account(&sites, &absent, examined, named.len());
    (sites, absent, decision)
}

fn account(sites: &[SdmaSite], absent: &[Absence], examined: usize, named: usize) -> Decision {
    let sure = sites.iter().filter(|site| site.confidence == Confidence::High).count();
    let mut words: Vec<String> = sites
        .iter()
        .map(|site| format!("{:#x} rings a doorbell of {} bits", site.probe.function, site.width))
        .collect();
    if named > 0 {
        words.push(format!("names confirm {sure} of them and name {named}"));
    }
    words.extend(absent.iter().map(Absence::to_string));
    Decision {
        sought: Sought::Sdma,
        step: ResolverStep::CodePattern,
        looked_at: format!("{examined} functions of fitting length with a store fence"),
        outcome: if sites.is_empty() {
            Outcome::Absent
        } else {
            Outcome::Used
        },
        reason: words.join("; "),
    }
}

/// Examines a function; `None` if it is a different function.
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
        step: ResolverStep::CodePattern,
        confidence: Confidence::Medium,
    }))
}
