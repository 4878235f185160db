//! Finds the bytes in a process's memory that decide whether its runtime stores to doorbells, or calls the driver's library instead
//! (`hsaKmtQueueRingDoorbell`).
//!
//! From ROCr 7.2 on, the functions that ring check flags of the object that contains the library's functions (`ThunkLoader`). If
//! all flags are 0 they store, else they call. The machine code shows where the flags are. It also proves that the function stores
//! if all of them are 0, and calls if one is not: the resolver follows the code for each of these cases.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use serde::{Deserialize, Serialize};

use super::code::{Body, Step};

/// No known chain of pointers is longer.
const MAX_HOPS: usize = 4;
const MAX_FLAGS: usize = 4;
/// More steps than any path through such a function has.
const MAX_STEPS: usize = 256;

/// Flags in the memory of a process, and the path to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThunkFlags {
    /// Address of a pointer, as linked.
    pub pointer: u64,
    /// Offsets from each pointer to the next one.
    pub hops: Vec<i32>,
    /// Offsets of the flags from the last pointer, a byte each. The function stores if all of them are 0.
    pub flags: Vec<i32>,
}

/// The first event on a path through the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Store,
    Call,
}

/// Returns the flags of a function that stores at one of `stores`; `None` if they are not understood.
pub(super) fn flags(body: &Body, stores: &[u64]) -> Option<ThunkFlags> {
    let found = chain(body)?;
    // For each set of flags that are not 0: with the empty set the function must store, with every other set it must call.
    let proven = (0..1_u32 << found.flags.len()).all(|set| {
        let end = Walk::new(&found, set).run(body, stores);
        end == Some(if set == 0 { End::Store } else { End::Call })
    });
    proven.then_some(found)
}

/// A register that contains the end of a chain of pointers.
struct Chain {
    register: Register,
    found: ThunkFlags,
}

/// Returns the chain of pointers that ends where bytes are compared with 0, if there is one. [`Walk`] proves the meaning of the
/// flags.
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

/// The content of a register, if it is relevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Unknown,
    /// An address in the library.
    Static,
    /// A value from memory.
    Loaded,
    /// The place after this many pointers. At 0 it is the address of the first pointer.
    Behind(usize),
}

/// A walk along a path through a function, with some flags that are not 0.
struct Walk<'a> {
    found: &'a ThunkFlags,
    /// Bit `i`: `found.flags[i]` is not 0.
    set: u32,
    held: [Held; 16],
    /// Whether the operands of the last comparison are equal, if that is known.
    equal: Option<bool>,
}

impl<'a> Walk<'a> {
    fn new(found: &'a ThunkFlags, set: u32) -> Self {
        Self {
            found,
            set,
            held: [Held::Unknown; 16],
            equal: None,
        }
    }

    /// Follows the path. Returns `None` if it depends on anything except the flags, or reaches neither event.
    fn run(mut self, body: &Body, stores: &[u64]) -> Option<End> {
        let at = |vaddr: u64| body.instructions().iter().position(|i| i.ip() == vaddr);
        let mut info = InstructionInfoFactory::new();
        let mut index = 0;
        for _ in 0..MAX_STEPS {
            let instruction = body.instructions().get(index)?;
            if stores.contains(&instruction.ip()) {
                return Some(End::Store);
            }
            index = match Step::of(instruction) {
                // A call of a function in the object that has the flags.
                Step::IndirectJump | Step::Call => {
                    let by_table = instruction.op0_kind() == OpKind::Memory && self.is_at_end(instruction);
                    return by_table.then_some(End::Call);
                }
                Step::Jump => at(instruction.near_branch_target())?,
                Step::Branch => {
                    let taken = match instruction.mnemonic() {
                        Mnemonic::Je => self.equal?,
                        Mnemonic::Jne => !self.equal?,
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
                    self.step(instruction, &mut info);
                    index + 1
                }
            };
        }
        None
    }

    fn step(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        if instruction.mnemonic() == Mnemonic::Cmp {
            self.equal = self.compared(instruction);
        } else if instruction.rflags_modified() != 0 {
            self.equal = None;
        }
        let result = self.result(instruction);
        for used in info.info(instruction).used_registers() {
            if !matches!(
                used.access(),
                OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            ) {
                self.hold(used.register(), Held::Unknown);
            }
        }
        if let Some(held) = result {
            self.hold(instruction.op0_register(), held);
        }
    }

    /// Returns whether a comparison finds its operands equal.
    fn compared(&self, instruction: &Instruction) -> Option<bool> {
        if let Some(flag) = compared_flag(instruction) {
            let which = self.found.flags.iter().position(|&known| known == flag)?;
            return self.is_at_end(instruction).then_some(self.set >> which & 1 == 0);
        }
        let registers = instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register;
        let held = [instruction.op0_register(), instruction.op1_register()].map(|register| self.held(register));
        // The compiler guesses which function a virtual call leads to. If the guess is wrong, the code calls another function, and
        // that one checks the flags itself.
        let guess = registers && matches!(held, [Held::Static, Held::Loaded] | [Held::Loaded, Held::Static]);
        guess.then_some(true)
    }

    /// Returns what an instruction of a known form leaves in its first operand.
    fn result(&self, instruction: &Instruction) -> Option<Held> {
        if instruction.op0_kind() != OpKind::Register || !instruction.op0_register().is_gpr64() {
            return None;
        }
        match instruction.mnemonic() {
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                let first = instruction.ip_rel_memory_address() == self.found.pointer;
                Some(if first { Held::Behind(0) } else { Held::Static })
            }
            Mnemonic::Mov if instruction.op1_kind() == OpKind::Memory && is_plain(instruction) => {
                let Held::Behind(depth) = self.held(instruction.memory_base()) else {
                    return Some(Held::Loaded);
                };
                let next = displacement(instruction) == self.hop(depth);
                Some(if next { Held::Behind(depth + 1) } else { Held::Loaded })
            }
            _ => None,
        }
    }

    /// Returns the offset of the next pointer.
    fn hop(&self, depth: usize) -> Option<i32> {
        match depth.checked_sub(1) {
            None => Some(0),
            Some(at) => self.found.hops.get(at).copied(),
        }
    }

    /// Returns whether the instruction's memory operand is in the object that has the flags.
    fn is_at_end(&self, instruction: &Instruction) -> bool {
        is_plain(instruction) && self.held(instruction.memory_base()) == Held::Behind(self.found.hops.len() + 1)
    }

    fn held(&self, register: Register) -> Held {
        let whole = register.is_gpr64().then(|| self.held.get(register.number()));
        whole.flatten().copied().unwrap_or(Held::Unknown)
    }

    fn hold(&mut self, register: Register, held: Held) {
        let full = register.full_register();
        if full.is_gpr64()
            && let Some(place) = self.held.get_mut(full.number())
        {
            *place = held;
        }
    }
}

/// Returns the displacement of a byte that is compared with 0.
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
