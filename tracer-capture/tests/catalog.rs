//! Compares the catalogue of API functions with the exports of real HIP and HSA libraries. A function that submits, waits or
//! allocates, and that the catalogue omits, would be absent from recordings without a warning.

#[expect(dead_code, reason = "the resolver's own tests need more of it")]
#[path = "resolver/library.rs"]
mod library;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use object::{Object, ObjectSymbol, SymbolKind};
use tracer_capture::runtime::resolver::{Argument, Entries, entries};
use tracer_common::api::{FUNCTIONS, Layer};

/// The releases; each has a folder with HIP in it.
const SUITES: [&str; 4] = ["bookworm", "trixie", "sid", "experimental"];
const LIBRARIES: [(Layer, &str); 2] = [(Layer::Hip, "libamdhip64.so."), (Layer::Hsa, "libhsa-runtime64.so.")];

/// The registers that an entry probe reads.
const KEEP: [Argument; 7] = [
    Argument::Rdi,
    Argument::Rsi,
    Argument::Rdx,
    Argument::Rcx,
    Argument::R8,
    Argument::R9,
    Argument::Rsp,
];

/// Functions that the catalogue omits although their names match a traced kind, and the reasons.
const LEFT_OUT: [(&str, &[&str]); 2] = [
    (
        "lists symbols: makes, moves and waits for nothing",
        &[
            "hsa_executable_iterate_agent_symbols",
            "hsa_executable_iterate_program_symbols",
            "hsa_executable_iterate_symbols",
        ],
    ),
    (
        "asks for a property: makes, moves and waits for nothing",
        &[
            "hsa_amd_agent_memory_pool_get_info",
            "hsa_amd_memory_pool_can_migrate",
            "hsa_amd_memory_pool_get_info",
            "hsa_amd_vmem_get_access",
            "hsa_amd_vmem_get_alloc_properties_from_handle",
            "hsa_executable_get_info",
            "hsa_ext_image_data_get_info",
            "hsa_ext_image_data_get_info_with_layout",
            "hsa_ext_image_get_capability",
            "hsa_ext_image_get_capability_with_layout",
        ],
    ),
];

/// Returns whether a function with this name is of a kind that is traced.
fn is_traced(layer: Layer, name: &str) -> bool {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match layer {
        Layer::Hip => {
            let of_memory = [
                "hipMemcpy",
                "hipMemset",
                "hipDrvMemcpy",
                "hipMalloc",
                "hipFree",
                "hipMemAlloc",
            ];
            let of_streams = [
                "hipStreamCreate",
                "hipExtStreamCreate",
                "hipStreamDestroy",
                "hipStreamSynchronize",
                "hipStreamQuery",
                "hipStreamWait",
                "hipStreamWrite",
                "hipStreamBatch",
                "hipStreamBeginCapture",
                "hipStreamEndCapture",
            ];
            let of_events = [
                "hipEventCreate",
                "hipEventDestroy",
                "hipEventRecord",
                "hipEventSynchronize",
            ];
            let of_graphs = ["hipGraphLaunch", "hipGraphUpload", "hipGraphInstantiate"];
            // A function with `Async` at the end of its name works on a stream. One with `Launch` in its name does so too, or puts
            // a host function on a stream.
            name.starts_with("hip")
                && (has(&["Launch", "Async"])
                    || starts(&of_memory)
                    || starts(&of_streams)
                    || starts(&of_events)
                    || starts(&of_graphs))
        }
        Layer::Hsa => {
            let of_memory = ["hsa_memory_", "hsa_amd_memory_", "hsa_amd_vmem_", "hsa_amd_ipc_"];
            let of_code = ["hsa_executable_", "hsa_code_object_reader_"];
            let lives = has(&["queue", "signal"]) && has(&["create", "destroy", "attach", "wait"]);
            name.starts_with("hsa_")
                && (lives
                    || name.ends_with("_async")
                    || has(&["memory_pool"])
                    || starts(&of_memory)
                    || starts(&of_code)
                    || starts(&["hsa_ext_image_"]))
        }
        Layer::OpenCl => name.starts_with("clEnqueue") && !has(&["GLObjects"]),
    }
}

