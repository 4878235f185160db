//! A quick check of a mapped file: does it name `hsa_init`, is it HIP or OpenCL? The check makes only a few small reads, so that tracer does
//! not pause a process for a 500 MB library that has nothing to do with HSA.

use object::{
    LittleEndian as LE,
    elf::{DT_NULL, DT_SONAME, DT_STRSZ, DT_STRTAB, Dyn64, ELFMAG, FileHeader64, PT_DYNAMIC, PT_LOAD, ProgramHeader64},
    read::elf::{Dyn, ProgramHeader},
};
use serde::{Deserialize, Serialize};

use crate::runtime::debug_files::{Source, table};

/// Limit in bytes. An HSA runtime has no longer dynamic string table (Debian's are under 100 KiB).
const MAX_STRINGS: u64 = 16 << 20;

/// The result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peek {
    /// The file's dynamic strings name `hsa_init`: the file is an HSA runtime, or a client of one.
    pub names_hsa_init: bool,
    /// The file's own name (DT_SONAME) is that of HIP's library, such as `libamdhip64.so.6`. The strings are not enough for HIP:
    /// clients of HIP name the same functions, and some of them are very large.
    pub is_hip: bool,
    /// Its own name is that of AMD's implementation of OpenCL.
    pub is_opencl: bool,
}

/// Checks a file from any source of bytes. Returns the default for a file that is not an ELF file, or is damaged.
pub fn peek(file: &impl Source) -> Peek {
    let Some((strings, soname)) = strings(file) else {
        return Peek::default();
    };
    let soname = soname
        .and_then(|at| strings.get(usize::try_from(at).ok()?..))
        .unwrap_or_default();
    Peek {
        names_hsa_init: strings.split(|&b| b == 0).any(|name| name == b"hsa_init"),
        is_hip: soname.starts_with(b"libamdhip64"),
        is_opencl: soname.starts_with(b"libamdocl64"),
    }
}

/// Returns the dynamic strings, and the offset of the library's own name in them.
fn strings(file: &impl Source) -> Option<(Vec<u8>, Option<u64>)> {
    let header: FileHeader64<LE> = table(file, 0, 1)?.pop()?;
    (header.e_ident.magic == ELFMAG && header.e_ident.class == object::elf::ELFCLASS64).then_some(())?;
    let segments: Vec<ProgramHeader64<LE>> = table(file, header.e_phoff.get(LE), header.e_phnum.get(LE).into())?;
    let dynamic = segments.iter().find(|s| s.p_type(LE) == PT_DYNAMIC)?;
    let is_bounded = |&size: &u64| size <= MAX_STRINGS;
    let size = Some(dynamic.p_filesz(LE)).filter(is_bounded)?;
    let entries: Vec<Dyn64<LE>> = table(file, dynamic.p_offset(LE), size as usize / size_of::<Dyn64<LE>>())?;
    let value = |tag: i64| {
        let mut live = entries.iter().take_while(|d| d.d_tag(LE) != DT_NULL);
        live.find(|d| d.d_tag(LE) == tag).map(|d| d.d_val(LE))
    };
    let (address, size) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let offset = segments.iter().filter(|s| s.p_type(LE) == PT_LOAD).find_map(|s| {
        let within = address.checked_sub(s.p_vaddr(LE)).filter(|&w| w < s.p_filesz(LE))?;
        s.p_offset(LE).checked_add(within)
    })?;
    let size = Some(size).filter(is_bounded)?;
    Some((file.bytes(offset, size)?, value(DT_SONAME)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn libraries_and_other_files_without_hsa_are_passed_over() {
        for path in ["/proc/self/exe", "/etc/passwd", "/dev/null"] {
            assert_eq!(peek(&File::open(path).unwrap()), Peek::default(), "{path}");
        }
    }
}
