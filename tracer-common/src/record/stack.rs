//! User stacks.

use super::Header;

/// The maximum number of bytes of a stack that a [`StackSample`] holds.
pub const STACK_LEN: usize = 16 << 10;
/// The bytes of a stack that a program copies at a time.
pub const STACK_PIECE: usize = 1 << 10;
/// The bytes that it copies at a time near the end of the stack.
pub const STACK_SMALL_PIECE: usize = 128;

/// The registers and the top of the stack of a thread that rings a doorbell. Its time and thread are those of the doorbell's record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StackSample {
    /// Header.
    pub header: Header,
    /// Distinguishes programs that have the same process id one after the other.
    pub generation: u32,
    /// Filled bytes of `bytes`: they end before [`STACK_LEN`] where the stack ends, or at a page that is not resident.
    pub len: u32,
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer: the address of `bytes[0]`.
    pub sp: u64,
    /// The frame pointer, or what the program uses its register for.
    pub bp: u64,
    /// The stack.
    pub bytes: [u8; STACK_LEN],
}
