//! The instructions of one function and the control flow between them.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

/// Limit in bytes. A longer function is not a doorbell function (those measured have at most 252 bytes), and is not interpreted.
pub(super) const MAX_LENGTH: usize = 4096;

/// How an instruction passes control on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Only to the next instruction.
    Next,
    /// To the next instruction, after a direct or indirect call.
    Call,
    /// To a constant address.
    Jump,
    /// To a computed address.
    IndirectJump,
    /// To the next instruction or to a constant address.
    Branch,
    /// To no instruction of this function: return, trap.
    End,
}

impl Step {
    pub(super) fn of(instruction: &Instruction) -> Self {
        match instruction.flow_control() {
            FlowControl::Next => Self::Next,
            FlowControl::Call | FlowControl::IndirectCall => Self::Call,
            FlowControl::UnconditionalBranch => Self::Jump,
            FlowControl::IndirectBranch => Self::IndirectJump,
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => Self::Branch,
            FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => Self::End,
        }
    }

    fn falls_through(self) -> bool {
        matches!(self, Self::Next | Self::Call | Self::Branch)
    }
}

/// The instructions of a function, up to the first one that cannot be decoded.
pub(super) struct Body {
    instructions: Vec<Instruction>,
    range: std::ops::Range<u64>,
    complete: bool,
}

impl Body {
    /// Decodes `code`, which is loaded at `vaddr`.
    pub(super) fn decode(vaddr: u64, code: &[u8]) -> Self {
        let range = vaddr..vaddr.saturating_add(code.len() as u64);
        let decoded = Decoder::with_ip(64, code, vaddr, DecoderOptions::NONE).into_iter();
        let instructions: Vec<_> = decoded.take_while(|instruction| !instruction.is_invalid()).collect();
        let complete = instructions.last().is_some_and(|last| last.next_ip() == range.end);
        Self {
            instructions,
            range,
            complete,
        }
    }

    /// Returns whether every byte was decoded.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Returns the indices of the instructions that can follow the one at `index`.
    pub(super) fn successors(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let instruction = self.instructions.get(index);
        let step = instruction.map(Step::of);
        let next = step
            .filter(|step| step.falls_through())
            .map(|_| index.saturating_add(1));
        let jumps = matches!(step, Some(Step::Jump | Step::Branch));
        let target = instruction
            .filter(|_| jumps)
            .and_then(|jump| self.index_of(jump.near_branch_target()));
        next.into_iter().chain(target)
    }

    /// Returns the target of a direct jump or call, if it is outside the function.
    pub(super) fn leaving_target(&self, instruction: &Instruction) -> Option<u64> {
        let target = instruction.near_branch_target();
        (target != 0 && !self.range.contains(&target)).then_some(target)
    }

    /// Returns whether a jump of this function goes to `vaddr`.
    pub(super) fn is_jump_target(&self, vaddr: u64) -> bool {
        let mut jumps = self
            .instructions
            .iter()
            .filter(|i| matches!(Step::of(i), Step::Jump | Step::Branch));
        jumps.any(|jump| jump.near_branch_target() == vaddr)
    }

    fn index_of(&self, vaddr: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&vaddr, Instruction::ip).ok()
    }
}