/// Strips the prefix of a mangled C++ function outside of namespaces, so that the result starts with the plain name; the arguments
/// follow it. Returns other names unchanged.
fn begins_as(symbol: &str) -> &str {
    match symbol.strip_prefix("_Z") {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => symbol,
    }
}

/// Reads the library of a release.
fn read(suite: &str, name: &str) -> Vec<u8> {
    let dir = library::rootfs_dir().join(format!("{suite}-hip/usr/lib/x86_64-linux-gnu"));
    let found = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|file| file.to_string_lossy().starts_with(name))
        });
    let read = |path: &Path| std::fs::read(path).ok();
    found
        .and_then(|path| read(&path))
        .unwrap_or_else(|| panic!("{}: no {name}*: run `cargo xtask setup`", dir.display()))
}

/// Returns the exported functions and their addresses.
fn exported(elf: &[u8]) -> BTreeMap<String, u64> {
    let file = object::File::parse(elf).expect("a library");
    let defined = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    defined
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.address())))
        .collect()
}

/// Returns the catalogue's functions in a library by address: the probe of a listed function also sees the calls of its aliases.
fn watched(entries: &Entries) -> BTreeMap<u64, Vec<&'static str>> {
    let mut watched = BTreeMap::<u64, Vec<_>>::new();
    for entry in &entries.functions {
        let names = watched.entry(entry.export.probe.function).or_default();
        names.push(FUNCTIONS[entry.number].name);
    }
    watched
}

#[test]
fn every_function_of_a_kind_that_is_traced_is_listed() {
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(_, names)| *names).copied().collect();
    let mut unused = left_out.clone();
    let mut missing = BTreeMap::<String, Vec<&str>>::new();
    for suite in SUITES {
        for (layer, name) in LIBRARIES {
            let elf = read(suite, name);
            let entries = entries(&elf, layer, &KEEP).expect("a library");
            let watched = watched(&entries);
            for (symbol, vaddr) in exported(&elf) {
                let listed = watched.contains_key(&vaddr);
                if left_out.contains(symbol.as_str()) {
                    assert!(!listed, "{symbol} is listed, and in LEFT_OUT");
                    unused.remove(symbol.as_str());
                } else if !listed && is_traced(layer, begins_as(&symbol)) {
                    missing.entry(symbol).or_default().push(suite);
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "exported, and neither in tracer-common/src/api/catalog nor in LEFT_OUT: {missing:#?}"
    );
    assert_eq!(unused, BTreeSet::new(), "in LEFT_OUT, and not exported");
}

/// Functions of later releases than those in the folders. Remove one from here when a release exports it.
const NEWER: [&str; 1] = ["hsa_amd_queue_create"];

#[test]
fn every_listed_function_has_a_place_of_its_own() {
    // Debian has OpenCL in a package that is not in these folders.
    let listed = FUNCTIONS.iter().filter(|function| function.layer != Layer::OpenCl);
    let mut nowhere: BTreeSet<&str> = listed.map(|function| function.name).collect();
    for suite in SUITES {
        for (layer, name) in LIBRARIES {
            let elf = read(suite, name);
            let entries = entries(&elf, layer, &KEEP).expect("a library");
            for (vaddr, names) in watched(&entries) {
                let [name] = names[..] else {
                    panic!("{suite}: {names:?} are one function, at {vaddr:#x}: calls of all have the name of one");
                };
                nowhere.remove(name);
            }
            // Check that a function that is exported under its own name can be probed.
            let found: BTreeSet<&str> = entries
                .functions
                .iter()
                .map(|entry| FUNCTIONS[entry.number].name)
                .collect();
            let exported = exported(&elf);
            let of_layer = FUNCTIONS.iter().filter(|function| function.layer == layer);
            for function in of_layer.filter(|function| exported.contains_key(function.name)) {
                assert!(found.contains(function.name), "{suite}: {} has no site", function.name);
            }
        }
    }
    assert_eq!(
        nowhere,
        BTreeSet::from(NEWER),
        "no release exports them: are they spelled so?"
    );
}
