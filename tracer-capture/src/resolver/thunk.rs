//! Whether a process's runtime stores to doorbells, or calls the driver's library instead (`hsaKmtQueueRingDoorbell`): which
//! bytes of its memory decide that.
//!
//! From ROCr 7.2 on, the functions that ring look at flags of the object that holds the library's functions (`ThunkLoader`):
//! where all are 0 they store, else they call. Where the flags are follows from the machine code, and so does that the
//! function stores if all of them are 0, and calls if one is not: it is followed for each of these cases.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use serde::{Deserialize, Serialize};

use super::code::{Body, Step};

/// Longer chains of pointers are none that is known.
const MAX_HOPS: usize = 4;
const MAX_FLAGS: usize = 4;
/// More steps than a way through such a function has.
const MAX_STEPS: usize = 256;

/// Flags in the memory of a process, and how to come to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    // Each set of flags that are not 0: of none it must store, of every other it must call.
    let proven = (0..1_u32 << found.flags.len()).all(|set| {
        let end = Walk::new(&found, set).run(body, stores);
        end == Some(if set == 0 { End::Store } else { End::Call })
    });
    proven.then_some(found)
}

/// A register that holds what lies at the end of a chain of pointers.
struct Chain {
    register: Register,
    found: ThunkFlags,
}

/// The chain of pointers that ends where bytes are compared with 0, if it is one: what it is taken for, [`Walk`] proves.
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

/// What a register holds, as far as that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Unknown,
    /// An address in the library.
    Static,
    /// Something from memory.
    Loaded,
    /// The place that is so many pointers behind the first one; at 0 it is that pointer's address.
    Behind(usize),
}

/// A way through a function, of whose flags some are not 0.
struct Walk<'a> {
    found: &'a ThunkFlags,
    /// Bit `i`: `found.flags[i]` is not 0.
    set: u32,
    held: [Held; 16],
    /// Whether what was compared last is equal, if that is known.
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

    /// `None` if it depends on something else than the flags, or comes to neither.
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
                // By a function of the object that has the flags.
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

    /// Whether a comparison finds its operands equal.
    fn compared(&self, instruction: &Instruction) -> Option<bool> {
        if let Some(flag) = compared_flag(instruction) {
            let which = self.found.flags.iter().position(|&known| known == flag)?;
            return self.is_at_end(instruction).then_some(self.set >> which & 1 == 0);
        }
        let registers = instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register;
        let held = [instruction.op0_register(), instruction.op1_register()].map(|register| self.held(register));
        // The compiler's guess which function a virtual call leads to: where it is wrong, another one is called, and that
        // looks itself.
        let guess = registers && matches!(held, [Held::Static, Held::Loaded] | [Held::Loaded, Held::Static]);
        guess.then_some(true)
    }

    /// What an instruction of a known form leaves in its first operand.
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

    /// The offset of the next pointer.
    fn hop(&self, depth: usize) -> Option<i32> {
        match depth.checked_sub(1) {
            None => Some(0),
            Some(at) => self.found.hops.get(at).copied(),
        }
    }

    /// Whether the memory that an instruction names is in the object that has the flags.
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
