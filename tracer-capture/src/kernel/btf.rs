//! Member offsets of kernel structures and values of kernel enumerations, read from BTF: `/sys/kernel/btf/vmlinux` and the split
//! BTF of modules.
//!
//! Layout: Documentation/bpf/btf.rst. The reader supports only structures, unions, the types that lead from a member to its
//! structure, and enumerations of 32 bits.

use std::{collections::HashMap, fs, io, path::Path};

/// Magic number of the header.
const MAGIC: u16 = 0xeb9f;
/// Length of the header's fixed part in bytes.
const HEADER: usize = 24;

/// Kinds of `btf_type.info` that the reader handles (include/uapi/linux/btf.h).
mod kind {
    pub const INT: u32 = 1;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// The types of the kernel, and of at most one module.
pub struct Btf {
    /// The kernel's section comes first.
    sections: Vec<Section>,
}

/// One BTF blob, of the kernel or of a module. A module's type ids and string offsets continue after the kernel's.
struct Section {
    bytes: Vec<u8>,
    /// Offset of each type in `bytes`. The first type has id `first_id`.
    types: Vec<usize>,
    first_id: u32,
    strings: (usize, usize),
    first_string: u32,
    by_name: HashMap<Vec<u8>, Vec<u32>>,
}

impl Btf {
    /// Reads the running kernel's types, and those of the first of `modules` that has any. Returns `None` if the kernel has no BTF.
    /// Call it once: a kernel has some hundred thousand types.
    #[must_use]
    pub fn of_kernel(modules: &[&str]) -> Option<Self> {
        Self::read(Path::new("/sys/kernel/btf"), modules).ok()
    }

    /// Reads the kernel's types, and those of the first of `modules` that has any.
    ///
    /// # Errors
    /// Any error of reading the files; `InvalidData` if a file is not BTF.
    pub fn read(folder: &Path, modules: &[&str]) -> io::Result<Self> {
        let base = Section::parse(fs::read(folder.join("vmlinux"))?, 1, 0)?;
        let (next_id, next_string) = (base.next_id(), base.next_string());
        let mut sections = vec![base];
        let module = modules.iter().find_map(|module| fs::read(folder.join(module)).ok());
        if let Some(bytes) = module {
            sections.push(Section::parse(bytes, next_id, next_string)?);
        }
        Ok(Self { sections })
    }

    /// Returns the offset in bytes of a member in structure `name`. `path` leads to the member through nested structures:
    /// `["finished", "context"]`. Returns `None` if the kernel has no such member, or has it only as a bit field.
    #[must_use]
    pub fn offset(&self, name: &str, path: &[&str]) -> Option<u32> {
        let ids = self
            .sections
            .iter()
            .rev()
            .filter_map(|s| s.by_name.get(name.as_bytes()))
            .flatten();
        // Several structures may share a name. A structure that is only declared has no members.
        ids.copied().find_map(|id| self.offset_in(id, path))
    }

    /// Returns the value of a member of enumeration `name`; `None` if the kernel has no such member.
    #[must_use]
    pub fn enumerator(&self, name: &str, member: &str) -> Option<u32> {
        let named = |s: &Section| s.by_name.get(name.as_bytes()).cloned().unwrap_or_default();
        let ids: Vec<u32> = self.sections.iter().rev().flat_map(named).collect();
        ids.into_iter().find_map(|id| self.value_in(id, member))
    }

    fn value_in(&self, id: u32, member: &str) -> Option<u32> {
        let (section, at) = self.find(id)?;
        if section.kind(at)? != kind::ENUM {
            return None;
        }
        let (count, _) = section.members(at)?;
        let mut members = (0..count).map(|i| at + 12 + i * 8);
        let found = members.find(|&at| {
            let name = section.word(at).and_then(|name| self.string(name));
            name == Some(member.as_bytes())
        });
        section.word(found? + 4)
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
        let (count, bit_fields) = section.members(at)?;
        for i in 0..count {
            let member = at + 12 + i * 12;
            let (name_at, of, offset) = (
                section.word(member)?,
                section.word(member + 4)?,
                section.word(member + 8)?,
            );
            // In a structure with bit fields, the upper 8 bits are the bit field's size.
            let (offset, bit_field) = if bit_fields {
                (offset & 0xff_ffff, offset >> 24 != 0)
            } else {
                (offset, false)
            };
            let own = self.string(name_at)?;
            if own.is_empty() {
                if let Some((inner, of)) = self.member(of, name, depth + 1) {
                    return Some((offset.checked_add(inner)?, of));
                }
            } else if own == name.as_bytes() {
                return (!bit_field).then_some((offset, of));
            }
        }
        None
    }

