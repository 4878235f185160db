//! What it takes to unwind through a file and to name its functions: the rows of `.eh_frame` in a short form, and symbols.
//!
//! A parser reads the file, which may be hostile. What it returns is plain data, in which the recorder only searches.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, ReaderOffset, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};
use object::{
    LittleEndian as LE,
    elf::{
        ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_X86_64, FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SHT_DYNSYM, SHT_NOTE,
        SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, SectionHeader64, Sym64,
    },
    read::elf::{ProgramHeader as _, SectionHeader as _, Sym as _},
};
use serde::{Deserialize, Serialize};

use crate::runtime::{
    debug_files::{Source, table},
    resolver::build_id_in,
};

/// Limits in bytes. The largest known libraries have 40 MiB of `.eh_frame`.
const MAX_EH_FRAME: u64 = 96 << 20;
const MAX_SYMBOLS: u64 = 32 << 20;
const MAX_STRINGS: u64 = 96 << 20;
const MAX_NOTE: u64 = 4096;
const MAX_NOTES: usize = 16;
/// The maximum number of rows and of functions that are kept.
const MAX_ROWS: usize = 2 << 20;
const MAX_FUNCTIONS: usize = 400_000;
/// The maximum length of a name in bytes.
const MAX_NAME: usize = 1024;

/// How to find the canonical frame address (CFA): the value of the stack pointer before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cfa {
    /// The stack pointer plus this.
    Sp(i32),
    /// The frame pointer plus this.
    Bp(i32),
    /// What is stored at the frame pointer plus this: functions that align their stack.
    AtBp(i32),
    /// The function has no caller.
    Outermost,
    /// In a way that is not known here.
    Unknown,
}

/// The rule for the code from an address on, up to the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The linked address.
    pub start: u64,
    /// The canonical frame address; the return address is stored below it.
    pub cfa: Cfa,
    /// Where the caller's frame pointer is stored, from the CFA; `None` if it is still in its register.
    pub bp: Option<i16>,
}

/// A function with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The linked address.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The symbol, as in the file.
    pub symbol: String,
}

/// A part of a file that is mapped to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The offset in the file.
    pub offset: u64,
    /// The linked address.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
}

/// A file, for unwinding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    segments: Vec<Segment>,
    rows: Vec<Row>,
    functions: Vec<Function>,
    /// The build id in hexadecimal, if it has one.
    pub build_id: Option<String>,
}

impl Module {
    /// Returns the linked address of an offset in the file.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.offset).filter(|&w| w < segment.size)?;
            segment.address.checked_add(within)
        })
    }

    /// Returns the rule for a linked address; `None` if the file has none.
    #[must_use]
    pub fn row(&self, address: u64) -> Option<Row> {
        let after = self.rows.partition_point(|row| row.start <= address);
        let row = self.rows.get(after.checked_sub(1)?)?;
        (row.cfa != Cfa::Unknown).then_some(*row)
    }

    /// Returns the symbol of the function that has a linked address.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.start <= address);
        // Aliases have the same start, and the smallest function that has the address is the right one.
        let near = self.functions.get(after.saturating_sub(8)..after)?;
        let holds = near.iter().rev().find(|function| address < function.end);
        holds.map(|function| function.symbol.as_str())
    }

    /// Returns the number of rows and functions, by which memory is counted.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.rows.len() + self.functions.len()
    }
}

/// Reads a file. A file that is no x86-64 ELF file, or is damaged, has nothing.
#[must_use]
pub fn read(file: &impl Source) -> Module {
    parse(file).unwrap_or_default()
}

fn parse(file: &impl Source) -> Option<Module> {
    let header: FileHeader64<LE> = table(file, 0, 1)?.pop()?;
    let ident = &header.e_ident;
    let fits = ident.magic == ELFMAG && ident.class == ELFCLASS64 && ident.data == ELFDATA2LSB;
    (fits && header.e_machine.get(LE) == EM_X86_64).then_some(())?;
    let headers: Vec<ProgramHeader64<LE>> = table(file, header.e_phoff.get(LE), header.e_phnum.get(LE).into())?;
    let is_code = |header: &&ProgramHeader64<LE>| header.p_type(LE) == PT_LOAD && header.p_flags(LE) & PF_X != 0;
    let segments = headers.iter().filter(is_code).map(|header| Segment {
        offset: header.p_offset(LE),
        address: header.p_vaddr(LE),
        size: header.p_filesz(LE),
    });
    let mut module = Module {
        segments: segments.collect(),
        ..Module::default()
    };
    // Without section headers the file still has a place in stacks, by its name.
    let sections = table::<SectionHeader64<LE>>(file, header.e_shoff.get(LE), header.e_shnum.get(LE).into());
    let sections = sections.unwrap_or_default();
    let contents = |section: &SectionHeader64<LE>, most: u64| {
        let size = section.sh_size(LE);
        (size <= most).then(|| file.bytes(section.sh_offset(LE), size))?
    };
    let notes = sections.iter().filter(|section| section.sh_type(LE) == SHT_NOTE);
    module.build_id = notes
        .take(MAX_NOTES)
        .filter_map(|section| contents(section, MAX_NOTE))
        .find_map(|notes| build_id_in(&notes));
    let names = sections.get(usize::from(header.e_shstrndx.get(LE)));
    let names = names
        .and_then(|section| contents(section, MAX_NOTE * 16))
        .unwrap_or_default();
    let is_named = |section: &&SectionHeader64<LE>, name: &[u8]| text(&names, section.sh_name(LE)) == Some(name);
    if let Some(section) = sections.iter().find(|section| is_named(section, b".eh_frame"))
        && let Some(bytes) = contents(section, MAX_EH_FRAME)
    {
        let bases = BaseAddresses::default().set_eh_frame(section.sh_addr(LE));
        module.rows = rows(&bytes, &bases);
    }
    let of_kind = |kind| sections.iter().find(|section| section.sh_type(LE) == kind);
    if let Some(table) = of_kind(SHT_SYMTAB).or_else(|| of_kind(SHT_DYNSYM))
        && let Some(strings) = sections.get(table.sh_link(LE) as usize)
        && let (Some(symbols), Some(strings)) = (contents(table, MAX_SYMBOLS), contents(strings, MAX_STRINGS))
    {
        module.functions = functions(&symbols, &strings);
    }
    Some(module)
}

