//! The effects of a function on its arguments: a small abstract interpretation of its machine code.
//!
//! Every register contains a symbolic [`Value`]. States meet where control flow joins; values that differ become unknown. So a
//! store to a doorbell is recognised by *where its operands come from*, independent of registers, instruction order and compiler.
//! Arguments are those of the System V x86-64 ABI.

use iced_x86::{Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpKind, Register};

use super::code::{Body, Step};
use super::operands::{Registers, plain_memory};
use super::site::Argument;
use super::value::{Place, Value};

/// A plain store of a general-purpose register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    pub(super) vaddr: u64,
    pub(super) place: Place,
    pub(super) value: Value,
    /// Number of bytes written.
    pub(super) width: usize,
}

/// The effects of a function that the patterns examine.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Stores, in address order.
    pub(super) stores: Vec<Store>,
    /// Atomic additions (`lock xadd`), in address order. The value is the addend.
    pub(super) locked_adds: Vec<Store>,
    /// Offsets of the object's fields that the function reads.
    pub(super) fields_read: Vec<i32>,
    pub(super) store_fence: bool,
    /// Targets of direct jumps and calls that leave the function.
    pub(super) callees: Vec<u64>,
    /// Sources of the targets of indirect jumps and calls.
    pub(super) indirect: Vec<Value>,
}

/// Interprets a function. Instructions that cannot be reached from its start have no effects.
pub(super) fn effects(body: &Body) -> Effects {
    let mut effects = Effects::default();
    for (instruction, state) in body.instructions.iter().zip(reach(body)) {
        if let Some(state) = state {
            state.record(instruction, body, &mut effects);
        }
    }
    effects
}

/// Returns the state before each instruction, `None` if it is unreachable: a fixed point over the control flow.
fn reach(body: &Body) -> Vec<Option<State>> {
    let mut info = InstructionInfoFactory::new();
    let mut states = vec![None; body.instructions.len()];
    let mut pending = vec![(0, State::at_entry())];
    while let Some((index, incoming)) = pending.pop() {
        let (Some(known), Some(instruction)) = (states.get_mut(index), body.instructions.get(index)) else {
            continue;
        };
        let merged = known.map_or(incoming, |state: State| state.meet(incoming));
        if *known == Some(merged) {
            continue;
        }
        *known = Some(merged);
        let after = merged.after(instruction, &mut info);
        pending.extend(body.successors(index, instruction).map(|next| (next, after)));
    }
    states
}

/// The contents of the registers before an instruction.
type State = Registers<Value>;

impl State {
    fn at_entry() -> Self {
        let mut state = Self::default();
        state.set(Register::RDI, Value::Object(0));
        for argument in [Argument::Rsi, Argument::Rdx, Argument::Rcx] {
            state.set(argument.register(), Value::Passed(argument));
        }
        state
    }

    fn meet(self, other: Self) -> Self {
        let mut met = self;
        for (mine, theirs) in met.0.iter_mut().zip(other.0) {
            if *mine != theirs {
                *mine = Value::Unknown;
            }
        }
        met
    }

    /// Returns the value that a read of `register`, of any width, gives.
    fn read(&self, register: Register) -> Value {
        if register.is_gpr32() {
            self.get(register.full_register()).low_half()
        } else {
            self.get(register)
        }
    }

    fn place(&self, instruction: &Instruction) -> Place {
        let (base, displacement) = match plain_memory(instruction) {
            _ if instruction.memory_base() == Register::RIP => (Value::Static, 0),
            Some((base, displacement)) => (self.get(base), displacement),
            None => (Value::Unknown, 0),
        };
        Place { base, displacement }
    }

    fn after(mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Self {
        let result = self.result(instruction);
        self.forget_written(instruction, info);
        if Step::of(instruction) == Step::Call {
            for register in CALLER_SAVED {
                self.set(register, Value::Unknown);
            }
        }
        if let Some(value) = result {
            self.set(instruction.op0_register(), value);
        }
        self
    }

    /// Returns the value that an instruction of a known form leaves in its first operand, a 32- or 64-bit register.
    fn result(&self, instruction: &Instruction) -> Option<Value> {
        let destination = instruction.op0_register();
        if instruction.op0_kind() != OpKind::Register || !(destination.is_gpr32() || destination.is_gpr64()) {
            return None;
        }
        let wide = destination.is_gpr64();
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Mov, OpKind::Register) => Some(self.read(instruction.op1_register())),
            (Mnemonic::Mov, OpKind::Memory) if wide => Some(self.place(instruction).content()),
            (Mnemonic::Lea, OpKind::Memory) if wide => Some(self.place(instruction).address()),
            // A mask.
            (Mnemonic::And, _) if instruction.try_immediate(1).is_ok() => Some(self.read(destination).low_half()),
            (Mnemonic::Add, _) if wide => self.shifted(instruction, i32::checked_add),
            (Mnemonic::Sub, _) if wide => self.shifted(instruction, i32::checked_sub),
            _ => None,
        }
    }

    fn shifted(&self, instruction: &Instruction, shift: impl Fn(i32, i32) -> Option<i32>) -> Option<Value> {
        let immediate = instruction.try_immediate(1).ok()?;
        let by = i32::try_from(immediate.cast_signed()).ok()?;
        match self.get(instruction.op0_register()) {
            Value::Object(offset) => Some(Value::Object(shift(offset, by)?)),
            Value::Field(field, offset) => Some(Value::Field(field, shift(offset, by)?)),
            _ => None,
        }
    }

    fn record(&self, instruction: &Instruction, body: &Body, effects: &mut Effects) {
        let to_memory = instruction.op0_kind() == OpKind::Memory;
        let store = || Store {
            vaddr: instruction.ip(),
            place: self.place(instruction),
            value: match instruction.op1_kind() {
                OpKind::Register => self.read(instruction.op1_register()),
                _ => Value::Unknown,
            },
            width: instruction.memory_size().size(),
        };
        match instruction.mnemonic() {
            Mnemonic::Sfence => effects.store_fence = true,
            Mnemonic::Mov | Mnemonic::Movnti if to_memory => effects.stores.push(store()),
            Mnemonic::Xadd if to_memory && instruction.has_lock_prefix() => effects.locked_adds.push(store()),
            _ if instruction.op1_kind() == OpKind::Memory && instruction.memory_size() != MemorySize::Unknown => {
                effects.fields_read.extend(self.place(instruction).in_object());
            }
            _ => {}
        }
        match (Step::of(instruction), instruction.op0_kind()) {
            // A call through the global offset table: an ordinary call of another library.
            (Step::IndirectJump | Step::Call, _) if instruction.is_ip_rel_memory_operand() => {}
            (Step::IndirectJump | Step::Call, OpKind::Memory) => {
                effects.indirect.push(self.place(instruction).content());
            }
            (Step::IndirectJump | Step::Call, OpKind::Register) => {
                effects.indirect.push(self.read(instruction.op0_register()));
            }
            (Step::Jump | Step::Branch | Step::Call, _) => {
                effects.callees.extend(body.leaving_target(instruction));
            }
            _ => {}
        }
    }
}

/// Registers that a callee may change (System V x86-64 ABI, figure 3.4).
const CALLER_SAVED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
