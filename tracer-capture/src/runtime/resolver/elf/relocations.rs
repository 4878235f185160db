//! The words that the dynamic linker writes into a library, according to the library's file.

use object::LittleEndian;
use object::elf::{self, Rela64};
use object::pod::slice_from_bytes;

use super::symbols::Symbols;
use super::{Image, LE};

/// A hundred times as many as in any build.
const MAX_RELOCATIONS: usize = 2_000_000;

impl<'data> Image<'data> {
    /// Returns the address of a variable that `.dynsym` defines, and the words that the dynamic linker fills with that address.
    pub(in crate::runtime::resolver) fn exported_object(&self, name: &str) -> Option<(u64, Vec<u64>)> {
        let symbols = Symbols::of(self.file.elf_dynamic_symbol_table(), &self.file, self.bytes);
        let (index, vaddr) = symbols.object(name)?;
        let slots = self.relocations().filter(|relocation| {
            let fills = matches!(relocation.r_type(LE, false), elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64);
            fills && relocation.r_sym(LE, false) as usize == index
        });
        Some((vaddr, slots.map(|relocation| relocation.r_offset.get(LE)).collect()))
    }

    /// Returns the address that the dynamic linker writes to `vaddr`, before it adds the load bias.
    pub(in crate::runtime::resolver) fn relative_relocation(&self, vaddr: u64) -> Option<u64> {
        let mut relocations = self.relocations();
        let found = relocations.find(|relocation| {
            relocation.r_offset.get(LE) == vaddr && relocation.r_type(LE, false) == elf::R_X86_64_RELATIVE
        });
        match found {
            Some(found) => Some(found.r_addend.get(LE).cast_unsigned()),
            // Packed relocations (`SHT_RELR`) have the address in the word itself.
            None => self.word(vaddr).filter(|&word| word != 0),
        }
    }

    /// Returns the relocations with addends.
    fn relocations(&self) -> impl Iterator<Item = &'data Rela64<LittleEndian>> {
        let tables = self.sections_of_type(elf::SHT_RELA).flat_map(|data| {
            let count = data.len() / size_of::<Rela64<LittleEndian>>();
            slice_from_bytes(data, count).map_or(&[][..], |(entries, _)| entries)
        });
        tables.take(MAX_RELOCATIONS)
    }
}
