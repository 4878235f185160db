//! The library as an ELF file: segments, sections, symbols. This module does not depend on HSA.
//!
//! A file may be malicious: sections may overlap, tables may be as long as the file, and thousands of names may share one long
//! string. So every loop here has a limit of its own, far above the numbers in real files.

mod notes;
mod relocations;
mod symbols;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader, SymbolTable};
use object::{LittleEndian, SectionIndex};

use super::error::ResolveError;
use symbols::{Symbols, bounded};

pub(crate) use notes::build_id_in;
pub(super) use relocations::{MAX_RELOCATIONS, words};
pub(crate) use symbols::MAX_NAME;

const LE: LittleEndian = LittleEndian;
/// Length in bytes of an ELF word in a 64-bit file.
pub(super) const WORD: u64 = 8;

/// Linkers create 4 to 6 loadable segments.
const MAX_SEGMENTS: usize = 64;
/// Libraries have 30 to 50 sections; with one section for each function, thousands.
const MAX_SECTIONS: usize = 65_536;
/// A library has a few notes of less than 100 bytes.
const MAX_NOTES: usize = 16;

type Header = elf::FileHeader64<LittleEndian>;
type Segment = elf::ProgramHeader64<LittleEndian>;

/// A parsed ELF file. The parser locates the tables; their entries are read when they are needed.
pub(super) struct Image<'data> {
    /// The whole file.
    pub(super) bytes: &'data [u8],
    file: ElfFile64<'data, LittleEndian>,
    loads: Vec<&'data Segment>,
}

/// A section's address and contents.
#[derive(Clone, Copy)]
pub(super) struct Section<'data> {
    pub(super) vaddr: u64,
    pub(super) data: &'data [u8],
}

impl<'data> Image<'data> {
    /// Checks the identification bytes and locates the tables.
    pub(super) fn parse(bytes: &'data [u8]) -> Result<Self, ResolveError> {
        if !bytes.starts_with(&elf::ELFMAG) {
            return Err(ResolveError::NotElf);
        }
        let (class, encoding) = (bytes.get(4), bytes.get(5));
        if class != Some(&elf::ELFCLASS64) || encoding != Some(&elf::ELFDATA2LSB) {
            return Err(ResolveError::Not64BitX86);
        }
        let header = Header::parse(bytes)?;
        if header.e_machine(LE) != elf::EM_X86_64 {
            return Err(ResolveError::Not64BitX86);
        }
        let file = ElfFile64::parse(bytes)?;
        if file.elf_section_table().is_empty() {
            return Err(ResolveError::NoSections);
        }
        Ok(Self {
            bytes,
            loads: loads(&file)?,
            file,
        })
    }

    /// Returns the file offset of [`Self::code`] at `vaddr`.
    pub(super) fn code_offset(&self, vaddr: u64) -> Option<u64> {
        self.loaded(vaddr, is_code).map(|(offset, _)| offset)
    }

