//! The ELF file of a code object.
//!
//! Source: LLVM's AMDGPUUsage ("ELF Code Object", "Kernel Descriptor"), and `amd_kernel_code_t` of version 2 in `AMDKernelCodeT.h`.
//! The functions are generic over the source of the bytes, because they read only a few tables of large files.

use std::{collections::BTreeMap, sync::Arc};

use object::{
    LittleEndian, ReadRef,
    elf::{self, FileHeader64, ProgramHeader64, SectionHeader64, Sym64},
    pod::Pod,
    read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym},
};
use tracer_core::code_object::{KernelResources, KernelSymbol};

use super::{Contents, ParseError, demangle::demangle, metadata::Metadata};

const LE: LittleEndian = LittleEndian;
type Header = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;

/// Largest number of kernels in one code object. The largest libraries have some ten thousand in one.
pub const MAX_KERNELS: usize = 1 << 16;
/// Largest size in bytes of a table that the parser reads.
pub const MAX_TABLE: u64 = 64 << 20;
/// Longest name of a kernel in bytes: a C++ name can have some kilobytes.
const MAX_SYMBOL: usize = 32 << 10;

/// `ELFOSABI_AMDGPU_HSA`.
const OS_ABI: u8 = 64;
/// `NT_AMDGPU_METADATA`, of notes with the name `AMDGPU`.
const NOTE_METADATA: u32 = 32;
/// `STT_AMDGPU_HSA_KERNEL`: the type of kernel symbols in version 2.
const KERNEL_V2: u8 = 10;

/// Offsets of `group_segment_fixed_size`, `private_segment_fixed_size` and `kernarg_size` in a kernel descriptor.
const DESCRIPTOR_SIZES: [u64; 3] = [0, 4, 8];
/// Offsets of `workgroup_group_segment_byte_size`, `workitem_private_segment_byte_size` and `kernarg_segment_byte_size` in
/// `amd_kernel_code_t`. The last field has 64 bits; its lower half is enough.
const KERNEL_CODE_SIZES: [u64; 3] = [64, 60, 72];

/// Largest number of symbol tables, and of note segments. A file has one or two of each. Thousands of overlapping tables would take
/// hours to read.
const MAX_TABLES: usize = 4;

/// Reads the kernels of a code object.
pub fn contents<'data, R: ReadRef<'data>>(data: R) -> Result<Contents, ParseError> {
    let header = Header::parse(data).map_err(|_| ParseError::NotCodeObject)?;
    if header.e_machine(LE) != elf::EM_AMDGPU || !header.is_little_endian() {
        return Err(ParseError::NotCodeObject);
    }
    let segments = header.program_headers(LE, data)?;
    let sections = header.sections(LE, data)?;
    let ident = header.e_ident();
    let version = (ident.os_abi == OS_ABI)
        .then(|| u32::from(ident.abi_version) + 2)
        .filter(|version| (2..=6).contains(version));
    let mut descriptors: BTreeMap<&[u8], u64> = BTreeMap::new();
    let tables = sections
        .iter()
        .filter(|table| matches!(table.sh_type(LE), elf::SHT_DYNSYM | elf::SHT_SYMTAB));
    for table in tables.take(MAX_TABLES) {
        let strings = sections.section(object::SectionIndex(table.sh_link(LE) as usize))?;
        kernels(data, version, table, strings, &mut descriptors)?;
    }
    let metadata = metadata(data, segments)?.map(Metadata::read).unwrap_or_default();
    let mut kernels: Vec<KernelSymbol> = descriptors
        .into_iter()
        .filter_map(|(symbol, offset)| {
            let symbol = str::from_utf8(symbol).ok()?;
            let resources = metadata.kernels.get(format!("{symbol}.kd").as_str()).copied();
            Some(KernelSymbol {
                offset,
                symbol: Arc::from(symbol),
                name: Arc::from(demangle(symbol)),
                resources: resources.unwrap_or_else(|| by_descriptor(data, segments, version, offset)),
            })
        })
        .collect();
    kernels.sort_by_key(|kernel| kernel.offset);
    Ok(Contents {
        target: metadata.target.map(str::to_owned),
        version,
        kernels,
    })
}

