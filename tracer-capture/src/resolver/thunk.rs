//! Whether a process's runtime stores to doorbells, or calls the driver's library instead (`hsaKmtQueueRingDoorbell`): which
//! bytes of its memory decide that.
//!
//! From ROCr 7.2 on, the functions that ring look at flags of the object that holds the library's functions (`ThunkLoader`):
//! where all are 0 they store, else they call. Where the flags are follows from the machine code, and so does that the
//! function stores if all of them are 0, and calls if one is not: it is followed for each of these cases.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::code::{Body, Step};

/// Longer chains of pointers are none that is known.
const MAX_HOPS: usize = 4;
const MAX_FLAGS: usize = 4;
/// More steps than a way through such a function has.
const MAX_STEPS: usize = 256;

/// Flags in the memory of a process, and how to come to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThunkFlags {
    /// Address, as linked, of a pointer.
    pub pointer: u64,
    /// Offsets behind it: at each there is the next pointer.
    pub hops: Vec<i32>,
    /// Offsets of the flags, a byte each, behind the last pointer: stores are made if all of them are 0.
    pub flags: Vec<i32>,
}

/// What a way through the function comes to first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Store,
    Call,
}

/// The flags of a function that stores at one of `stores`; `None` if they are not understood.
pub(super) fn flags(body: &Body, stores: &[u64]) -> Option<ThunkFlags> {
    let found = chain(body)?;
    let follows = |set: Option<i32>, end| walk(body, stores, set) == Some(end);
    let proven = follows(None, End::Store) && found.flags.iter().all(|&flag| follows(Some(flag), End::Call));
    proven.then_some(found)
}

/// A register that holds what lies at the end of a chain of pointers.
struct Chain {
    register: Register,
    found: ThunkFlags,
}

/// The chain of pointers that ends where bytes are compared with 0.
fn chain(body: &Body) -> Option<ThunkFlags> {
    let mut chain: Option<Chain> = None;
    for instruction in body.instructions() {
        if let Some(flag) = compared_flag(instruction) {
            if let Some(chain) = chain
                .as_mut()
                .filter(|chain| chain.register == instruction.memory_base())
                && !chain.found.flags.contains(&flag)
            {
                chain.found.flags.push(flag);
            }
            continue;
        }
        let to = instruction.op0_register();
        if instruction.op0_kind() != OpKind::Register || !to.is_gpr64() {
            continue;
        }
        let is_load = instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Memory;
        if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
            if chain.as_ref().is_none_or(|chain| chain.found.flags.is_empty()) {
                chain = Some(Chain {
                    register: to,
                    found: ThunkFlags {
                        pointer: instruction.ip_rel_memory_address(),
                        hops: Vec::new(),
                        flags: Vec::new(),
                    },
                });
            }
        } else if let Some(known) = chain.as_mut().filter(|known| known.found.flags.is_empty()) {
            if is_load && instruction.memory_base() == known.register && is_plain(instruction) {
                known.register = to;
                known.found.hops.push(displacement(instruction)?);
            } else if known.register == to {
                chain = None;
            }
        }
    }
    let mut found = chain?.found;
    if found.flags.is_empty() || found.flags.len() > MAX_FLAGS || found.hops.len() > MAX_HOPS {
        return None;
    }
    // The first hop is the pointer itself.
    match found.hops.split_first() {
        Some((0, hops)) => found.hops = hops.to_vec(),
        _ => return None,
    }
    found.flags.sort_unstable();
    Some(found)
}

/// Follows a function: of its flags, only `set` is not 0. `None` if it depends on something else, or comes to an end.
fn walk(body: &Body, stores: &[u64], set: Option<i32>) -> Option<End> {
    let at = |vaddr: u64| body.instructions().iter().position(|i| i.ip() == vaddr);
    let mut index = 0;
    // Whether what was compared last is equal.
    let mut equal: Option<bool> = None;
    for _ in 0..MAX_STEPS {
        let instruction = body.instructions().get(index)?;
        if stores.contains(&instruction.ip()) {
            return Some(End::Store);
        }
        index = match Step::of(instruction) {
            Step::IndirectJump => return (instruction.op0_kind() == OpKind::Memory).then_some(End::Call),
            Step::Call => return instruction.is_call_near_indirect().then_some(End::Call),
            Step::Jump => at(instruction.near_branch_target())?,
            Step::Branch => {
                let taken = match instruction.mnemonic() {
                    Mnemonic::Je => equal?,
                    Mnemonic::Jne => !equal?,
                    _ => return None,
                };
                if taken {
                    at(instruction.near_branch_target())?
                } else {
                    index + 1
                }
            }
            Step::End => return None,
            Step::Next => {
                if let Some(flag) = compared_flag(instruction) {
                    equal = Some(set != Some(flag));
                } else if instruction.mnemonic() == Mnemonic::Cmp {
                    // The compiler's guess which function a virtual call leads to: where it is wrong, that function is
                    // called, and looks itself.
                    let registers =
                        instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register;
                    equal = registers.then_some(true);
                } else if instruction.rflags_modified() != 0 {
                    equal = None;
                }
                index + 1
            }
        };
    }
    None
}

/// The displacement of a byte that is compared with 0.
fn compared_flag(instruction: &Instruction) -> Option<i32> {
    let is = instruction.mnemonic() == Mnemonic::Cmp
        && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_size().size() == 1
        && instruction.try_immediate(1).is_ok_and(|immediate| immediate == 0)
        && is_plain(instruction);
    if is { displacement(instruction) } else { None }
}

fn is_plain(instruction: &Instruction) -> bool {
    let flat = !matches!(instruction.memory_segment(), Register::FS | Register::GS);
    flat && instruction.memory_index() == Register::None && instruction.memory_base().is_gpr64()
}

fn displacement(instruction: &Instruction) -> Option<i32> {
    i32::try_from(instruction.memory_displacement64().cast_signed()).ok()
}