    /// Returns up to `len` bytes of executable code at `vaddr`, fewer at the end of its segment.
    pub(super) fn code(&self, vaddr: u64, len: u64) -> Option<&'data [u8]> {
        let (offset, available) = self.loaded(vaddr, is_code)?;
        self.slice(offset, len.min(available))
    }

    /// Returns the addresses of the executable segment that contains `vaddr`.
    pub(super) fn code_around(&self, vaddr: u64) -> Option<std::ops::Range<u64>> {
        self.loads.iter().filter(|load| is_code(load)).find_map(|load| {
            let start = load.p_vaddr(LE);
            let end = start.checked_add(load.p_memsz(LE))?;
            (start..end).contains(&vaddr).then_some(start..end)
        })
    }

    /// Returns the word that the file has for `vaddr`, before relocation.
    pub(super) fn word(&self, vaddr: u64) -> Option<u64> {
        let (offset, available) = self.loaded(vaddr, |_| true)?;
        let bytes = self.slice(offset, available.min(WORD))?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Returns the first section with this name that has contents.
    pub(super) fn section(&self, name: &[u8]) -> Option<Section<'data>> {
        let index = self.file.elf_header().shstrndx(LE, self.bytes).ok()?;
        let names = self.contents(SectionIndex(index as usize))?;
        let header = self.headers().find(|header| {
            let rest = names.get(header.sh_name(LE) as usize..);
            let rest = rest.and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        })?;
        let data = header.data(LE, self.bytes).ok()?;
        Some(Section {
            vaddr: header.sh_addr(LE),
            data,
        })
    }

    /// Returns the contents of every section of the given type.
    pub(super) fn sections_of_type(&self, kind: u32) -> impl Iterator<Item = &'data [u8]> {
        let headers = self.headers().filter(move |header| header.sh_type(LE) == kind);
        headers.filter_map(|header| header.data(LE, self.bytes).ok())
    }

    fn contents(&self, index: SectionIndex) -> Option<&'data [u8]> {
        let header = self.file.elf_section_table().section(index).ok()?;
        header.data(LE, self.bytes).ok()
    }

    fn headers(&self) -> impl Iterator<Item = &'data elf::SectionHeader64<LittleEndian>> {
        self.file.elf_section_table().iter().take(MAX_SECTIONS)
    }

    /// Returns the GNU build-id in lower-case hexadecimal.
    pub(super) fn build_id(&self) -> Option<String> {
        let segments = self.file.elf_program_headers().iter().take(MAX_SECTIONS);
        let in_segments = segments
            .filter(|segment| segment.p_type(LE) == elf::PT_NOTE)
            .filter_map(|segment| segment.data(LE, self.bytes).ok());
        let in_sections = self.sections_of_type(elf::SHT_NOTE).take(MAX_NOTES);
        in_segments.take(MAX_NOTES).chain(in_sections).find_map(build_id_in)
    }

    /// Returns `DT_SONAME`.
    pub(super) fn soname(&self) -> Option<String> {
        let table = self.file.elf_dynamic_table().ok()?;
        let entry = table.iter().find(|entry| entry.tag == elf::DT_SONAME)?;
        String::from_utf8(table.string(entry).ok()?.to_vec()).ok()
    }

    /// Returns the name and the checksum of the separate debug file from `.gnu_debuglink`: a string, padded to words, then the
    /// checksum.
    pub(super) fn debug_link(&self) -> Option<(&'data [u8], u32)> {
        let section = self.section(b".gnu_debuglink")?;
        let name = bounded(section.data, 0)?;
        let at = (name.len() + 1).next_multiple_of(4);
        let checksum = section.data.get(at..)?.first_chunk()?;
        Some((name, u32::from_le_bytes(*checksum)))
    }

    /// Returns the symbols that the library exports and imports.
    pub(super) fn dynsym(&self) -> Symbols<'data> {
        self.symbols(self.file.elf_dynamic_symbol_table())
    }

    /// Returns the symbols for debuggers; none if the library is stripped.
    pub(super) fn symtab(&self) -> Symbols<'data> {
        self.symbols(self.file.elf_symbol_table())
    }

    fn symbols(&self, table: &SymbolTable<'data, Header>) -> Symbols<'data> {
        Symbols {
            symbols: table.symbols(),
            strings: self.contents(table.string_section()).unwrap_or_default(),
        }
    }

    /// Returns the file offset of `vaddr`, and the number of bytes from there to the end of its segment.
    fn loaded(&self, vaddr: u64, wanted: impl Fn(&Segment) -> bool) -> Option<(u64, u64)> {
        self.loads.iter().filter(|load| wanted(load)).find_map(|load| {
            let into = vaddr.checked_sub(load.p_vaddr(LE))?;
            let available = load.p_filesz(LE).checked_sub(into).filter(|&left| left > 0)?;
            Some((load.p_offset(LE).checked_add(into)?, available))
        })
    }

    fn slice(&self, offset: u64, len: u64) -> Option<&'data [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = usize::try_from(offset.checked_add(len)?).ok()?;
        self.bytes.get(start..end)
    }
}

fn is_code(segment: &Segment) -> bool {
    segment.p_flags(LE) & elf::PF_X != 0
}

fn loads<'data>(file: &ElfFile64<'data, LittleEndian>) -> Result<Vec<&'data Segment>, ResolveError> {
    let segments = file.elf_program_headers().iter();
    let loads = segments.filter(|segment| segment.p_type(LE) == elf::PT_LOAD);
    let loads: Vec<_> = loads.take(MAX_SEGMENTS + 1).collect();
    if loads.len() > MAX_SEGMENTS {
        return Err(ResolveError::Malformed(format!(
            "more than {MAX_SEGMENTS} loadable segments"
        )));
    }
    Ok(loads)
}
