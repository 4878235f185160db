//! A miniature of the HSA runtime: everything that the resolver searches for, in a few kilobytes.
//!
//! Its code equals the real functions in the parts that the resolver examines. It cannot be executed.

use crate::code::{
    ADD, RET, SDMA, STORE_RELAXED, STORE_WRITE_INDEX_RELAXED, STORE_WRITE_INDEX_RELEASE, STUB, handing_over,
    handing_over_behind_a_guess,
};
use crate::elf::{File, Kind, kind, words};
use crate::names;

/// The features of a miniature.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recipe {
    /// Has names in `.symtab`.
    pub symbols: bool,
    /// Has a link to a debug file.
    pub link: bool,
    /// Has the relocations of the vtable's signal part in packed form.
    pub packed: bool,
    /// Has functions that may call the driver's library instead of storing, as from 7.2 on.
    pub hands_over: bool,
    /// Has the addresses that the targets' debug file assigns to its names.
    pub named: bool,
    /// The number of bytes that `ExecutePM4` has beyond those that it needs.
    pub longer: usize,
}

impl Recipe {
    /// Returns the recipes of the seeds: every form of the tables, and every way to the functions of both kinds of code.
    pub fn all() -> Vec<Self> {
        let tables = (0..8u8).map(|bits| Self {
            symbols: bits & 1 != 0,
            link: bits & 2 != 0,
            packed: bits & 4 != 0,
            ..Self::default()
        });
        let ways = [
            (true, false, false),
            (true, true, false),
            (true, false, true),
            (false, false, true),
        ];
        let ways = ways.map(|(hands_over, symbols, named)| Self {
            symbols,
            hands_over,
            named,
            ..Self::default()
        });
        tables.chain(ways).collect()
    }
}

/// Primary slots of `AqlQueue`'s vtable in 6.1; the first of the two `StoreWriteIndex`, of the four `AddWriteIndex`; `ExecutePM4`.
const QUEUE_SLOTS: usize = 29;
const STORE_WRITE_INDEX: usize = 11;
const ADD_WRITE_INDEX: usize = 17;
const EXECUTE_PM4: usize = 23;
const SIGNAL_SLOTS: usize = 40;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;

const EXPORTS: [&str; 7] = [
    "hsa_init",
    "hsa_queue_create",
    "hsa_amd_queue_create",
    "hsa_queue_destroy",
    "hsa_queue_add_write_index_screlease",
    "hsa_signal_store_relaxed",
    "hsa_signal_store_screlease",
];

/// A function: its mangled name and its location.
struct Function {
    name: &'static str,
    at: u64,
    len: u64,
}

/// The distance from the code to the pointer behind it that leads to the flags.
const POINTER: u64 = 0x4000;

struct Text {
    base: u64,
    code: Vec<u8>,
    functions: Vec<Function>,
}

impl Text {
    /// Returns the address of the next function.
    fn next(&self) -> u64 {
        self.base + self.code.len() as u64
    }

    fn add(&mut self, name: &'static str, code: &[u8]) -> u64 {
        let at = self.next();
        self.code.extend(code);
        self.functions.push(Function {
            name,
            at,
            len: code.len() as u64,
        });
        at
    }

    /// Adds a jump to a function, after other code.
    fn jump(&mut self, name: &'static str, before: &[u8], to: u64) -> u64 {
        let next = self.next() + before.len() as u64 + 5;
        let distance = (to as u32).wrapping_sub(next as u32).to_le_bytes();
        self.add(name, &[before, &[0xe9], &distance].concat())
    }
}

/// Returns the miniature.
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
    let doorbells = Doorbells::add(&mut text, recipe);
    let add = text.add(names::ADD_WRITE_INDEX, ADD);
    let stores = [
        text.add(names::STORE_WRITE_INDEX_RELAXED, STORE_WRITE_INDEX_RELAXED),
        text.add(names::STORE_WRITE_INDEX_RELEASE, STORE_WRITE_INDEX_RELEASE),
    ];
    let mut execute = vec![0x90; 512 + recipe.longer];
    execute.extend([0x0f, 0xae, 0xf8, 0xc3]); // sfence; ret
    let execute = text.add(names::EXECUTE_PM4, &execute);
    text.add("_ZN4rocr3AMD8BlitSdmaILb1EE30UpdateWriteAndDoorbellRegisterEmm", SDMA);
    let exports: Vec<(&str, u64)> = EXPORTS.iter().map(|name| (*name, text.add("", STUB))).collect();
    let text_index = file.next_index();
    file.section(".text", code, &text.code);
    let frames = eh_frame(file.next(), &text.functions);
    file.section(".eh_frame", code, &frames);

    let mut queue = vec![other; QUEUE_SLOTS];
    queue[STORE_WRITE_INDEX..STORE_WRITE_INDEX + 2].copy_from_slice(&stores);
    queue[ADD_WRITE_INDEX..ADD_WRITE_INDEX + 4].fill(add);
    queue[EXECUTE_PM4] = execute;
    queue[QUEUE_SLOTS - 2..].copy_from_slice(&doorbells.queue);
    let mut signal = vec![other; SIGNAL_SLOTS];
    signal[2..4].copy_from_slice(&doorbells.signal);
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
    let mut bytes = file.finish();
    if recipe.named {
        let at = |name: &&str| text.functions.iter().find(|function| function.name == *name);
        let last_first = names::ALL.iter().rev().filter_map(at);
        bytes.extend(last_first.flat_map(|function| (function.at as u32).to_le_bytes()));
    }
    bytes
}

/// The functions that ring: `StoreRelaxed` and `StoreRelease` of the queue and of its signal.
struct Doorbells {
    queue: [u64; 2],
    signal: [u64; 2],
}

impl Doorbells {
    fn add(text: &mut Text, recipe: Recipe) -> Self {
        let to_queue = [0x48, 0x83, 0xef, 0x38]; // sub $0x38,%rdi
        if !recipe.hands_over {
            let relaxed = text.add(names::STORE_RELAXED, STORE_RELAXED);
            return Self {
                queue: [relaxed, text.jump(names::STORE_RELEASE, &[], relaxed)],
                signal: [
                    text.jump(names::SIGNAL_STORE_RELAXED, &to_queue, relaxed),
                    text.jump(names::SIGNAL_STORE_RELEASE, &to_queue, relaxed),
                ],
            };
        }
        // As in 7.2.4: only the signal's `StoreRelease` calls another one.
        let pointer = text.base + POINTER;
        let code = handing_over(text.next(), pointer, 0x40);
        let relaxed = text.add(names::STORE_RELAXED, &code);
        let code = handing_over(text.next(), pointer, 0x08);
        let signal_relaxed = text.add(names::SIGNAL_STORE_RELAXED, &code);
        let code = handing_over_behind_a_guess(text.next(), pointer, relaxed);
        let release = text.add(names::STORE_RELEASE, &code);
        Self {
            queue: [relaxed, release],
            signal: [
                signal_relaxed,
                text.jump(names::SIGNAL_STORE_RELEASE, &to_queue, release),
            ],
        }
    }
}

/// The location of a string table.
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

/// Returns one common part with pc-relative 4-byte addresses (`zR`, 0x1b), and one description per function.
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