    /// Returns the structure or union of type `id`, after it follows typedefs and qualifiers.
    fn structure(&self, mut id: u32) -> Option<(&Section, usize)> {
        for _ in 0..16 {
            let (section, at) = self.find(id)?;
            match section.kind(at)? {
                kind::STRUCT | kind::UNION => return Some((section, at)),
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = section.word(at + 8)?;
                }
                _ => return None,
            }
        }
        None
    }

    fn find(&self, id: u32) -> Option<(&Section, usize)> {
        let section = self.sections.iter().find(|s| (s.first_id..s.next_id()).contains(&id))?;
        let at = *section.types.get((id - section.first_id) as usize)?;
        Some((section, at))
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let section = self.sections.iter().rev().find(|s| s.first_string <= offset)?;
        section.string(offset - section.first_string)
    }
}

impl Section {
    fn parse(bytes: Vec<u8>, first_id: u32, first_string: u32) -> io::Result<Self> {
        Self::of(bytes, first_id, first_string)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not BTF, or truncated"))
    }

    fn of(bytes: Vec<u8>, first_id: u32, first_string: u32) -> Option<Self> {
        let magic = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let mut section = Self {
            bytes,
            types: Vec::new(),
            first_id,
            strings: (0, 0),
            first_string,
            by_name: HashMap::new(),
        };
        let header = section.word(4)? as usize;
        if magic != MAGIC || header < HEADER {
            return None;
        }
        let range = |section: &Self, at: usize| {
            let start = header.checked_add(section.word(at)? as usize)?;
            let end = start.checked_add(section.word(at + 4)? as usize)?;
            (end <= section.bytes.len()).then_some((start, end))
        };
        let (mut at, end) = range(&section, 8)?;
        section.strings = range(&section, 16)?;
        while at < end {
            let id = first_id.checked_add(section.types.len() as u32)?;
            section.types.push(at);
            if matches!(section.kind(at)?, kind::STRUCT | kind::UNION | kind::ENUM) {
                section.name_type(at, id);
            }
            at += 12 + section.tail(at)?;
        }
        Some(section)
    }

    fn name_type(&mut self, at: usize, id: u32) {
        let name = self
            .word(at)
            .and_then(|name| self.string(name.checked_sub(self.first_string)?));
        // If the kernel also uses the name of a module's type, the name is in the kernel's strings, and the type is found there.
        if let Some(name) = name.filter(|name| !name.is_empty()).map(<[u8]>::to_vec) {
            self.by_name.entry(name).or_default().push(id);
        }
    }

    /// Returns the number of bytes after the 12 bytes that every type has.
    fn tail(&self, at: usize) -> Option<usize> {
        let info = self.word(at + 4)?;
        let count = (info & 0xffff) as usize;
        Some(match info >> 24 & 0x1f {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => count * 12,
            kind::ENUM | kind::FUNC_PROTO => count * 8,
            _ => 0,
        })
    }

    fn kind(&self, at: usize) -> Option<u32> {
        Some(self.word(at + 4)? >> 24 & 0x1f)
    }

    /// Returns the number of members, and whether their offsets contain the sizes of bit fields.
    fn members(&self, at: usize) -> Option<(usize, bool)> {
        let info = self.word(at + 4)?;
        Some(((info & 0xffff) as usize, info >> 31 != 0))
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let strings = self.bytes.get(self.strings.0..self.strings.1)?;
        let tail = strings.get(offset as usize..)?;
        tail.split(|b| *b == 0).next()
    }

    fn next_id(&self) -> u32 {
        self.first_id + self.types.len() as u32
    }

    fn next_string(&self) -> u32 {
        self.first_string + (self.strings.1 - self.strings.0) as u32
    }
}

#[cfg(test)]
mod tests;
