//! Where a C library calls the kernel for an ioctl.
//!
//! `ioctl(fd, request, argument)` keeps its arguments in the registers in which the kernel takes them. So at the function's entry,
//! and at the instruction after its `syscall`, the third register has the address of the argument.

use iced_x86::{InstructionInfoFactory, Mnemonic};
use serde::{Deserialize, Serialize};

use super::{
    Argument, ProbePoint, ResolveError,
    code::Body,
    elf::Image,
    operands::written,
    site::{InstructionKind, probe_point},
};

/// The registers that the probes read.
const KEEP: [Argument; 3] = [Argument::Rdi, Argument::Rsi, Argument::Rdx];
/// Bytes from the entry to the call of the kernel: the functions measured (glibc 2.36 to 2.43) have at most 63.
const LENGTH: u64 = 256;

/// The places of probes in the function `ioctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoctlCall {
    /// Before the kernel is entered.
    pub entry: ProbePoint,
    /// After it has returned.
    pub exit: ProbePoint,
}

/// Finds the call in a C library; `None` if it exports no such function, or one that is not understood. `elf` is the contents of the
/// whole file.
///
/// # Errors
/// If the file is not an x86-64 ELF file, or so damaged that its tables cannot be read.
pub fn ioctl_call(elf: &[u8]) -> Result<Option<IoctlCall>, ResolveError> {
    let image = Image::parse(elf)?;
    let found = image.dynsym().functions().find(|(name, _)| *name == "ioctl");
    Ok(found.and_then(|(_, vaddr)| call_at(&image, vaddr)))
}

fn call_at(image: &Image<'_>, function: u64) -> Option<IoctlCall> {
    let body = Body::decode(function, image.code(function, LENGTH)?);
    let after = after_syscall(&body)?;
    let exit = body.instructions.get(after)?;
    // A function may begin with a call of the kernel only if nothing jumps there again.
    let into = exit.ip().checked_sub(function)?;
    Some(IoctlCall {
        entry: probe_point(image, &body, &KEEP, &[])?,
        exit: ProbePoint {
            function,
            vaddr: exit.ip(),
            file_offset: image.code_offset(function)?.checked_add(into)?,
            instruction: InstructionKind::of(exit),
        },
    })
}

/// Returns the index of the instruction after the call of the kernel, to which the function comes on a straight way with its
/// arguments in their registers.
fn after_syscall(body: &Body) -> Option<usize> {
    let mut info = InstructionInfoFactory::new();
    for (index, instruction) in body.instructions.iter().enumerate() {
        if instruction.mnemonic() == Mnemonic::Syscall {
            return Some(index + 1);
        }
        let mut written = written(instruction, &mut info);
        let overwrites = written.any(|register| KEEP.iter().any(|argument| argument.register() == register));
        if overwrites || super::code::Step::of(instruction) != super::code::Step::Next {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(code: &[u8]) -> Option<u64> {
        let body = Body::decode(0x1000, code);
        let index = after_syscall(&body)?;
        Some(body.instructions.get(index)?.ip())
    }

    #[test]
    fn the_arguments_must_reach_the_kernel() {
        // mov eax, 16; syscall; mov edx, eax; ret
        let plain = [0xb8, 16, 0, 0, 0, 0x0f, 0x05, 0x89, 0xc2, 0xc3];
        assert_eq!(after(&plain), Some(0x1007));
        // mov rdx, [rsp]; syscall: another argument
        assert_eq!(after(&[0x48, 0x8b, 0x14, 0x24, 0x0f, 0x05, 0xc3]), None);
        // jz +0; syscall: not on each way. ret: there is none.
        assert_eq!(after(&[0x74, 0, 0x0f, 0x05, 0xc3]), None);
        assert_eq!(after(&[0xc3, 0x0f, 0x05, 0xc3]), None);
    }

    /// The C library of this program.
    #[test]
    fn this_machines_library_is_understood() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps
            .lines()
            .find_map(|line| Some(&line[line.find("/")?..]).filter(|path| path.contains("libc.so")));
        let Some(path) = path else {
            println!("not checked: this program has no C library of its own file");
            return;
        };
        let call = ioctl_call(&std::fs::read(path).unwrap()).unwrap().unwrap();
        assert!(call.entry.file_offset < call.exit.file_offset);
        assert_eq!(ioctl_call(b"no library"), Err(ResolveError::NotElf));
    }
}
