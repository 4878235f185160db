//! Changed copies of a library.

use object::{Object, ObjectSection, ObjectSegment};
use tracer_capture::runtime::resolver::{Resolution, resolve};

/// A copy of an ELF file with replaced bytes.
pub struct Patched(pub Vec<u8>);

const SECTION_HEADER: usize = 64;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_RELR: u32 = 19;

impl Patched {
    /// Resolves the copy, which must still be an HSA runtime.
    pub fn resolve(&self) -> Resolution {
        resolve(&self.0).expect("still an HSA runtime")
    }

    /// Replaces the bytes at a file offset.
    pub fn write(mut self, offset: u64, bytes: &[u8]) -> Self {
        let start = offset as usize;
        self.0[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Returns the value that the relative relocation of the word at `vaddr` sets.
    pub fn pointer(&self, vaddr: u64) -> u64 {
        let at = self.relocation(vaddr) + 16;
        self.word(at)
    }

    /// Changes the relative relocation of the word at `vaddr` to set `target`.
    pub fn set_pointer(self, vaddr: u64, target: u64) -> Self {
        let at = self.relocation(vaddr) + 16;
        self.write(at as u64, &target.to_le_bytes())
    }

    fn relocation(&self, vaddr: u64) -> usize {
        let mut entry = vaddr.to_le_bytes().to_vec();
        entry.extend(8u64.to_le_bytes());
        self.0
            .windows(entry.len())
            .position(|window| window == entry)
            .expect("the word has a relative relocation")
    }

    /// Appends a `.symtab` with these functions.
    pub fn add_symtab(mut self, functions: &[(&str, u64)]) -> Self {
        let (mut names, mut symbols) = (vec![0u8], vec![0u8; 24]);
        for (name, vaddr) in functions {
            symbols.extend((names.len() as u32).to_le_bytes());
            symbols.extend([2, 0, 1, 0]); // local function in section 1
            symbols.extend(vaddr.to_le_bytes());
            symbols.extend(0u64.to_le_bytes());
            names.extend(name.bytes().chain([0]));
        }
        let symbols_at = self.append(&symbols);
        let names_at = self.append(&names);
        let names_index = self.section_count() as u32 + 1;
        let added = [
            section(SHT_SYMTAB, symbols_at, symbols.len(), names_index),
            section(SHT_STRTAB, names_at, names.len(), 0),
        ];
        self.add_sections(&added)
    }

    /// Renames a section; the loader does not use the names.
    pub fn rename_section(self, name: &str, new: &str) -> Self {
        assert_eq!(name.len(), new.len());
        let names = self.section(".shstrtab");
        let wanted = [name.as_bytes(), &[0]].concat();
        let found = self.0[names.clone()]
            .windows(wanted.len())
            .position(|window| window == wanted);
        let at = names.start + found.expect("there is such a section");
        self.write(at as u64, new.as_bytes())
    }

    /// Changes `.gnu_debuglink` to this name, at most as long as the present one, and this checksum.
    pub fn link_debug_file(self, name: &str, checksum: u32) -> Self {
        let section = self.section(".gnu_debuglink");
        let mut link = name.as_bytes().to_vec();
        // The checksum follows the name, at the next word.
        link.resize((name.len() + 1).next_multiple_of(4), 0);
        link.extend(checksum.to_le_bytes());
        assert!(link.len() <= section.len());
        self.write(section.start as u64, &link)
    }

    /// Turns the relative relocations into packed ones, as `-z pack-relative-relocs` does.
    pub fn pack_relocations(mut self) -> Self {
        let mut addresses = Vec::new();
        for (at, vaddr, file_offset) in self.relative_relocations() {
            let addend = self.word(at + 16);
            self = self
                .write(file_offset, &addend.to_le_bytes())
                .write(at as u64, &[0; 24]);
            addresses.push(vaddr);
        }
        addresses.sort_unstable();
        let mut packed = Vec::new();
        let mut rest = addresses.as_slice();
        while let [first, others @ ..] = rest {
            packed.extend(first.to_le_bytes());
            rest = others;
            let mut base = first + 8;
            loop {
                let covered = rest.iter().take_while(|vaddr| **vaddr < base + 63 * 8).count();
                let (now, later) = rest.split_at(covered);
                if now.is_empty() {
                    break;
                }
                let bits = now
                    .iter()
                    .fold(1u64, |bits, vaddr| bits | 1 << ((vaddr - base) / 8 + 1));
                packed.extend(bits.to_le_bytes());
                (rest, base) = (later, base + 63 * 8);
            }
        }
        let at = self.append(&packed);
        self.add_sections(&[section(SHT_RELR, at, packed.len(), 0)])
    }

    /// Returns, for each relative relocation, its file offset, the address of its word, and the file offset of its word.
    fn relative_relocations(&self) -> Vec<(usize, u64, u64)> {
        let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(self.0.as_slice()).expect("an ELF file");
        let segments: Vec<_> = file
            .segments()
            .map(|segment| (segment.address(), segment.file_range()))
            .collect();
        let entries = self.section(".rela.dyn").step_by(24);
        let relative = entries
            .filter(|at| self.word(at + 8) == 8)
            .map(|at| (at, self.word(at)));
        let located = relative.map(|(at, vaddr)| {
            let inside = |(start, (_, len)): &&(u64, (u64, u64))| (*start..start + len).contains(&vaddr);
            let (start, (offset, _)) = segments.iter().find(inside).expect("the word is in the file");
            (at, vaddr, vaddr - start + offset)
        });
        located.collect()
    }

    /// Returns the file range of a section's contents.
    pub fn section(&self, name: &str) -> std::ops::Range<usize> {
        let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(self.0.as_slice()).expect("an ELF file");
        let section = file.section_by_name(name).and_then(|section| section.file_range());
        let (start, len) = section.expect("the section has contents");
        start as usize..(start + len) as usize
    }

    fn section_count(&self) -> usize {
        usize::from(u16::from_le_bytes([self.0[0x3c], self.0[0x3d]]))
    }

    /// Appends a new table of section headers: the old ones and these.
    fn add_sections(mut self, added: &[Vec<u8>]) -> Self {
        let (count, old) = (self.section_count(), self.word(0x28) as usize);
        let headers = [&self.0[old..old + count * SECTION_HEADER], &added.concat()].concat();
        let headers_at = self.append(&headers);
        let count = (count + added.len()) as u16;
        self.write(0x28, &headers_at.to_le_bytes())
            .write(0x3c, &count.to_le_bytes())
    }

    /// Returns the word at a file offset.
    pub fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.0[offset..offset + 8].try_into().expect("eight bytes"))
    }

    fn append(&mut self, bytes: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.0.len() as u64;
        self.0.extend(bytes);
        at
    }
}

fn section(kind: u32, offset: u64, size: usize, link: u32) -> Vec<u8> {
    let mut header = vec![0; 4]; // no name
    header.extend(kind.to_le_bytes());
    header.extend([0; 16]); // flags, address
    header.extend(offset.to_le_bytes());
    header.extend((size as u64).to_le_bytes());
    header.extend(link.to_le_bytes());
    header.extend(1u32.to_le_bytes()); // first global symbol
    header.extend(8u64.to_le_bytes());
    let entry = match kind {
        SHT_SYMTAB => 24u64,
        SHT_RELR => 8,
        _ => 0,
    };
    header.extend(entry.to_le_bytes());
    header
}
