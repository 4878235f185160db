//! A miniature of the HSA runtime: everything that the resolver looks for, in a few kilobytes.
//!
//! Its code does what the real functions do as far as the resolver examines it; nobody could run it.

use crate::elf::{File, Kind, kind, words};

/// How the miniature is made.
#[derive(Clone, Copy, Default)]
pub struct Recipe {
    /// With names in `.symtab`.
    pub symbols: bool,
    /// With a link to a debug file.
    pub link: bool,
    /// With relocations of the signal part of the vtable in packed form.
    pub packed: bool,
}

/// Primary slots of `AqlQueue`'s vtable in 6.1; the first of the four `AddWriteIndex`; `ExecutePM4`.
const QUEUE_SLOTS: usize = 29;
const ADD_WRITE_INDEX: usize = 17;
const EXECUTE_PM4: usize = 23;
const SIGNAL_SLOTS: usize = 40;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;

const RET: &[u8] = &[0xc3];
/// push %rbx; mov 0x40(%rdi),%rax; mov 8(%rax),%rax; sfence; mov %rsi,(%rax); pop %rbx; ret
const STORE_RELAXED: &[u8] = &[
    0x53, 0x48, 0x8b, 0x47, 0x40, 0x48, 0x8b, 0x40, 0x08, 0x0f, 0xae, 0xf8, 0x48, 0x89, 0x30, 0x5b, 0xc3,
];
/// mov 0x18(%rdi),%rdx; mov %rsi,%rax; add $0x38,%rdx; lock xadd %rax,(%rdx); ret
const ADD: &[u8] = &[
    0x48, 0x8b, 0x57, 0x18, 0x48, 0x89, 0xf0, 0x48, 0x83, 0xc2, 0x38, 0xf0, 0x48, 0x0f, 0xc1, 0x02, 0xc3,
];
/// push %rbx; 1: cmp 0xb0(%rdi),%rsi; jne 1b; mov 0x8c(%rdi),%rax; mov %rdx,(%rax); sfence; mov 0x84(%rdi),%rax;
/// mov %rdx,(%rax); mov %rdx,0xb0(%rdi); pop %rbx; ret
const SDMA: &[u8] = &[
    0x53, 0x48, 0x3b, 0xb7, 0xb0, 0, 0, 0, 0x75, 0xf7, 0x48, 0x8b, 0x87, 0x8c, 0, 0, 0, 0x48, 0x89, 0x10, 0x0f, 0xae,
    0xf8, 0x48, 0x8b, 0x87, 0x84, 0, 0, 0, 0x48, 0x89, 0x10, 0x48, 0x89, 0x97, 0xb0, 0, 0, 0, 0x5b, 0xc3, 0x90, 0x90,
    0x90, 0x90, 0x90, 0x90,
];
/// endbr64; mov 0x1000(%rip),%rax; jmp *0x158(%rax)
const STUB: &[u8] = &[
    0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0, 0x10, 0, 0, 0xff, 0xa0, 0x58, 0x01, 0, 0,
];
const EXPORTS: [&str; 6] = [
    "hsa_init",
    "hsa_queue_create",
    "hsa_queue_destroy",
    "hsa_queue_add_write_index_screlease",
    "hsa_signal_store_relaxed",
    "hsa_signal_store_screlease",
];

/// A function: its mangled name and its place.
struct Function {
    name: &'static str,
    at: u64,
    len: u64,
}

struct Text {
    base: u64,
    code: Vec<u8>,
    functions: Vec<Function>,
}

impl Text {
    fn add(&mut self, name: &'static str, code: &[u8]) -> u64 {
        let at = self.base + self.code.len() as u64;
        self.code.extend(code);
        self.functions.push(Function {
            name,
            at,
            len: code.len() as u64,
        });
        at
    }

    /// A jump to a function, after other code.
    fn jump(&mut self, name: &'static str, before: &[u8], to: u64) -> u64 {
        let next = self.base + (self.code.len() + before.len() + 5) as u64;
        let distance = (to as u32).wrapping_sub(next as u32).to_le_bytes();
        self.add(name, &[before, &[0xe9], &distance].concat())
    }
}

