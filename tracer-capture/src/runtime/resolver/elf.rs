//! The library as an ELF file: segments, sections, symbols. This module does not depend on HSA.
//!
//! A file may be malicious: sections may overlap, tables may be as long as the file, and thousands of names may share one long
//! string. So every loop here has a limit of its own, far above the numbers in real files.

mod notes;
mod relocations;
mod symbols;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, SectionIndex};

use super::error::ResolveError;
use symbols::{Symbols, bounded};

pub(crate) use notes::build_id_in;
pub(super) use symbols::FunctionSymbol;
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

/// A parsed ELF file. The parser locates the tables; their entries are read when they are needed.
pub(super) struct Image<'data> {
    bytes: &'data [u8],
    file: ElfFile64<'data, LittleEndian>,
    loads: Vec<Load>,
    section_names: &'data [u8],
}

/// A loadable segment.
struct Load {
    vaddr: u64,
    offset: u64,
    size: u64,
    executable: bool,
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
            section_names: section_names(&file, bytes).unwrap_or_default(),
            file,
        })
    }

    /// Returns the size of the whole file.
    pub(super) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the file offset of [`Self::code`] at `vaddr`.
    pub(super) fn code_offset(&self, vaddr: u64) -> Option<u64> {
        self.loaded(vaddr, |load| load.executable).map(|(offset, _)| offset)
    }

    /// Returns up to `len` bytes of executable code at `vaddr`, fewer at the end of its segment.
    pub(super) fn code(&self, vaddr: u64, len: u64) -> Option<&'data [u8]> {
        let (offset, available) = self.loaded(vaddr, |load| load.executable)?;
        self.slice(offset, len.min(available))
    }

    /// Returns the addresses of the executable segment that contains `vaddr`.
    pub(super) fn code_around(&self, vaddr: u64) -> Option<std::ops::Range<u64>> {
        self.file.elf_program_headers().iter().find_map(|segment| {
            let start = segment.p_vaddr(LE);
            let end = start.checked_add(segment.p_memsz(LE))?;
            let is_code = segment.p_type(LE) == elf::PT_LOAD && segment.p_flags(LE) & elf::PF_X != 0;
            (is_code && (start..end).contains(&vaddr)).then_some(start..end)
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
        let header = self.headers().find(|header| {
            let at = header.sh_name(LE) as usize;
            let rest = self.section_names.get(at..).and_then(|rest| rest.strip_prefix(name));
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

    fn headers(&self) -> impl Iterator<Item = &'data elf::SectionHeader64<LittleEndian>> {
        self.file.elf_section_table().iter().take(MAX_SECTIONS)
    }

    /// Returns the GNU build-id in lower-case hexadecimal.
    pub(super) fn build_id(&self) -> Option<String> {
        let segments = self.file.elf_program_headers().iter().take(MAX_SECTIONS);
        let in_segments = segments
            .filter(|segment| segment.p_type(LE) == elf::PT_NOTE)
            .filter_map(|segment| segment.data(LE, self.bytes).ok());
        let notes = in_segments.take(MAX_NOTES);
        let notes = notes.chain(self.sections_of_type(elf::SHT_NOTE).take(MAX_NOTES));
        notes.filter_map(build_id_in).next()
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

    /// Returns the functions that `.dynsym` defines.
    pub(super) fn exported_functions(&self) -> impl Iterator<Item = FunctionSymbol<'data>> {
        Symbols::of(self.file.elf_dynamic_symbol_table(), &self.file, self.bytes).functions()
    }

    /// Returns the functions that `.symtab` defines; none if the library is stripped.
    pub(super) fn symtab_functions(&self) -> impl Iterator<Item = FunctionSymbol<'data>> {
        Symbols::of(self.file.elf_symbol_table(), &self.file, self.bytes).functions()
    }

    /// Returns the value of a dynamic symbol that a relocation names, and the symbol's name if it is undefined.
    pub(super) fn dynamic_symbol(&self, index: usize) -> Option<(u64, Option<&'data [u8]>)> {
        Symbols::of(self.file.elf_dynamic_symbol_table(), &self.file, self.bytes).value_and_undefined_name(index)
    }

    /// Returns whether `.dynsym` defines a function called `name`.
    pub(super) fn exports(&self, name: &str) -> bool {
        self.exported_functions().any(|symbol| symbol.name == name)
    }

    /// Returns the file offset of `vaddr`, and the number of bytes from there to the end of its segment.
    fn loaded(&self, vaddr: u64, wanted: impl Fn(&Load) -> bool) -> Option<(u64, u64)> {
        self.loads.iter().filter(|load| wanted(load)).find_map(|load| {
            let into = vaddr.checked_sub(load.vaddr)?;
            let available = load.size.checked_sub(into).filter(|&left| left > 0)?;
            Some((load.offset.checked_add(into)?, available))
        })
    }

    fn slice(&self, offset: u64, len: u64) -> Option<&'data [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = usize::try_from(offset.checked_add(len)?).ok()?;
        self.bytes.get(start..end)
    }
}

fn loads(file: &ElfFile64<'_, LittleEndian>) -> Result<Vec<Load>, ResolveError> {
    let segments = file.elf_program_headers().iter();
    let loads: Vec<Load> = segments
        .filter(|segment| segment.p_type(LE) == elf::PT_LOAD)
        .map(|segment| Load {
            vaddr: segment.p_vaddr(LE),
            offset: segment.p_offset(LE),
            size: segment.p_filesz(LE),
            executable: segment.p_flags(LE) & elf::PF_X != 0,
        })
        .take(MAX_SEGMENTS + 1)
        .collect();
    if loads.len() > MAX_SEGMENTS {
        return Err(ResolveError::Malformed(format!(
            "more than {MAX_SEGMENTS} loadable segments"
        )));
    }
    Ok(loads)
}

fn section_names<'data>(file: &ElfFile64<'data, LittleEndian>, bytes: &'data [u8]) -> Option<&'data [u8]> {
    let index = file.elf_header().shstrndx(LE, bytes).ok()?;
    let header = file.elf_section_table().section(SectionIndex(index as usize)).ok()?;
    header.data(LE, bytes).ok()
}
