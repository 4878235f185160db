//! What an instruction reads and writes: registers, and places relative to one register.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};

/// Returns the registers, in full width, that an instruction may write.
pub(super) fn written(instruction: &Instruction, info: &mut InstructionInfoFactory) -> impl Iterator<Item = Register> {
    let used = info.info(instruction).used_registers().iter();
    used.filter(|used| !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead))
        .map(|used| used.register().full_register())
}

/// Returns the base register and the displacement of a memory operand that consists of these alone.
pub(super) fn plain_memory(instruction: &Instruction) -> Option<(Register, i32)> {
    let flat = !matches!(instruction.memory_segment(), Register::FS | Register::GS);
    let base = instruction.memory_base();
    let plain = flat && instruction.memory_index() == Register::None && base.is_gpr64();
    let displacement = i32::try_from(instruction.memory_displacement64().cast_signed()).ok()?;
    plain.then_some((base, displacement))
}

/// A value for each of the 16 general-purpose registers, in encoding order. The default is that of a register without a known
/// content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Registers<T>(pub(super) [T; 16]);

impl<T: Copy + Default> Registers<T> {
    /// Returns the value of a 64-bit register; the default for any other register.
    pub(super) fn get(&self, register: Register) -> T {
        let whole = register.is_gpr64().then(|| self.0.get(register.number()));
        whole.flatten().copied().unwrap_or_default()
    }

    /// Sets the value of the whole register that `register` is a part of.
    pub(super) fn set(&mut self, register: Register, value: T) {
        let full = register.full_register();
        if full.is_gpr64()
            && let Some(place) = self.0.get_mut(full.number())
        {
            *place = value;
        }
    }

    /// Forgets the values that an instruction may change.
    pub(super) fn forget_written(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        for register in written(instruction, info) {
            self.set(register, T::default());
        }
    }
}
