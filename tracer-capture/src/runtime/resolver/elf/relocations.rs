//! The words that the dynamic linker writes into a library, according to the library's file.

use object::elf;

use super::{Image, WORD};

/// A hundred times as many as in any build: a malicious file with overlapping sections must not keep tracer busy for hours.
pub(in crate::runtime::resolver) const MAX_RELOCATIONS: usize = 2_000_000;

/// A relocation with an addend.
pub(in crate::runtime::resolver) struct Relocation {
    /// Address of the word.
    pub(in crate::runtime::resolver) vaddr: u64,
    pub(in crate::runtime::resolver) kind: u32,
    /// Index of the symbol in `.dynsym`.
    pub(in crate::runtime::resolver) symbol: usize,
    pub(in crate::runtime::resolver) addend: u64,
}

impl Image<'_> {
    /// Returns the address of a variable that `.dynsym` defines, and the words that the dynamic linker fills with that address.
    pub(in crate::runtime::resolver) fn exported_object(&self, name: &str) -> Option<(u64, Vec<u64>)> {
        let (index, vaddr) = self.dynsym().object(name)?;
        let slots = self.relocations().filter(|relocation| {
            let fills = matches!(relocation.kind, elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64);
            fills && relocation.symbol == index
        });
        Some((vaddr, slots.map(|relocation| relocation.vaddr).collect()))
    }

    /// Returns the address that the dynamic linker writes to `vaddr`, before it adds the load bias.
    pub(in crate::runtime::resolver) fn relative_relocation(&self, vaddr: u64) -> Option<u64> {
        let mut relocations = self.relocations();
        let found = relocations.find(|found| found.vaddr == vaddr && found.kind == elf::R_X86_64_RELATIVE);
        // Packed relocations (`SHT_RELR`) have the address in the word itself.
        let in_word = || self.word(vaddr).filter(|&word| word != 0);
        found.map(|found| found.addend).or_else(in_word)
    }

    /// Returns the relocations with addends.
    pub(in crate::runtime::resolver) fn relocations(&self) -> impl Iterator<Item = Relocation> {
        let entries = self.sections_of_type(elf::SHT_RELA).flat_map(words::<3>);
        entries.take(MAX_RELOCATIONS).map(|[vaddr, info, addend]| Relocation {
            vaddr,
            kind: info as u32,
            symbol: (info >> 32) as usize,
            addend,
        })
    }
}

/// Returns the data as records of `N` words.
pub(in crate::runtime::resolver) fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u64; N]> {
    let (words, _) = data.as_chunks::<{ WORD as usize }>();
    let (records, _) = words.as_chunks::<N>();
    records.iter().map(|record| record.map(u64::from_le_bytes))
}
