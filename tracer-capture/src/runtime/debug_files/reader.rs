//! Reads the names in a debug file. The file may have gigabytes, so the reader reads only its headers, notes and symbols, each up
//! to a limit.

use serde::{Deserialize, Serialize};
use std::{fs::File, os::unix::fs::FileExt};

use object::{
    LittleEndian as LE,
    elf::{
        ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_X86_64, FileHeader64, SHT_NOTE, SHT_SYMTAB, STT_FUNC, SectionHeader64,
        Sym64,
    },
    pod::{Pod, slice_from_bytes},
    read::elf::{SectionHeader, Sym},
};

use crate::runtime::resolver::{
    MAX_NAME, build_id_in,
    debug::{NamedFunction, is_of_use},
};

/// Limits in bytes. The symbols of a debug build of the runtime take under 2 MiB, their names 10 MiB.
const MAX_SYMBOLS: u64 = 32 << 20;
const MAX_STRINGS: u64 = 128 << 20;
/// Limit in bytes. A note section has less than 100 bytes.
const MAX_NOTE: u64 = 4096;
const MAX_NOTES: usize = 16;
/// `AqlQueue` has under 100 functions.
const MAX_FUNCTIONS: usize = 4096;

/// The contents of a debug file that the resolver uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugSymbols {
    /// The build-id of the file, which is also that of its library.
    pub build_id: Option<String>,
    /// The functions that the resolver uses.
    pub functions: Vec<NamedFunction>,
}

/// A source of bytes with random access.
pub trait Source {
    /// Returns `len` bytes at `offset`; `None` if there are fewer.
    fn bytes(&self, offset: u64, len: u64) -> Option<Vec<u8>>;
}

impl Source for File {
    fn bytes(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        // Do not allocate memory for bytes that do not exist.
        let end = offset.checked_add(len)?;
        if self.metadata().ok()?.len() < end {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        self.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

impl Source for &[u8] {
    fn bytes(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.get(start..end).map(<[u8]>::to_vec)
    }
}

/// Reads a table of `count` entries.
pub(crate) fn table<T: Pod>(file: &impl Source, offset: u64, count: usize) -> Option<Vec<T>> {
    let bytes = file.bytes(offset, (count * size_of::<T>()) as u64)?;
    let (entries, _) = slice_from_bytes::<T>(&bytes, count).ok()?;
    Some(entries.to_vec())
}

/// The problem with a file whose tables cannot be read.
const MALFORMED: &str = "not a debug file: its ELF headers point outside the file";

/// Reads the names in a debug file.
///
/// # Errors
/// A message, if the file is not a debug file.
pub fn read(file: &impl Source) -> Result<DebugSymbols, String> {
    let header = table::<FileHeader64<LE>>(file, 0, 1).and_then(|mut head| head.pop());
    let is_elf = |header: &FileHeader64<LE>| header.e_ident.magic == ELFMAG;
    let header = header.filter(is_elf).ok_or("not an ELF file")?;
    let ident = &header.e_ident;
    if ident.class != ELFCLASS64 || ident.data != ELFDATA2LSB || header.e_machine.get(LE) != EM_X86_64 {
        return Err("not an x86-64 ELF file".to_owned());
    }
    let sections = table(file, header.e_shoff.get(LE), header.e_shnum.get(LE).into());
    let sections: Vec<SectionHeader64<LE>> = sections.ok_or(MALFORMED)?;
    let contents = |section: &SectionHeader64<LE>, most: u64| {
        let size = section.sh_size(LE);
        (size <= most).then(|| file.bytes(section.sh_offset(LE), size))?
    };
    let notes = sections.iter().filter(|section| section.sh_type(LE) == SHT_NOTE);
    let build_id = notes
        .take(MAX_NOTES)
        .filter_map(|section| contents(section, MAX_NOTE))
        .find_map(|notes| build_id_in(&notes));
    let symtab = sections.iter().find(|section| section.sh_type(LE) == SHT_SYMTAB);
    let symtab = symtab.ok_or("it has no .symtab")?;
    let symbols = contents(symtab, MAX_SYMBOLS).ok_or(MALFORMED)?;
    let strings = sections.get(symtab.sh_link(LE) as usize).ok_or(MALFORMED)?;
    let strings = contents(strings, MAX_STRINGS).ok_or(MALFORMED)?;
    let count = symbols.len() / size_of::<Sym64<LE>>();
    let (symbols, _) = slice_from_bytes::<Sym64<LE>>(&symbols, count).map_err(|()| MALFORMED)?;
    let functions = symbols.iter().filter_map(|symbol| function(symbol, &strings));
    Ok(DebugSymbols {
        build_id,
        functions: functions.take(MAX_FUNCTIONS).collect(),
    })
}

fn function(symbol: &Sym64<LE>, strings: &[u8]) -> Option<NamedFunction> {
    if symbol.st_type() != STT_FUNC || symbol.is_undefined(LE) {
        return None;
    }
    let rest = strings.get(symbol.st_name(LE) as usize..)?;
    let window = rest.get(..MAX_NAME).unwrap_or(rest);
    let end = window.iter().position(|&byte| byte == 0)?;
    let name = str::from_utf8(window.get(..end)?).ok().filter(|name| is_of_use(name))?;
    Some(NamedFunction {
        name: name.to_owned(),
        vaddr: symbol.st_value(LE),
    })
}
