//! Finds the bytes in a process's memory that decide whether its runtime stores to doorbells, or calls the driver's library instead
//! (`hsaKmtQueueRingDoorbell`).
//!
//! From ROCr 7.2 on, the functions that ring check flags of the object that contains the library's functions (`ThunkLoader`). If
//! all flags are 0 they store, else they call. The machine code shows where the flags are. It also proves that the function stores
//! if all of them are 0, and calls if one is not: the resolver follows the code for each of these cases.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use serde::{Deserialize, Serialize};

use super::code::{Body, Step};
use super::operands::{Registers, plain_memory};

/// No known chain of pointers is longer.
const MAX_HOPS: usize = 4;
const MAX_FLAGS: usize = 4;
/// More steps than any path through such a function has.
const MAX_STEPS: usize = 256;

/// Flags in the memory of a process, and the path to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    let mut found = chain(body)?;
    // For each set of flags that are not 0: with the empty set the function must store, with every other set it must call.
    let proven = (0..1_u32 << found.flags.len()).all(|set| {
        let walk = Walk {
            found: &found,
            set,
            held: Registers::default(),
            equal: None,
        };
        walk.run(body, stores) == Some(if set == 0 { End::Store } else { End::Call })
    });
    // The first hop is the pointer itself.
    found.hops.remove(0);
    proven.then_some(found)
}

/// Returns the chain of pointers that ends where bytes are compared with 0, if there is one. The first of its hops is 0: from the
/// pointer's own address. [`Walk`] proves the meaning of the flags.
fn chain(body: &Body) -> Option<ThunkFlags> {
    // The register that contains the end of the chain, and the chain.
    let mut chain: Option<(Register, ThunkFlags)> = None;
    for instruction in &body.instructions {
        if let Some((base, flag)) = compared_flag(instruction) {
            if let Some((register, found)) = &mut chain
                && *register == base
                && !found.flags.contains(&flag)
            {
                found.flags.push(flag);
            }
            continue;
        }
        let to = instruction.op0_register();
        if instruction.op0_kind() != OpKind::Register || !to.is_gpr64() {
            continue;
        }
        let growing = chain.as_mut().filter(|(_, found)| found.flags.is_empty());
        if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
            if growing.is_some() || chain.is_none() {
                let pointer = instruction.ip_rel_memory_address();
                let found = ThunkFlags {
                    pointer,
                    ..ThunkFlags::default()
                };
                chain = Some((to, found));
            }
        } else if let Some((register, found)) = growing {
            match loaded_from(instruction) {
                Some((base, hop)) if base == *register => {
                    *register = to;
                    found.hops.push(hop);
                }
                _ if *register == to => chain = None,
                _ => {}
            }
        }
    }
    let (_, mut found) = chain?;
    found.flags.sort_unstable();
    let fits = (1..=MAX_FLAGS).contains(&found.flags.len()) && found.hops.len() <= MAX_HOPS;
    (fits && found.hops.first() == Some(&0)).then_some(found)
}

/// The content of a register, if it is relevant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Held {
    #[default]
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
    held: Registers<Held>,
    /// Whether the operands of the last comparison are equal, if that is known.
    equal: Option<bool>,
}

impl Walk<'_> {
    /// Follows the path. Returns `None` if it depends on anything except the flags, or reaches neither event.
    fn run(mut self, body: &Body, stores: &[u64]) -> Option<End> {
        let mut info = InstructionInfoFactory::new();
        let mut index = 0;
        for _ in 0..MAX_STEPS {
            let instruction = body.instructions.get(index)?;
            if stores.contains(&instruction.ip()) {
                return Some(End::Store);
            }
            index = match Step::of(instruction) {
                // A call of a function in the object that has the flags.
                Step::IndirectJump | Step::Call => {
                    let by_table = instruction.op0_kind() == OpKind::Memory && self.is_at_end(instruction);
                    return by_table.then_some(End::Call);
                }
                Step::Jump => body.index_of(instruction.near_branch_target())?,
                Step::Branch => {
                    let taken = match instruction.mnemonic() {
                        Mnemonic::Je => self.equal?,
                        Mnemonic::Jne => !self.equal?,
                        _ => return None,
                    };
                    let target = body.index_of(instruction.near_branch_target());
                    if taken { target? } else { index + 1 }
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
        self.held.forget_written(instruction, info);
        if let Some(held) = result {
            self.held.set(instruction.op0_register(), held);
        }
    }

    /// Returns whether a comparison finds its operands equal.
    fn compared(&self, instruction: &Instruction) -> Option<bool> {
        if let Some((_, flag)) = compared_flag(instruction) {
            let which = self.found.flags.iter().position(|&known| known == flag)?;
            return self.is_at_end(instruction).then_some(self.set >> which & 1 == 0);
        }
        let registers = instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register;
        let held = [instruction.op0_register(), instruction.op1_register()].map(|register| self.held.get(register));
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
            _ => {
                let (base, hop) = loaded_from(instruction)?;
                Some(match self.held.get(base) {
                    Held::Behind(depth) if self.found.hops.get(depth) == Some(&hop) => Held::Behind(depth + 1),
                    _ => Held::Loaded,
                })
            }
        }
    }

    /// Returns whether the instruction's memory operand is in the object that has the flags.
    fn is_at_end(&self, instruction: &Instruction) -> bool {
        let end = Held::Behind(self.found.hops.len());
        plain_memory(instruction).is_some_and(|(base, _)| self.held.get(base) == end)
    }
}

/// Returns the base register and the displacement of a byte that is compared with 0.
fn compared_flag(instruction: &Instruction) -> Option<(Register, i32)> {
    let is = instruction.mnemonic() == Mnemonic::Cmp
        && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_size().size() == 1
        && instruction.try_immediate(1).is_ok_and(|immediate| immediate == 0);
    if is { plain_memory(instruction) } else { None }
}

/// Returns the base register and the displacement of the memory that the instruction copies to a register.
fn loaded_from(instruction: &Instruction) -> Option<(Register, i32)> {
    let is = instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Memory;
    if is { plain_memory(instruction) } else { None }
}
