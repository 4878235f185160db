//! The library as a file: segments, sections, symbols. Nothing here knows about HSA.

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader, Sym, SymbolTable, VersionTable};
use object::{LittleEndian, Object};

use super::error::ResolveError;

const LE: LittleEndian = LittleEndian;
/// ELF words of a 64-bit file are this long.
pub(super) const WORD: u64 = 8;

type Header = elf::FileHeader64<LittleEndian>;
type Symbols<'data> = SymbolTable<'data, Header>;

/// A parsed ELF file. Tables are found when it is made, their entries are read when asked for.
pub(super) struct Image<'data> {
    bytes: &'data [u8],
    file: ElfFile64<'data, LittleEndian>,
}

/// A section's address and contents.
#[derive(Clone, Copy)]
pub(super) struct Section<'data> {
    pub(super) vaddr: u64,
    pub(super) data: &'data [u8],
}

/// A named, defined function.
pub(super) struct FunctionSymbol<'data> {
    pub(super) name: &'data str,
    pub(super) vaddr: u64,
}

impl<'data> Image<'data> {
    /// Checks the identification bytes and finds the tables.
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
        Ok(Self {
            bytes,
            file: ElfFile64::parse(bytes)?,
        })
    }

    /// Where `vaddr` lies in the file, by the loadable segments.
    pub(super) fn file_offset(&self, vaddr: u64) -> Option<u64> {
        self.loaded(vaddr, |_| true).map(|(offset, _)| offset)
    }

    /// Up to `len` bytes of executable code at `vaddr`, fewer at the end of its segment.
    pub(super) fn code(&self, vaddr: u64, len: u64) -> Option<&'data [u8]> {
        let (offset, available) = self.loaded(vaddr, |flags| flags & elf::PF_X != 0)?;
        self.slice(offset, len.min(available))
    }

    /// The word that the file holds for `vaddr`, before relocation.
    pub(super) fn word(&self, vaddr: u64) -> Option<u64> {
        let (offset, available) = self.loaded(vaddr, |_| true)?;
        let bytes = self.slice(offset, available.min(WORD))?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The first section called `name` that has contents.
    pub(super) fn section(&self, name: &[u8]) -> Option<Section<'data>> {
        let (_, header) = self.file.elf_section_table().section_by_name(LE, name)?;
        let data = header.data(LE, self.bytes).ok()?;
        Some(Section {
            vaddr: header.sh_addr(LE),
            data,
        })
    }

    /// The contents of every section of the given type.
    pub(super) fn sections_of_type(&self, kind: u32) -> impl Iterator<Item = &'data [u8]> {
        let headers = self
            .file
            .elf_section_table()
            .iter()
            .filter(move |header| header.sh_type(LE) == kind);
        headers.filter_map(|header| header.data(LE, self.bytes).ok())
    }

    /// GNU build-id in lower-case hexadecimal.
    pub(super) fn build_id(&self) -> Option<String> {
        let id = self.file.build_id().ok()??;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `DT_SONAME`.
    pub(super) fn soname(&self) -> Option<String> {
        let table = self.file.elf_dynamic_table().ok()?;
        let entry = table.iter().find(|entry| entry.tag == elf::DT_SONAME)?;
        String::from_utf8(table.string(entry).ok()?.to_vec()).ok()
    }

    /// Functions that `.dynsym` defines.
    pub(super) fn exported_functions(&self) -> impl Iterator<Item = FunctionSymbol<'data>> {
        defined_functions(self.file.elf_dynamic_symbol_table())
    }

    /// Functions that `.symtab` defines; none when it was stripped.
    pub(super) fn symtab_functions(&self) -> impl Iterator<Item = FunctionSymbol<'data>> {
        defined_functions(self.file.elf_symbol_table())
    }

    /// The dynamic symbol that a relocation names: its value, and its name when it is undefined.
    pub(super) fn dynamic_symbol(&self, index: usize) -> Option<(u64, Option<&'data [u8]>)> {
        let symbols = self.file.elf_dynamic_symbol_table();
        let symbol = symbols.symbols().get(index)?;
        let undefined = symbol
            .is_undefined(LE)
            .then(|| symbols.symbol_name(LE, symbol).ok())
            .flatten();
        Some((symbol.st_value(LE), undefined))
    }

    /// Whether `.dynsym` defines `name`: by the GNU hash table (a few pages of the file) when there is one.
    pub(super) fn exports(&self, name: &str) -> bool {
        match self.hash_lookup(name.as_bytes()) {
            Some(found) => found,
            None => self.exported_functions().any(|symbol| symbol.name == name),
        }
    }

    /// `None` when the hash table is absent or unusable.
    fn hash_lookup(&self, name: &[u8]) -> Option<bool> {
        let sections = self.file.elf_section_table();
        let header = sections.gnu_hash_header(LE, self.bytes).ok()??;
        // The table's reader takes these for granted: an empty table would divide by zero.
        let usable = header.bucket_count.get(LE) > 0
            && header.bloom_count.get(LE).is_power_of_two()
            && header.bloom_shift.get(LE) < u32::BITS;
        if !usable {
            return None;
        }
        let (table, _) = sections.gnu_hash(LE, self.bytes).ok()??;
        let symbols = self.file.elf_dynamic_symbol_table();
        let found = table.find(LE, name, elf::gnu_hash(name), None, symbols, &VersionTable::default());
        Some(found.is_some_and(|(_, symbol)| !symbol.is_undefined(LE)))
    }

    /// File offset of `vaddr` and how many bytes its segment still has there.
    fn loaded(&self, vaddr: u64, wanted: impl Fn(u32) -> bool) -> Option<(u64, u64)> {
        self.file.elf_program_headers().iter().find_map(|segment| {
            let into = vaddr.checked_sub(segment.p_vaddr(LE))?;
            let available = segment.p_filesz(LE).checked_sub(into).filter(|&left| left > 0)?;
            let fits = segment.p_type(LE) == elf::PT_LOAD && wanted(segment.p_flags(LE));
            fits.then(|| segment.p_offset(LE).checked_add(into))
                .flatten()
                .map(|offset| (offset, available))
        })
    }

    fn slice(&self, offset: u64, len: u64) -> Option<&'data [u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = usize::try_from(offset.checked_add(len)?).ok()?;
        self.bytes.get(start..end)
    }
}

fn defined_functions<'data>(symbols: &Symbols<'data>) -> impl Iterator<Item = FunctionSymbol<'data>> {
    let strings = symbols.strings();
    symbols.iter().filter_map(move |symbol| {
        let function = symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(LE);
        let name = function.then(|| symbol.name(LE, strings).ok()).flatten()?;
        Some(FunctionSymbol {
            name: str::from_utf8(name).ok()?,
            vaddr: symbol.st_value(LE),
        })
    })
}
