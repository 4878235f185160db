//! Kernels recognised by their machine code. No instruction is executed; a host function replaces the kernel.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Sym};

use crate::blit::CODE_HEADER_BYTES;
use crate::effects::Effect;
use crate::vm::{AddressSpace, Fault};

/// Size of a kernel descriptor in bytes.
const DESCRIPTOR_BYTES: usize = 64;

/// The offset of the (signed) distance from the descriptor to the code.
const ENTRY_OFFSET: usize = 16;

/// The number of first bytes by which code is looked up. A kernel is never shorter (an instruction cache line).
const PREFIX: usize = 16;

/// A kernel with an effect.
#[derive(Debug)]
struct Known {
    code: Vec<u8>,
    effect: Effect,
}

/// The kernels that are known by their code.
#[derive(Debug, Default)]
pub struct Kernels {
    by_prefix: HashMap<[u8; PREFIX], Vec<Known>>,
}

/// The result of recognising a kernel object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// A kernel with an effect.
    Known(Effect),
    /// A kernel with unknown code, at the place where ROCr puts the code of its own kernels.
    PerhapsBlit,
    /// A kernel with unknown code.
    Unknown,
}

impl Kernels {
    /// Reads all code objects (`*.co`, `*.elf`) of a folder.
    pub fn add_folder(&mut self, folder: &Path) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("read the kernel folder {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "co" || extension == "elf")
            {
                let data = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
                self.add_object(&data)
                    .with_context(|| format!("the code object {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Reads one code object.
    pub fn add_object(&mut self, data: &[u8]) -> Result<()> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        ensure!(header.e_machine(endian) == elf::EM_AMDGPU, "not an AMD GPU code object");
        let sections = header.sections(endian, data)?;
        for table in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            let symbols = sections.symbols(endian, data, table)?;
            let named: HashMap<&[u8], _> = symbols
                .iter()
                .filter_map(|symbol| Some((symbols.symbol_name(endian, symbol).ok()?, symbol)))
                .collect();
            for (name, symbol) in &named {
                let descriptor = [name, &b".kd"[..]].concat();
                if symbol.st_type() == elf::STT_FUNC && named.contains_key(descriptor.as_slice()) {
                    let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
                    let code = header
                        .program_headers(endian, data)?
                        .iter()
                        .find_map(|segment| segment.data_range(endian, data, address, size).ok().flatten())
                        .with_context(|| format!("no code for {}", String::from_utf8_lossy(name)))?;
                    self.add(&String::from_utf8_lossy(name), code);
                }
            }
        }
        Ok(())
    }

    /// Adds one kernel. A kernel whose name has no effect stays unknown.
    pub fn add(&mut self, name: &str, code: &[u8]) {
        let Some(effect) = Effect::by_name(name) else { return };
        let Some(&prefix) = code.first_chunk::<PREFIX>() else {
            return;
        };
        let same = self.by_prefix.entry(prefix).or_default();
        if !same.iter().any(|known| known.code == code) {
            log::debug!("kernel {name}: {} bytes of code", code.len());
            same.push(Known {
                code: code.to_vec(),
                effect,
            });
        }
    }

    /// Returns the number of different known codes.
    pub fn len(&self) -> usize {
        self.by_prefix.values().map(Vec::len).sum()
    }

    /// Recognises the kernel whose descriptor is at `kernel_object`. Nothing is cached: a client may load another code object at
    /// the same address, and the comparison costs less than the rest of a dispatch.
    pub fn recognise(&self, space: &AddressSpace, kernel_object: u64) -> Result<Recognised, Fault> {
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        space.read(kernel_object, &mut descriptor)?;
        let offset = i64::from_le_bytes(std::array::from_fn(|i| descriptor[ENTRY_OFFSET + i]));
        let entry = kernel_object.wrapping_add_signed(offset);
        let mut prefix = [0; PREFIX];
        space.read(entry, &mut prefix)?;
        let mut code = Vec::new();
        for known in self.by_prefix.get(&prefix).into_iter().flatten() {
            code.resize(known.code.len(), 0);
            // Code that is shorter than this candidate may be at the end of its memory.
            if space.read(entry, &mut code).is_ok() && code == known.code {
                return Ok(Recognised::Known(known.effect));
            }
        }
        Ok(if offset == CODE_HEADER_BYTES {
            Recognised::PerhapsBlit
        } else {
            Recognised::Unknown
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SharedFile;

    #[test]
    fn recognised_by_code_not_by_address() {
        let space = AddressSpace::new(
            std::process::id() as i32,
            Arc::new(SharedFile::new("test", 1 << 20).unwrap()),
        );
        let mut kernels = Kernels::default();
        let mut object = [0u8; 256];
        object[ENTRY_OFFSET..ENTRY_OFFSET + 8].copy_from_slice(&128i64.to_le_bytes());
        object[128..192].copy_from_slice(&[7; 64]);
        kernels.add("fill", &object[128..192]);
        kernels.add("no_such_effect", &[9; 64]);
        assert_eq!(kernels.len(), 1);
        let address = object.as_ptr() as u64;
        assert_eq!(kernels.recognise(&space, address), Ok(Recognised::Known(Effect::Fill)));
        object[190] = 8;
        assert_eq!(
            kernels.recognise(&space, object.as_ptr() as u64),
            Ok(Recognised::Unknown)
        );
        assert_eq!(kernels.recognise(&space, 64), Err(Fault(64)));
    }

    #[test]
    fn garbage_is_no_code_object() {
        assert!(Kernels::default().add_object(b"\x7fELF").is_err());
        assert!(Kernels::default().add_object(&[]).is_err());
    }
}
