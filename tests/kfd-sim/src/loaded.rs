//! Names of kernels in code objects that a client has loaded.
//!
//! A loader places the whole code object in device memory, including its ELF header and dynamic symbols. The kernel's name is
//! there, wherever the code came from. HIP compiles its own kernels when it starts, so no file has them.

use object::elf;

use crate::vm::{AddressSpace, Fault};

/// Loaders align code objects to pages.
const PAGE: u64 = 4096;

/// The largest distance from a kernel's descriptor down to the start of its code object.
const REACH: u64 = 16 << 20;

/// Sizes of ELF64's file header, program headers, dynamic entries and symbols, in bytes.
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const DYNAMIC: usize = 16;
const SYMBOL: usize = 24;

/// The most program headers, dynamic entries and symbols that are examined. A code object does not have more.
const MOST_HEADERS: u64 = 64;
const MOST_DYNAMICS: u64 = 64;
const MOST_SYMBOLS: u64 = 65536;

/// The longest name.
const NAME_BYTES: usize = 512;

/// Returns the name of the kernel whose descriptor is at `kernel_object`; `None` if no code object there has such a symbol.
pub fn kernel_name(space: &AddressSpace, kernel_object: u64) -> Option<String> {
    let base = code_object(space, kernel_object)?;
    let symbols = Symbols::find(space, base).ok()??;
    symbols.kernel_at(space, kernel_object).ok()?
}

/// Returns the start of the code object around that address: the ELF header on the nearest page below, within the same buffer.
fn code_object(space: &AddressSpace, address: u64) -> Option<u64> {
    let mut page = address & !(PAGE - 1);
    let last = page.saturating_sub(REACH);
    while page > last {
        space.direct(page, FILE_HEADER as u64)?;
        let mut header = [0; FILE_HEADER];
        space.read(page, &mut header).ok()?;
        let machine = u16::from_le_bytes([header[18], header[19]]);
        if header.starts_with(&elf::ELFMAG) && machine == elf::EM_AMDGPU {
            return Some(page);
        }
        page -= PAGE;
    }
    None
}

/// The location of the dynamic symbols of a loaded code object.
struct Symbols {
    base: u64,
    table: u64,
    count: u64,
    names: u64,
}

impl Symbols {
    fn find(space: &AddressSpace, base: u64) -> Result<Option<Self>, Fault> {
        let headers = base + space.read_u64(base + 32)?;
        let count = u64::from(space.read_u32(base + 56)? & 0xffff);
        for i in 0..count.min(MOST_HEADERS) {
            let header = headers + i * PROGRAM_HEADER as u64;
            if space.read_u32(header)? == elf::PT_DYNAMIC {
                return Self::of_dynamic(space, base, base + space.read_u64(header + 16)?);
            }
        }
        Ok(None)
    }

    fn of_dynamic(space: &AddressSpace, base: u64, dynamic: u64) -> Result<Option<Self>, Fault> {
        let (mut table, mut names, mut hash) = (None, None, None);
        for i in 0..MOST_DYNAMICS {
            let entry = dynamic + i * DYNAMIC as u64;
            let (tag, value) = (space.read_u64(entry)?, base.wrapping_add(space.read_u64(entry + 8)?));
            match tag.cast_signed() {
                elf::DT_NULL => break,
                elf::DT_SYMTAB => table = Some(value),
                elf::DT_STRTAB => names = Some(value),
                elf::DT_HASH => hash = Some(value),
                _ => {}
            }
        }
        let (Some(table), Some(names), Some(hash)) = (table, names, hash) else {
            return Ok(None);
        };
        // A hash table has a chain entry for each symbol.
        let count = u64::from(space.read_u32(hash + 4)?).min(MOST_SYMBOLS);
        Ok(Some(Self {
            base,
            table,
            count,
            names,
        }))
    }

    fn kernel_at(&self, space: &AddressSpace, kernel_object: u64) -> Result<Option<String>, Fault> {
        for i in 0..self.count {
            let symbol = self.table + i * SYMBOL as u64;
            if self.base.wrapping_add(space.read_u64(symbol + 8)?) != kernel_object {
                continue;
            }
            let name = text(space, self.names + u64::from(space.read_u32(symbol)?))?;
            if let Some(name) = name.strip_suffix(".kd") {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}

/// Returns the C string at that address, truncated if it is too long.
fn text(space: &AddressSpace, address: u64) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    while bytes.len() < NAME_BYTES {
        let mut byte = [0];
        space.read(address + bytes.len() as u64, &mut byte)?;
        if byte == [0] {
            break;
        }
        bytes.extend(byte);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SharedFile;

    /// Returns a code object with one segment, one symbol `fill.kd` at 0x1040, and 8 KiB.
    fn object() -> Vec<u8> {
        let mut bytes = vec![0u8; 8192];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &elf::ELFMAG);
        put(18, &elf::EM_AMDGPU.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(64, &elf::PT_DYNAMIC.to_le_bytes());
        put(64 + 16, &0x200u64.to_le_bytes());
        let entries = [
            (elf::DT_SYMTAB, 0x300u64),
            (elf::DT_STRTAB, 0x400),
            (elf::DT_HASH, 0x500),
        ];
        for (i, (tag, value)) in entries.into_iter().enumerate() {
            put(0x200 + 16 * i, &tag.to_le_bytes());
            put(0x208 + 16 * i, &value.to_le_bytes());
        }
        put(0x504, &2u32.to_le_bytes());
        put(0x300 + SYMBOL, &1u32.to_le_bytes());
        put(0x300 + SYMBOL + 8, &0x1040u64.to_le_bytes());
        put(0x401, b"fill.kd");
        bytes
    }

    fn loaded(bytes: &[u8]) -> AddressSpace {
        let file = Arc::new(SharedFile::new("test", 1 << 20).unwrap());
        let space = AddressSpace::new(std::process::id() as i32, file);
        space.insert(0x10_0000, bytes.len() as u64, 0);
        space.write(0x10_0000, bytes).unwrap();
        space
    }

    #[test]
    fn a_kernel_is_named_by_its_descriptor() {
        let space = loaded(&object());
        assert_eq!(kernel_name(&space, 0x10_1040).as_deref(), Some("fill"));
        assert_eq!(kernel_name(&space, 0x10_1080), None);
        assert_eq!(kernel_name(&space, 0x20_0000), None);
    }

    #[test]
    fn damaged_objects_have_no_names() {
        for at in [32, 64 + 16, 0x208, 0x218, 0x228] {
            let mut bytes = object();
            bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes()[..8]);
            bytes[at + 7] = 0x0f;
            assert_eq!(kernel_name(&loaded(&bytes), 0x10_1040), None, "{at:#x}");
        }
    }
}
