//! Member offsets of kernel structures and values of kernel enumerations, read from BTF: `/sys/kernel/btf/vmlinux` and the split
//! BTF of modules.
//!
//! Layout: Documentation/bpf/btf.rst. The reader supports only structures, unions, the types that lead from a member to its
//! structure, and enumerations of 32 bits.

mod functions;

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    ops::Range,
    path::Path,
    sync::Arc,
};

use aya_obj::btf::BtfKind;

/// Magic number of the header.
const MAGIC: u32 = 0xeb9f;
/// Length of the header's fixed part in bytes.
const HEADER: usize = 24;

/// The types of the kernel, and of at most one module.
pub struct Btf {
    /// The kernel's section comes first.
    sections: Vec<Arc<Section>>,
}

/// One BTF blob, of the kernel or of a module. A module's type ids and string offsets continue after the kernel's.
struct Section {
    bytes: Vec<u8>,
    /// Offset of each type in `bytes`. The first type has id `first_id`.
    types: Vec<usize>,
    first_id: u32,
    /// Place of the strings in `bytes`.
    strings: Range<usize>,
    first_string: u32,
    /// The structures, unions and enumerations that have names: the hash of the name, and the type, sorted. A kernel has some ten
    /// thousand of them, of which a few are looked up.
    named: Vec<(u64, u32)>,
    hasher: RandomState,
}

impl Btf {
    /// Reads the running kernel's types, and those of the first of `modules` that has any. Returns `None` if the kernel has no BTF.
    /// Call it once: a kernel has some hundred thousand types.
    #[must_use]
    pub fn of_kernel(modules: &[&str]) -> Option<Self> {
        Self::read(Path::new("/sys/kernel/btf"), modules)
    }

    /// As [`Self::of_kernel`], from another folder. Returns `None` if a file cannot be read, or is not BTF.
    fn read(folder: &Path, modules: &[&str]) -> Option<Self> {
        let kernel = Self::parse(fs::read(folder.join("vmlinux")).ok()?)?;
        match modules.iter().find_map(|module| fs::read(folder.join(module)).ok()) {
            Some(bytes) => kernel.with(bytes),
            None => Some(kernel),
        }
    }

    /// Returns the running kernel's types with those of another module; `None` if the module is not loaded, or has no BTF.
    #[must_use]
    pub fn with_module(&self, module: &str) -> Option<Self> {
        self.with(fs::read(Path::new("/sys/kernel/btf").join(module)).ok()?)
    }

    /// Returns the types of a kernel without modules.
    fn parse(kernel: Vec<u8>) -> Option<Self> {
        let kernel = Section::parse(kernel, None)?;
        Some(Self {
            sections: vec![Arc::new(kernel)],
        })
    }

    /// Returns the kernel's types with those of this module.
    fn with(&self, module: Vec<u8>) -> Option<Self> {
        let base = self.sections.first()?;
        let module = Section::parse(module, Some(base))?;
        Some(Self {
            sections: vec![Arc::clone(base), Arc::new(module)],
        })
    }

    /// Returns the types in the `.BTF` sections of a kernel's and a module's files.
    #[cfg(test)]
    pub(crate) fn of_files(kernel: &Path, module: &Path) -> Option<Self> {
        use object::{Object, ObjectSection};
        let section = |path: &Path| {
            let bytes = fs::read(path).ok()?;
            let file = object::File::parse(bytes.as_slice()).ok()?;
            file.section_by_name(".BTF")?.data().ok().map(<[u8]>::to_vec)
        };
        Self::parse(section(kernel)?)?.with(section(module)?)
    }

    /// Returns the offset in bytes of a member in structure `name`. `path` leads to the member through nested structures:
    /// `["finished", "context"]`. Returns `None` if the kernel has no such member, or has it only as a bit field.
    #[must_use]
    pub fn offset(&self, name: &str, path: &[&str]) -> Option<u32> {
        // Several structures may share a name. A structure that is only declared has no members.
        self.named(name).find_map(|id| self.offset_in(id, path))
    }

    /// Returns the value of a member of enumeration `name`; `None` if the kernel has no such member.
    #[must_use]
    pub fn enumerator(&self, name: &str, member: &str) -> Option<u32> {
        self.named(name).find_map(|id| self.value_in(id, member))
    }

