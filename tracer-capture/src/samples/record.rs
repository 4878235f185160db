//! Records, whichever backend read them.

use tracer_common::record::IOCTL_ARG_LEN;
use tracer_core::event::RingStep;

use super::places::{ArgumentOf, Place};

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A hit of a uprobe.
    Hit(Place, Registers),
    /// The entry of an ioctl.
    IoctlEnter(Call<'a>),
    /// The exit of an ioctl.
    IoctlExit(Call<'a>),
    /// The argument of an ioctl, where the C library calls the kernel.
    Argument(ArgumentOf, Argument<'a>),
    /// A step of a job on a ring of the kernel driver: the record of its trace event.
    Job(RingStep, &'a [u8]),
    /// A process created the process or thread of the first id; the second one is its thread.
    Fork(u32, u32),
    /// The process runs a new program of this name.
    Exec(&'a [u8]),
    /// The thread of the origin exits.
    Exit,
    /// The process mapped a file executable; `None`: which one is unknown, and it may be about to.
    Mapped(Option<File<'a>>),
    /// A record that is not understood.
    Unknown,
    /// A record without a meaning for tracer.
    Other,
}

/// The registers of a sample at a uprobe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Second argument of a function.
    pub si: u64,
    /// First argument of a function.
    pub di: u64,
    /// Address of the instruction.
    pub ip: u64,
}

/// The argument of an ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'a> {
    /// The command.
    pub cmd: u32,
    /// The address of the argument.
    pub address: u64,
    /// The bytes there. Those beyond the length that the command has may be anything.
    pub bytes: &'a [u8; IOCTL_ARG_LEN],
}

/// The file of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// Path, as the process sees it.
    pub path: &'a [u8],
}

/// A sample of a system call: the event's record, and the top of the thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The record of the trace event, from its first common field on.
    pub raw: &'a [u8],
    /// The stack pointer; 0 if the sample has none.
    pub stack_pointer: u64,
    /// Bytes from the stack pointer on.
    pub stack: &'a [u8],
}

impl<'a> Call<'a> {
    /// Returns `len` bytes at an address of the process, if they are in the copied part of the stack.
    pub fn memory(&self, address: u64, len: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(address.checked_sub(self.stack_pointer)?).ok()?;
        self.stack.get(start..start.checked_add(len)?)
    }
}

/// Returns 8 bytes at an offset.
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(array(bytes, at)?))
}

/// Returns 4 bytes at an offset.
pub fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(array(bytes, at)?))
}

/// Returns the bytes at an offset.
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Returns the string of variable length whose place is at an offset: where it begins in the record is in the lower half
/// (`__data_loc`).
pub fn string(raw: &[u8], at: usize) -> Option<&[u8]> {
    let place = half(raw, at)? & 0xffff;
    Some(text(raw.get(place as usize..)?))
}

/// Returns the bytes before the first 0.
pub fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
