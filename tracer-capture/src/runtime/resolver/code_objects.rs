//! Finds the function that the runtime calls around each change of its list of code objects.
//!
//! The runtime exports the list for debuggers: `_amdgpu_r_debug`, whose `r_brk` is that function. Older releases have `r_brk` in
//! the file, by a relocation; newer ones write it when the library is initialised. So the resolver finds the function by its
//! callers, which do the same in every release: they store `RT_ADD` or `RT_DELETE` into `r_state`, then call it. If the file has a
//! value for `r_brk`, it must agree.

use std::collections::BTreeSet;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use tracer_common::r_debug::{R_BRK, R_STATE, RT_ADD, RT_DELETE};

use super::decision::{Outcome, Sought};
use super::error::Absence;
use super::functions::{Code, Functions};
use super::operands::written;
use super::site::probe_point;
use super::step::{Confidence, ResolverStep};
use super::{CodeObjectSite, Resolution};

const LIST: &str = "_amdgpu_r_debug";
/// Largest number of instructions between the store of the state and the call: a fence, at most.
const NEAR: usize = 4;
/// Largest number of functions to decode; builds have 5 that use the list.
const MAX_USERS: usize = 256;
/// Limit in bytes. No runtime has a longer function, and decoding takes 40 times the function's length of memory.
const MAX_LENGTH: usize = 1 << 20;

/// Finds the function.
pub(super) fn find(resolution: &mut Resolution, functions: &Functions<'_>) {
    let mut looked_at = "the dynamic symbols".to_owned();
    let (outcome, reason) = match search(functions, &mut looked_at) {
        Ok(site) => {
            resolution.code_objects = Some(site);
            let agrees = match site.confidence {
                Confidence::High => ", and r_brk in the file agrees",
                _ => "",
            };
            let function = site.probe.function;
            (
                Outcome::Used,
                format!("{function:#x} is called after RT_ADD and RT_DELETE{agrees}"),
            )
        }
        Err(why) => (Outcome::Absent, resolution.miss(&Absence::NoCodeObjects(why))),
    };
    let step = ResolverStep::CodePattern;
    resolution.decide(Sought::CodeObjects, step, looked_at, outcome, reason);
}

fn search(functions: &Functions<'_>, looked_at: &mut String) -> Result<CodeObjectSite, &'static str> {
    let image = functions.image;
    let list = image.exported_object(LIST);
    let (debug, slots) = list.ok_or("_amdgpu_r_debug is not exported")?;
    let (mut callees, mut users) = (BTreeSet::new(), 0);
    let using = functions
        .all()
        .filter(|code| code.bytes.len() <= MAX_LENGTH && refers(code, &slots, debug));
    for code in using.take(MAX_USERS) {
        users += 1;
        callees.extend(callees_after_state(&code.decode().instructions, &slots, debug));
    }
    *looked_at = format!("{users} functions that may use {LIST}");
    callees.retain(|&callee| functions.is_start(callee));
    let mut found = callees.into_iter();
    let (Some(function), None) = (found.next(), found.next()) else {
        return Err("the function that is called around changes of _amdgpu_r_debug was not recognised");
    };
    let in_file = image.relative_relocation(debug.wrapping_add(R_BRK as u64));
    if in_file.is_some_and(|brk| brk != function) {
        return Err("r_brk of _amdgpu_r_debug is not the function that is called around changes");
    }
    let site = || {
        let body = functions.body(function, MAX_LENGTH)?;
        let probe = probe_point(image, &body, &[], &[])?;
        Some(CodeObjectSite {
            probe,
            debug,
            debug_displacement: i32::try_from(i128::from(debug) - i128::from(probe.vaddr)).ok()?,
            step: ResolverStep::CodePattern,
            confidence: Confidence::of(in_file.is_some()),
        })
    };
    site().ok_or("the function that is called around changes of _amdgpu_r_debug can't be probed")
}

/// Returns whether the code may refer to one of the slots, or to the list itself, relative to the instruction. Any 4 bytes with a
/// matching value count.
///
/// Decoding a whole library takes ten times as long, while its process is paused.
fn refers(code: &Code<'_>, slots: &[u64], debug: u64) -> bool {
    // An immediate value of 4 bytes follows the displacement.
    let state = debug.wrapping_add(R_STATE as u64).wrapping_sub(4);
    code.bytes.windows(4).enumerate().any(|(at, bytes)| {
        let displacement = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let end = code.vaddr.wrapping_add(at as u64 + 4);
        let target = end.wrapping_add_signed(displacement.into());
        target == debug || target == state || slots.contains(&target)
    })
}

/// Returns the functions that are called right after a store of `RT_ADD` or `RT_DELETE` into `r_state`.
fn callees_after_state(instructions: &[Instruction], slots: &[u64], debug: u64) -> Vec<u64> {
    let mut info = InstructionInfoFactory::new();
    let mut callees = Vec::new();
    // The register that contains the list's address, on the straight line from the instruction that loads it.
    let mut base = Register::None;
    for (at, instruction) in instructions.iter().enumerate() {
        if stores_state(instruction, base, debug) {
            let mut near = instructions.iter().skip(at + 1).take(NEAR);
            let leaving = near.find(|i| i.flow_control() != FlowControl::Next);
            let call = leaving.filter(|i| i.flow_control() == FlowControl::Call);
            let target = call.map(Instruction::near_branch_target);
            callees.extend(target.filter(|&target| target != 0));
        }
        if loads_list(instruction, slots, debug) {
            base = instruction.op0_register();
        } else if base != Register::None && written(instruction, &mut info).any(|register| register == base) {
            base = Register::None;
        }
    }
    callees
}

/// Matches `mov reg, [rip + slot]` or `lea reg, [rip + list]`.
fn loads_list(instruction: &Instruction, slots: &[u64], debug: u64) -> bool {
    if !instruction.op0_register().is_gpr64() || !instruction.is_ip_rel_memory_operand() {
        return false;
    }
    let address = instruction.ip_rel_memory_address();
    match instruction.mnemonic() {
        Mnemonic::Mov => instruction.op1_kind() == OpKind::Memory && slots.contains(&address),
        Mnemonic::Lea => address == debug,
        _ => false,
    }
}

/// Matches `mov dword [list + r_state], RT_ADD` (or `RT_DELETE`).
fn stores_state(instruction: &Instruction, base: Register, debug: u64) -> bool {
    let stores = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Immediate32;
    let place = if instruction.is_ip_rel_memory_operand() {
        instruction.ip_rel_memory_address() == debug.wrapping_add(R_STATE as u64)
    } else {
        base != Register::None
            && instruction.memory_base() == base
            && instruction.memory_index() == Register::None
            && instruction.memory_displacement64() == R_STATE as u64
    };
    stores && place && [RT_ADD, RT_DELETE].contains(&instruction.immediate32())
}