    /// Returns the structures, unions and enumerations of this name. Those of the module come first.
    fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        let sections = self.sections.iter().rev();
        let ids = sections.flat_map(move |section| {
            let hash = section.hasher.hash_one(name.as_bytes());
            let first = section.named.partition_point(|&(of, _)| of < hash);
            let same = section.named.iter().skip(first).take_while(move |&&(of, _)| of == hash);
            same.map(|&(_, id)| id)
        });
        ids.filter(move |&id| self.name(id) == Some(name.as_bytes()))
    }

    fn value_in(&self, id: u32, member: &str) -> Option<u32> {
        let (section, at) = self.find(id)?;
        let (BtfKind::Enum, count, _) = section.info(at)? else {
            return None;
        };
        let mut members = (0..count).map(|i| at + 12 + i * 8);
        let is_sought = |&at: &usize| section.word(at).and_then(|name| self.string(name)) == Some(member.as_bytes());
        section.word(members.find(is_sought)? + 4)
    }

    fn offset_in(&self, id: u32, path: &[&str]) -> Option<u32> {
        let (first, rest) = path.split_first()?;
        let (bits, member) = self.member(id, first, 0)?;
        let bytes = (bits % 8 == 0).then_some(bits / 8)?;
        if rest.is_empty() {
            Some(bytes)
        } else {
            bytes.checked_add(self.offset_in(member, rest)?)
        }
    }

    /// Returns a member's bit offset and type. Searches anonymous structures and unions, too.
    fn member(&self, id: u32, name: &str, depth: u32) -> Option<(u32, u32)> {
        // No real structure is nested deeper; a malformed one may contain itself.
        if depth > 16 {
            return None;
        }
        let (section, at) = self.structure(id)?;
        let (_, count, bit_fields) = section.info(at)?;
        for i in 0..count {
            let [name_at, of, offset] = section.words(at + 12 + i * 12)?;
            // In a structure with bit fields, the upper 8 bits are the bit field's size.
            let bit_field = offset & if bit_fields { 0xff00_0000 } else { 0 };
            let offset = offset - bit_field;
            let own = self.string(name_at)?;
            if own.is_empty() {
                if let Some((inner, of)) = self.member(of, name, depth + 1) {
                    return Some((offset.checked_add(inner)?, of));
                }
            } else if own == name.as_bytes() {
                return (bit_field == 0).then_some((offset, of));
            }
        }
        None
    }

    /// Returns the structure or union of type `id`, after it follows typedefs and qualifiers.
    fn structure(&self, id: u32) -> Option<(&Section, usize)> {
        let (section, at) = self.bare(id)?;
        let (BtfKind::Struct | BtfKind::Union, ..) = section.info(at)? else {
            return None;
        };
        Some((section, at))
    }

    /// Returns the type that `id` stands for, after it follows typedefs and qualifiers.
    fn bare(&self, mut id: u32) -> Option<(&Section, usize)> {
        for _ in 0..16 {
            let (section, at) = self.find(id)?;
            match section.info(at)?.0 {
                BtfKind::Typedef | BtfKind::Volatile | BtfKind::Const | BtfKind::Restrict | BtfKind::TypeTag => {
                    id = section.word(at + 8)?;
                }
                _ => return Some((section, at)),
            }
        }
        None
    }

    fn find(&self, id: u32) -> Option<(&Section, usize)> {
        let section: &Section = self.sections.iter().rev().find(|s| s.first_id <= id)?;
        let at = section.types.get((id - section.first_id) as usize)?;
        Some((section, *at))
    }

    fn name(&self, id: u32) -> Option<&[u8]> {
        let (section, at) = self.find(id)?;
        self.string(section.word(at)?)
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let section = self.sections.iter().rev().find(|s| s.first_string <= offset)?;
        section.string(offset - section.first_string)
    }
}

impl Section {
    /// Parses the types of the kernel, or those of a module on top of the kernel's. Returns `None` if the bytes are not BTF, or are
    /// cut short.
    fn parse(bytes: Vec<u8>, kernel: Option<&Self>) -> Option<Self> {
        let (first_id, first_string) = match kernel {
            Some(kernel) => (
                kernel.first_id.checked_add(u32::try_from(kernel.types.len()).ok()?)?,
                kernel
                    .first_string
                    .checked_add(u32::try_from(kernel.strings.len()).ok()?)?,
            ),
            None => (1, 0),
        };
        let mut section = Self {
            bytes,
            types: Vec::new(),
            first_id,
            strings: 0..0,
            first_string,
            named: Vec::new(),
            hasher: RandomState::new(),
        };
        let [start, header] = section.words(0)?;
        let header = header as usize;
        if start & 0xffff != MAGIC || header < HEADER {
            return None;
        }
        let range = |section: &Self, at: usize| {
            let [start, len] = section.words(at)?;
            let start = header.checked_add(start as usize)?;
            let end = start.checked_add(len as usize)?;
            (end <= section.bytes.len()).then_some(start..end)
        };
        let Range { start: mut at, end } = range(&section, 8)?;
        section.strings = range(&section, 16)?;
        while at < end {
            let id = first_id.checked_add(section.types.len() as u32)?;
            section.types.push(at);
            let (kind, count, _) = section.info(at)?;
            if matches!(kind, BtfKind::Struct | BtfKind::Union | BtfKind::Enum) {
                let name = section.word(at)?;
                // A name that the kernel uses for anything is in the kernel's strings only.
                let name = match name.checked_sub(first_string) {
                    Some(own) => section.string(own),
                    None => kernel.and_then(|kernel| kernel.string(name)),
                };
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    let hash = section.hasher.hash_one(name);
                    section.named.push((hash, id));
                }
            }
            // Every type has 12 bytes, and what its kind adds.
            let added = match kind {
                BtfKind::Int | BtfKind::Var | BtfKind::DeclTag => 4,
                BtfKind::Array => 12,
                BtfKind::Struct | BtfKind::Union | BtfKind::DataSec | BtfKind::Enum64 => count * 12,
                BtfKind::Enum | BtfKind::FuncProto => count * 8,
                _ => 0,
            };
            at += 12 + added;
        }
        section.named.sort_unstable();
        Some(section)
    }

    /// Reads `btf_type.info` (include/uapi/linux/btf.h): the kind, which is the default if it is unknown, the number of members, and
    /// whether their offsets contain the sizes of bit fields.
    fn info(&self, at: usize) -> Option<(BtfKind, usize, bool)> {
        let info = self.word(at + 4)?;
        let kind = BtfKind::try_from(info >> 24 & 0x1f).unwrap_or_default();
        Some((kind, (info & 0xffff) as usize, info >> 31 != 0))
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.words(at).map(|[word]| word)
    }

    fn words<const N: usize>(&self, at: usize) -> Option<[u32; N]> {
        let words: &[[u8; 4]; N] = self.bytes.get(at..)?.as_chunks().0.first_chunk()?;
        Some(words.map(u32::from_le_bytes))
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let strings = self.bytes.get(self.strings.clone())?;
        let tail = strings.get(offset as usize..)?;
        tail.split(|b| *b == 0).next()
    }
}

#[cfg(test)]
mod tests;