/// Adds the kernels of one symbol table, with the addresses of their descriptors.
fn kernels<'data, R: ReadRef<'data>>(
    data: R,
    version: Option<u32>,
    table: &SectionHeader64<LittleEndian>,
    strings: &SectionHeader64<LittleEndian>,
    to: &mut BTreeMap<&'data [u8], u64>,
) -> Result<(), ParseError> {
    let symbols: &[Sym64<LittleEndian>] = array(data, table)?;
    let names: &[u8] = array(data, strings)?;
    // The suffix is that of a descriptor's name.
    let (kind, suffix): (u8, &[u8]) = if version == Some(2) {
        (KERNEL_V2, b"")
    } else {
        (elf::STT_OBJECT, b".kd")
    };
    for symbol in symbols {
        let is_defined = ![elf::SHN_UNDEF, elf::SHN_ABS].contains(&symbol.st_shndx(LE));
        let is_kernel = is_defined && symbol.st_type() == kind;
        let kernel = names.get(symbol.st_name(LE) as usize..).and_then(|rest| {
            let end = rest.iter().take(MAX_SYMBOL).position(|&byte| byte == 0)?;
            rest.get(..end)?.strip_suffix(suffix)
        });
        if let Some(kernel) = kernel.filter(|kernel| is_kernel && !kernel.is_empty()) {
            to.entry(kernel).or_insert(symbol.st_value(LE));
            if to.len() > MAX_KERNELS {
                return Err(ParseError::TooLarge("more than 65536 kernels"));
            }
        }
    }
    Ok(())
}

/// Returns a section as a table, unless it exceeds [`MAX_TABLE`].
fn array<'data, T: Pod, R: ReadRef<'data>>(
    data: R,
    section: &SectionHeader64<LittleEndian>,
) -> Result<&'data [T], ParseError> {
    if section.sh_size(LE) > MAX_TABLE {
        return Err(ParseError::TooLarge("a table of more than 64 MiB"));
    }
    Ok(section.data_as_array(LE, data)?)
}

/// Returns the metadata note, if there is one in this form.
fn metadata<'data, R: ReadRef<'data>>(data: R, segments: &[Segment]) -> Result<Option<&'data [u8]>, ParseError> {
    let notes = segments.iter().filter(|segment| segment.p_type(LE) == elf::PT_NOTE);
    for segment in notes.take(MAX_TABLES) {
        if segment.p_filesz(LE) > MAX_TABLE {
            return Err(ParseError::TooLarge("a note of more than 64 MiB"));
        }
        let Some(mut notes) = segment.notes(LE, data)? else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.n_type(LE) == NOTE_METADATA && note.name() == b"AMDGPU" {
                return Ok(Some(note.desc()));
            }
        }
    }
    Ok(None)
}

/// Reads the kernel's resources from its descriptor. A descriptor has fewer fields than the metadata, but without metadata it is
/// the only source.
fn by_descriptor<'data, R: ReadRef<'data>>(
    data: R,
    segments: &[Segment],
    version: Option<u32>,
    offset: u64,
) -> KernelResources {
    let fields = if version == Some(2) {
        KERNEL_CODE_SIZES
    } else {
        DESCRIPTOR_SIZES
    };
    let [group_bytes, private_bytes, kernarg_bytes] =
        fields.map(|field| word(data, segments, offset.checked_add(field)?));
    KernelResources {
        kernarg_bytes,
        group_bytes,
        private_bytes,
        ..KernelResources::default()
    }
}

/// Returns the 4 bytes that the file has for an address.
fn word<'data, R: ReadRef<'data>>(data: R, segments: &[Segment], address: u64) -> Option<u32> {
    let into = |segment: &Segment| {
        let into = address.checked_sub(segment.p_vaddr(LE))?;
        let there = segment.p_type(LE) == elf::PT_LOAD && into.checked_add(4)? <= segment.p_filesz(LE);
        there.then(|| segment.p_offset(LE).checked_add(into)).flatten()
    };
    let bytes = data.read_bytes_at(segments.iter().find_map(into)?, 4).ok()?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
