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
}

/// The instructions of a function, up to the first one that cannot be decoded.
pub(super) struct Body {
    pub(super) instructions: Vec<Instruction>,
    /// The addresses of the function.
    pub(super) range: std::ops::Range<u64>,
    /// Whether every byte was decoded.
    pub(super) complete: bool,
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

    /// Returns the indices of the instructions that can follow `instruction`, the one at `index`.
    pub(super) fn successors(&self, index: usize, instruction: &Instruction) -> impl Iterator<Item = usize> + use<> {
        let falls_through = matches!(Step::of(instruction), Step::Next | Step::Call | Step::Branch);
        let target = jump_target(instruction).and_then(|target| self.index_of(target));
        let next = falls_through.then_some(index.saturating_add(1));
        next.into_iter().chain(target)
    }

    /// Returns the target of a direct jump or call, if it is outside the function.
    pub(super) fn leaving_target(&self, instruction: &Instruction) -> Option<u64> {
        let target = instruction.near_branch_target();
        (target != 0 && !self.range.contains(&target)).then_some(target)
    }

    /// Returns whether a jump of this function goes to `vaddr`.
    pub(super) fn is_jump_target(&self, vaddr: u64) -> bool {
        self.instructions.iter().any(|jump| jump_target(jump) == Some(vaddr))
    }

    /// Returns the index of the instruction at `vaddr`.
    pub(super) fn index_of(&self, vaddr: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&vaddr, Instruction::ip).ok()
    }
}

fn jump_target(instruction: &Instruction) -> Option<u64> {
    matches!(Step::of(instruction), Step::Jump | Step::Branch).then(|| instruction.near_branch_target())
}