/// Memory for the rules of one function.
struct Storage;

impl<T: ReaderOffset> UnwindContextStorage<T> for Storage {
    type Rules = [(gimli::Register, RegisterRule<T>); 192];
    type Stack = [UnwindTableRow<T, Self>; 4];
}

/// Returns the bytes before the next 0.
fn text(strings: &[u8], at: u32) -> Option<&[u8]> {
    let rest = strings.get(at as usize..)?;
    let window = rest.get(..MAX_NAME).unwrap_or(rest);
    let end = window.iter().position(|&byte| byte == 0)?;
    window.get(..end)
}

fn functions(symbols: &[u8], strings: &[u8]) -> Vec<Function> {
    let count = symbols.len() / size_of::<Sym64<LE>>();
    let Ok((symbols, _)) = object::pod::slice_from_bytes::<Sym64<LE>>(symbols, count) else {
        return Vec::new();
    };
    let function = |symbol: &Sym64<LE>| {
        let is_code = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) && !symbol.is_undefined(LE);
        let (start, size) = (symbol.st_value(LE), symbol.st_size(LE));
        (is_code && size > 0).then_some(())?;
        let symbol = str::from_utf8(text(strings, symbol.st_name(LE))?).ok()?;
        Some(Function {
            start,
            end: start.checked_add(size)?,
            symbol: symbol.to_owned(),
        })
    };
    let mut functions: Vec<Function> = symbols.iter().filter_map(function).take(MAX_FUNCTIONS).collect();
    // Of aliases, the last one is found first: the longest name says least.
    functions.sort_by(|a, b| {
        let key = |f: &Function| (f.start, std::cmp::Reverse(f.end), std::cmp::Reverse(f.symbol.len()));
        key(a).cmp(&key(b))
    });
    functions
}

/// Returns the rows of all functions, in the order of their addresses. Between functions is a row without a rule.
fn rows(bytes: &[u8], bases: &BaseAddresses) -> Vec<Row> {
    let section = EhFrame::new(bytes, LittleEndian);
    let mut entries = section.entries(bases);
    let mut context = UnwindContext::<_, Storage>::new_in();
    let mut rows: Vec<Row> = Vec::new();
    let none = |start| Row {
        start,
        cfa: Cfa::Unknown,
        bp: None,
    };
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        let Ok(mut table) = fde.rows(&section, bases, &mut context) else {
            continue;
        };
        let pointer = fde.cie().return_address_register();
        while let Ok(Some(row)) = table.next_row() {
            if rows.len() >= MAX_ROWS {
                break;
            }
            let at = |offset: i64| i32::try_from(offset).ok();
            let cfa = match row.cfa() {
                _ if row.register(pointer) == Some(RegisterRule::Undefined) => Cfa::Outermost,
                // x86-64 has the return address there, except in frames of signals.
                _ if row.register(pointer) != Some(RegisterRule::Offset(-8)) => Cfa::Unknown,
                CfaRule::RegisterAndOffset { register, offset } => match (*register, at(*offset)) {
                    (X86_64::RSP, Some(offset)) => Cfa::Sp(offset),
                    (X86_64::RBP, Some(offset)) => Cfa::Bp(offset),
                    _ => Cfa::Unknown,
                },
                CfaRule::Expression(expression) => {
                    let expression = expression.get(&section).ok();
                    expression.map_or(Cfa::Unknown, |expression| at_frame_pointer(expression.0.slice()))
                }
            };
            let bp = match row.register(X86_64::RBP) {
                Some(RegisterRule::Offset(offset)) => i16::try_from(offset).ok().map(Some),
                None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Some(None),
                // `DW_OP_breg6 0`, of functions that align their stack: it is stored where it points to.
                Some(RegisterRule::Expression(_)) if matches!(cfa, Cfa::AtBp(_)) => Some(None),
                Some(_) => None,
            };
            let start = row.start_address();
            rows.push(match bp {
                Some(bp) => Row { start, cfa, bp },
                None => none(start),
            });
        }
        rows.push(none(fde.end_address()));
    }
    // Where one function begins at the end of another one, its rule counts.
    rows.sort_by_key(|row| (row.start, row.cfa != Cfa::Unknown));
    rows.dedup_by(|next, row| {
        let same = next.start == row.start;
        if same {
            *row = *next;
        }
        same
    });
    rows
}

/// Understands `DW_OP_breg6 (rbp) N; DW_OP_deref` with one byte for N.
fn at_frame_pointer(expression: &[u8]) -> Cfa {
    match expression {
        [0x76, offset, 0x06] if offset & 0x80 == 0 => {
            let offset = i32::from(*offset);
            Cfa::AtBp(if offset >= 0x40 { offset - 0x80 } else { offset })
        }
        _ => Cfa::Unknown,
    }
}
