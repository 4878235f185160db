//! Finds the functions that ring the doorbells of SDMA queues. ROCr's `BlitSdma` rings them itself, without any exported function.
//!
//! `BlitSdma<...>::UpdateWriteAndDoorbellRegister` is not virtual, so no vtable leads to it. The resolver finds it by its machine
//! code. There is one function per instance of the template (GPU generations differ), and each is a site.

use std::collections::BTreeSet;

use super::decision::{Outcome, Sought};
use super::elf::Image;
use super::error::Absence;
use super::flow::effects;
use super::functions::{Code, Functions};
use super::pattern::sdma_doorbell;
use super::site::{Argument, probe_point};
use super::step::{Confidence, ResolverStep};
use super::{Resolution, SdmaSite};

/// Lengths in bytes of the functions examined: those measured have 143 to 191 bytes.
const LENGTHS: std::ops::Range<usize> = 48..300;
/// The object, `curr_index` and `new_index`.
const NEEDED: [Argument; 3] = [Argument::Rdi, Argument::Rsi, Argument::Rdx];
const SFENCE: [u8; 3] = [0x0f, 0xae, 0xf8];
/// Largest number of functions of such a length with a store fence to examine; builds have under 100.
const MAX_EXAMINED: usize = 4096;

/// Returns whether a mangled name is that of an instance.
pub(super) fn is_name(name: &str) -> bool {
    name.contains("8BlitSdma") && name.contains("30UpdateWriteAndDoorbellRegister")
}

/// Finds all SDMA doorbell functions, in address order. `named` contains the addresses of functions with the name of one.
pub(super) fn find(resolution: &mut Resolution, functions: &Functions<'_>, named: &BTreeSet<u64>) {
    let (mut sites, mut absent, mut examined) = (Vec::new(), Vec::new(), 0);
    let fitting = functions.all().filter(|code| LENGTHS.contains(&code.bytes.len()));
    let fencing = fitting.filter(|code| code.bytes.windows(SFENCE.len()).any(|window| window == SFENCE));
    for code in fencing.take(MAX_EXAMINED) {
        examined += 1;
        match site(functions.image, code, named) {
            Some(Ok(site)) => sites.push(site),
            Some(Err(absence)) => absent.push(absence),
            None => {}
        }
    }
    if sites.is_empty() && absent.is_empty() {
        absent.push(Absence::NoSdma);
    }
    let sure = sites.iter().filter(|site| site.confidence == Confidence::High).count();
    let mut words: Vec<String> = sites
        .iter()
        .map(|site| format!("{:#x} rings a doorbell of {} bits", site.probe.function, site.width))
        .collect();
    if !named.is_empty() {
        words.push(format!("names confirm {sure} of them and name {}", named.len()));
    }
    words.extend(absent.iter().map(|absence| resolution.miss(absence)));
    let looked_at = format!("{examined} functions of fitting length with a store fence");
    let outcome = match sites.as_slice() {
        [] => Outcome::Absent,
        _ => Outcome::Used,
    };
    resolution.sdma = sites;
    let step = ResolverStep::CodePattern;
    resolution.decide(Sought::Sdma, step, looked_at, outcome, words.join("; "));
}

/// Examines a function; `None` if it is a different function.
fn site(image: &Image<'_>, code: Code<'_>, named: &BTreeSet<u64>) -> Option<Result<SdmaSite, Absence>> {
    let body = code.decode();
    let effects = effects(&body);
    let (doorbell_ptr, ring) = sdma_doorbell(&effects).filter(|_| body.complete)?;
    let doorbell_ptr_offset = i16::try_from(doorbell_ptr).ok()?;
    let wptr_ptr_offset = doorbell_ptr_offset.checked_add(8)?;
    let Some(probe) = probe_point(image, &body, &NEEDED, &[ring.vaddr]) else {
        return Some(Err(Absence::NoSdmaProbePoint(code.vaddr)));
    };
    Some(Ok(SdmaSite {
        probe,
        doorbell_ptr_offset,
        wptr_ptr_offset,
        curr_index_register: Argument::Rsi,
        new_index_register: Argument::Rdx,
        width: if ring.width == 8 { 64 } else { 32 },
        doorbell_store: ring.vaddr,
        step: ResolverStep::CodePattern,
        confidence: Confidence::of(named.contains(&code.vaddr)),
    }))
}
