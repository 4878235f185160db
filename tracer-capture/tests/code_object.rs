//! Tests of the code object parser with real code objects, changed copies, and files that are not code objects.

use std::path::{Path, PathBuf};

use tracer_capture::runtime::code_object::{ParseError, parse};

/// The kernels of tests/gpu-kernels.
const KERNELS: [&str; 5] = ["fill", "reduce", "saxpy", "spin", "vector_add"];

fn folder() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/gpu-kernels");
    std::env::var_os("TRACER_GPU_KERNELS").map_or(built, PathBuf::from)
}

fn load(name: &str) -> Vec<u8> {
    let path = folder().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask build`", path.display()))
}

#[test]
fn real_ones_tell_their_kernels() {
    for (name, target, version, wavefront) in [
        ("gfx90a.co", "amdgcn-amd-amdhsa--gfx90a", 4, 64),
        ("gfx942.co", "amdgcn-amd-amdhsa--gfx942", 5, 64),
        ("gfx1100.co", "amdgcn-amd-amdhsa--gfx1100", 5, 32),
        ("gfx11-generic.co", "amdgcn-amd-amdhsa--gfx11-generic", 6, 32),
    ] {
        let contents = parse(&load(name)).unwrap();
        assert_eq!(contents.target.as_deref(), Some(target));
        assert_eq!(contents.version, Some(version), "{name}");
        let mut kernels = contents.kernels;
        assert!(kernels.is_sorted_by_key(|kernel| kernel.offset));
        kernels.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(kernels.iter().map(|kernel| &*kernel.name).collect::<Vec<_>>(), KERNELS);
        for kernel in kernels {
            let resources = kernel.resources;
            assert_eq!(kernel.symbol, kernel.name);
            assert_eq!(resources.wavefront, Some(wavefront), "{kernel:?}");
            assert!(resources.vgprs.is_some() && resources.sgprs > Some(0), "{kernel:?}");
            assert!(resources.kernarg_bytes >= Some(8), "{kernel:?}");
            assert_eq!(
                (resources.group_bytes, resources.private_bytes),
                (Some(0), Some(0)),
                "{kernel:?}"
            );
        }
    }
}

/// Returns the file range of a section, according to the section headers.
fn section(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).expect("a sound file");
    let section = file.section_by_name(name).expect("the section");
    let (offset, size) = section.file_range().expect("it has contents");
    offset as usize..(offset + size) as usize
}

#[test]
fn without_metadata_the_descriptor_tells_less() {
    let mut bytes = load("gfx942.co");
    let whole = parse(&bytes).unwrap();
    let note = section(&bytes, ".note");
    bytes[note].fill(0);
    let contents = parse(&bytes).unwrap();
    assert_eq!((contents.target, contents.kernels.len()), (None, KERNELS.len()));
    for (kernel, whole) in contents.kernels.iter().zip(&whole.kernels) {
        assert_eq!((kernel.offset, &kernel.name), (whole.offset, &whole.name));
        assert_eq!(kernel.resources.kernarg_bytes, whole.resources.kernarg_bytes);
        assert_eq!(
            (kernel.resources.group_bytes, kernel.resources.private_bytes),
            (Some(0), Some(0))
        );
        assert_eq!(
            (
                kernel.resources.vgprs,
                kernel.resources.sgprs,
                kernel.resources.wavefront
            ),
            (None, None, None)
        );
    }
}

/// Version 2 has no descriptors: its kernels are symbols with a type of their own.
#[test]
fn version_2_has_symbols_of_another_kind() {
    let mut bytes = load("gfx942.co");
    assert_eq!(bytes[8], 3, "ABI version of code object version 5");
    bytes[8] = 0;
    assert_eq!(parse(&bytes).unwrap().kernels, []);
    let symbols = section(&bytes, ".dynsym");
    for symbol in bytes[symbols].chunks_exact_mut(24) {
        // Turns functions (2) into kernels (10), whatever their binding.
        if symbol[4] & 0xf == 2 {
            symbol[4] |= 8;
        }
    }
    let contents = parse(&bytes).unwrap();
    assert_eq!(contents.version, Some(2));
    let mut names: Vec<_> = contents.kernels.iter().map(|kernel| kernel.name.to_string()).collect();
    names.sort();
    assert_eq!(names, KERNELS);
}

#[test]
fn mangled_names_are_recorded_both_ways() {
    let mut bytes = load("gfx942.co");
    let strings = section(&bytes, ".dynstr");
    let text = &mut bytes[strings];
    let at = text
        .windows(14)
        .position(|window| window == b"\0vector_add.kd")
        .unwrap();
    text[at + 1..at + 11].copy_from_slice(b"_ZN1a1bIfE");
    // The mangled name is cut short, so it is shown as it is.
    let kernels = parse(&bytes).unwrap().kernels;
    assert!(kernels.iter().any(|kernel| &*kernel.name == "_ZN1a1bIfE"));
    let strings = section(&bytes, ".dynstr");
    bytes[strings][at + 1..at + 11].copy_from_slice(b"_Z6kernelv");
    let kernels = parse(&bytes).unwrap().kernels;
    let kernel = kernels.iter().find(|kernel| &*kernel.symbol == "_Z6kernelv").unwrap();
    assert_eq!(&*kernel.name, "kernel()");
}

#[test]
fn other_files_are_refused() {
    let host = std::fs::read("/proc/self/exe").unwrap();
    for bytes in [&b""[..], b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", &host] {
        assert_eq!(parse(bytes), Err(ParseError::NotCodeObject));
    }
}

#[test]
fn truncated_ones_do_not_panic() {
    let bytes = load("gfx1100.co");
    for len in 0..bytes.len() {
        assert!(
            parse(&bytes[..len]).is_err(),
            "the section headers are at the end, yet {len} bytes are enough"
        );
    }
}

/// To run this test for hours, set `CODE_OBJECT_FUZZ=SECONDS`.
#[test]
fn damaged_ones_do_not_panic() {
    let seconds = std::env::var("CODE_OBJECT_FUZZ")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds.unwrap_or(0));
    let (mut random, mut rounds) = (0x2545_f491_4f6c_dd1d_u64, 0_u64);
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let originals = ["gfx90a.co", "gfx1100.co", "gfx11-generic.co"].map(load);
    while rounds < 20_000 || std::time::Instant::now() < end {
        let mut bytes = originals[next(originals.len())].clone();
        for _ in 0..=next(6) {
            // Half of the damage goes to the most important parts: headers, notes, symbols.
            let region = if next(2) == 0 { 0xe00 } else { bytes.len() };
            let headers = bytes.len() - 15 * 64;
            let at = if next(4) == 0 {
                headers + next(15 * 64)
            } else {
                next(region)
            };
            match next(3) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes[at] ^= 1 << next(8),
                _ => {
                    let end = (at + 8).min(bytes.len());
                    bytes[at..end].fill([0, 0xff, 0x7f, 0x80][next(4)]);
                }
            }
        }
        if next(8) == 0 {
            bytes.truncate(next(bytes.len()));
        }
        if let Ok(contents) = parse(&bytes) {
            assert!(contents.kernels.len() <= 1 << 16);
        }
        rounds += 1;
    }
    println!("{rounds} damaged code objects");
}
