//! The targets, their seeds, and the properties that must hold for every input.

use std::{
    io,
    path::{Path, PathBuf},
};

use tracer_capture::runtime::{
    code_object::{
        list::{self, Memory},
        parse,
        uri::Place,
    },
    debug_files, resolver,
};

use crate::hold::hold;
use crate::names;
use crate::runtime::{Recipe, runtime};

/// A parser under test.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Runs it on an input. Panics if a property does not hold.
    pub run: fn(&[u8]),
    /// Returns the inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const ALL: [Target; 4] = [
    Target {
        name: "resolver",
        run: resolve,
        seeds: runtimes,
    },
    Target {
        name: "debug_file",
        run: debug_file,
        seeds: runtimes,
    },
    Target {
        name: "code_object",
        run: code_object,
        seeds: code_objects,
    },
    Target {
        name: "code_object_list",
        run: code_object_list,
        seeds: lists,
    },
];

/// Returns valid runtimes in every form, and truncated ones.
fn runtimes() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Recipe::all().into_iter().map(runtime).collect();
    let whole = seeds.first().cloned().unwrap_or_default();
    seeds.extend([0, 4, 64, 300, whole.len() / 2].map(|len| whole.get(..len).unwrap_or_default().to_vec()));
    seeds
}

/// Returns the code objects of tests/gpu-kernels, if they are built, and an empty one.
fn code_objects() -> Vec<Vec<u8>> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/gpu-kernels");
    let folder = std::env::var_os("TRACER_GPU_KERNELS").map_or(built, PathBuf::from);
    let names = ["gfx90a.co", "gfx1100.co", "gfx11-generic.co"];
    let mut seeds: Vec<Vec<u8>> = names
        .iter()
        .filter_map(|name| std::fs::read(folder.join(name)).ok())
        .collect();
    let mut header = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
    header.resize(64, 0);
    // e_machine: EM_AMDGPU.
    header[18] = 224;
    seeds.push(header);
    seeds
}

fn code_object(elf: &[u8]) {
    if let Ok(contents) = parse(elf) {
        assert!(contents.kernels.is_sorted_by_key(|kernel| kernel.offset));
        for kernel in &contents.kernels {
            assert!(!kernel.symbol.is_empty() && kernel.name.len() < 1 << 17, "{kernel:?}");
        }
    }
}

/// The start of the memory of a simulated process.
const BASE: u64 = 0x1000;

/// A process whose memory is the input.
struct Process<'a>(&'a [u8]);

impl Memory for Process<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()> {
        let start = address.checked_sub(BASE).and_then(|start| usize::try_from(start).ok());
        let from = start.and_then(|start| self.0.get(start..start.checked_add(to.len())?));
        to.copy_from_slice(from.ok_or_else(|| io::Error::other("not there"))?);
        Ok(())
    }
}

/// Parses the list of code objects of a process, and their locations.
fn code_object_list(memory: &[u8]) {
    let Ok(entries) = list::read(&Process(memory), BASE) else {
        return;
    };
    for entry in &entries {
        let _ = Place::parse(&entry.uri);
    }
    let (old, new) = entries.split_at(entries.len() / 2);
    let (stays, added) = list::differences(old, new);
    assert_eq!((stays.len(), added.len()), (old.len(), new.len()));
    let (stays, added) = list::differences(&entries, &entries);
    assert!(stays.iter().all(|stays| *stays) && added.iter().all(|added| !added));
}

/// Returns two entries, for the two kinds of locations, and a circular list.
fn lists() -> Vec<Vec<u8>> {
    let [node, other, file, memory] = [64, 128, 192, 256].map(|at| BASE + at);
    [0, node]
        .map(|last| {
            // struct `r_debug`: version, first entry; struct `link_map`: address, name, dynamic section, next, previous.
            let mut bytes = crate::elf::words(&[11, node, 0, 0, 0, 0, 0, 0]);
            bytes.extend(crate::elf::words(&[0x10_0000, file, 0, other, 0, 0, 0, 0]));
            bytes.extend(crate::elf::words(&[0x20_0000, memory, 0, last, node, 0, 0, 0]));
            bytes.extend(b"file:///opt/a%20b.co#offset=0x1000&size=4096\0");
            bytes.resize((memory - BASE) as usize, 0);
            bytes.extend(b"memory://7#offset=0x7f0000000000&size=64\0");
            bytes.resize(1024, 0);
            bytes
        })
        .into()
}

/// Resolves a library with a debug file whose addresses are in the library's last bytes.
fn resolve(elf: &[u8]) {
    if let Ok(resolution) = names::resolve(elf) {
        hold(elf, &resolution);
    }
    let _ = resolver::build_id(elf);
}

fn debug_file(elf: &[u8]) {
    if let Ok(symbols) = debug_files::read(&elf) {
        assert!(
            symbols
                .functions
                .iter()
                .all(|function| resolver::debug::is_of_use(&function.name))
        );
    }
}