/// The miniature.
pub fn runtime(recipe: Recipe) -> Vec<u8> {
    let mut file = File::new(2);
    let code = Kind {
        number: kind::PROGBITS,
        ..Kind::default()
    };
    let mut text = Text {
        base: file.next(),
        code: Vec::new(),
        functions: Vec::new(),
    };
    let other = text.add("_ZN4rocr5OtherEv", RET);
    let relaxed = text.add("_ZN4rocr3AMD8AqlQueue12StoreRelaxedEl", STORE_RELAXED);
    let release = text.jump("_ZN4rocr3AMD8AqlQueue12StoreReleaseEl", &[], relaxed);
    let to_queue = [0x48, 0x83, 0xef, 0x38]; // sub $0x38,%rdi
    let signal_relaxed = text.jump("_ZThn56_N4rocr3AMD8AqlQueue12StoreRelaxedEl", &to_queue, relaxed);
    let signal_release = text.jump("_ZThn56_N4rocr3AMD8AqlQueue12StoreReleaseEl", &to_queue, relaxed);
    let add = text.add("_ZN4rocr3AMD8AqlQueue19AddWriteIndexAcqRelEm", ADD);
    let mut execute = vec![0x90; 512];
    execute.extend([0x0f, 0xae, 0xf8, 0xc3]); // sfence; ret
    let execute = text.add("_ZN4rocr3AMD8AqlQueue10ExecutePM4EPjm", &execute);
    text.add("_ZN4rocr3AMD8BlitSdmaILb1EE30UpdateWriteAndDoorbellRegisterEmm", SDMA);
    let exports: Vec<(&str, u64)> = EXPORTS.iter().map(|name| (*name, text.add("", STUB))).collect();
    let text_index = file.next_index();
    file.section(".text", code, &text.code);
    let frames = eh_frame(file.next(), &text.functions);
    file.section(".eh_frame", code, &frames);

    let mut queue = vec![other; QUEUE_SLOTS];
    queue[ADD_WRITE_INDEX..ADD_WRITE_INDEX + 4].fill(add);
    queue[EXECUTE_PM4] = execute;
    queue[QUEUE_SLOTS - 2..].copy_from_slice(&[relaxed, release]);
    let mut signal = vec![other; SIGNAL_SLOTS];
    signal[2..4].copy_from_slice(&[signal_relaxed, signal_release]);
    let vtables = [&[0, 0][..], &queue, &[56u64.wrapping_neg(), 0], &signal].concat();
    let at = file.section(".data.rel.ro", code, &words(&vtables));
    let signal_at = at + 8 * (QUEUE_SLOTS as u64 + 4);
    let mut relocated: Vec<(u64, u64)> = (at + 16..).step_by(8).zip(queue).collect();
    if recipe.packed {
        let bitmap = (1u64 << SIGNAL_SLOTS) - 1; // the words after the first one, above the mark
        let packed = Kind {
            number: kind::RELR,
            entry: 8,
            ..Kind::default()
        };
        file.section(".relr.dyn", packed, &words(&[signal_at, bitmap]));
    } else {
        relocated.extend((signal_at..).step_by(8).zip(signal));
    }
    let relocations: Vec<u64> = relocated
        .iter()
        .flat_map(|(place, function)| [*place, 8, *function])
        .collect();
    let rela = Kind {
        number: kind::RELA,
        entry: 24,
        ..Kind::default()
    };
    file.section(".rela.dyn", rela, &words(&relocations));
    let strings = symbols(
        &mut file,
        (".dynsym", kind::DYNSYM),
        ".dynstr",
        text_index,
        &exports,
        "soname.so.1",
    );
    let soname = strings.soname;
    let dynamic = words(&[14, soname, 5, strings.at, 10, strings.len, 0, 0]); // DT_SONAME, DT_STRTAB, DT_STRSZ
    let dynamic_kind = Kind {
        number: kind::DYNAMIC,
        link: strings.index,
        entry: 16,
        ..Kind::default()
    };
    let at = file.section(".dynamic", dynamic_kind, &dynamic);
    file.segment(PT_DYNAMIC, at, dynamic.len());
    let mut note = [4u32, 8, 3].map(u32::to_le_bytes).concat();
    note.extend(b"GNU\0\x01\x23\x45\x67\x89\xab\xcd\xef");
    let notes = Kind {
        number: kind::NOTE,
        ..Kind::default()
    };
    let at = file.section(".note.gnu.build-id", notes, &note);
    file.segment(PT_NOTE, at, note.len());
    if recipe.link {
        file.section(".gnu_debuglink", code, b"runtime.debug\0\0\0\xef\xbe\xad\xde");
    }
    if recipe.symbols {
        let named: Vec<(&str, u64)> = text
            .functions
            .iter()
            .filter(|function| !function.name.is_empty())
            .map(|function| (function.name, function.at))
            .collect();
        symbols(&mut file, (".symtab", kind::SYMTAB), ".strtab", text_index, &named, "");
    }
    file.finish()
}

/// Where a string table came to lie.
struct Strings {
    index: u32,
    at: u64,
    len: u64,
    soname: u64,
}

fn symbols(
    file: &mut File,
    (name, number): (&str, u32),
    strings_name: &str,
    section: u32,
    functions: &[(&str, u64)],
    soname: &str,
) -> Strings {
    let (mut names, mut table) = (vec![0u8], vec![0u8; 24]);
    for (name, at) in functions {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([0x12, 0]); // global function
        table.extend((section as u16).to_le_bytes());
        table.extend(at.to_le_bytes());
        table.extend(0u64.to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let soname_at = names.len() as u64;
    names.extend(soname.bytes().chain([0]));
    let index = file.next_index() + 1;
    let of_symbols = Kind {
        number,
        link: index,
        info: 1,
        entry: 24,
    };
    file.section(name, of_symbols, &table);
    let of_strings = Kind {
        number: kind::STRTAB,
        ..Kind::default()
    };
    let at = file.section(strings_name, of_strings, &names);
    Strings {
        index,
        at,
        len: names.len() as u64,
        soname: soname_at,
    }
}

/// One common part with pc-relative 4-byte addresses (`zR`, 0x1b), and a description each.
fn eh_frame(base: u64, functions: &[Function]) -> Vec<u8> {
    let mut frames = vec![16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0];
    for function in functions {
        let start = frames.len();
        frames.extend(16u32.to_le_bytes());
        frames.extend((start as u32 + 4).to_le_bytes());
        let here = base + frames.len() as u64;
        frames.extend((function.at as u32).wrapping_sub(here as u32).to_le_bytes());
        frames.extend((function.len as u32).to_le_bytes());
        frames.extend([0; 4]);
    }
    frames.extend([0; 4]);
    frames
}
