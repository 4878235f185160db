//! Files that are not HSA runtimes, or are damaged ones.

use tracer_capture::runtime::resolver::{ResolveError, looks_like_hsa_runtime, resolve};

use super::library;
use super::patch::Patched;

#[test]
fn other_files_are_refused() {
    assert_eq!(resolve(&[]), Err(ResolveError::NotElf));
    assert_eq!(resolve(b"#!/bin/sh\n"), Err(ResolveError::NotElf));
    assert_eq!(resolve(&library::libc()), Err(ResolveError::NoHsaRuntime));
    let i386 = Patched(library::load("trixie")).write(4, &[1]);
    let aarch64 = Patched(library::load("trixie")).write(0x12, &[183]);
    for library in [i386, aarch64] {
        assert_eq!(resolve(&library.0), Err(ResolveError::Not64BitX86));
    }
    assert!(!looks_like_hsa_runtime(&[]) && !looks_like_hsa_runtime(&library::libc()));
}

#[test]
fn a_function_that_was_removed_is_reported() {
    let none = Patched(library::load("trixie"))
        .write(0x28, &[0; 8])
        .write(0x3c, &[0; 4]);
    assert_eq!(resolve(&none.0), Err(ResolveError::NoSections));
    let frames = Patched(library::load("trixie")).rename_section(".eh_frame", ".eh_frxxx");
    let resolution = frames.resolve();
    assert_eq!((resolution.doorbells.len(), resolution.sdma.len()), (0, 0));
    assert!(
        resolution.notes.iter().any(|note| note.contains("no .eh_frame")),
        "{:?}",
        resolution.notes
    );
    assert!(
        resolution
            .account
            .iter()
            .any(|decision| decision.looked_at == ".eh_frame")
    );
    assert_eq!(
        resolution.last_resort().len(),
        2,
        "the exported functions are still there"
    );
}

#[test]
fn an_unusable_hash_table_is_done_without() {
    let table = Patched(library::load("trixie")).section(".gnu.hash").start as u64;
    let (bucket_count, bloom_count, bloom_shift) = (table, table + 8, table + 12);
    for (field, value) in [
        (bucket_count, 0u32),
        (bloom_count, 0),
        (bloom_count, 3),
        (bloom_shift, 32),
    ] {
        let library = Patched(library::load("trixie")).write(field, &value.to_le_bytes());
        assert!(looks_like_hsa_runtime(&library.0));
    }
}

#[test]
fn truncated_libraries_do_not_panic() {
    let bytes = library::load("trixie");
    let steps = (0..64)
        .chain((64..8192).step_by(101))
        .chain((8192..bytes.len()).step_by(bytes.len() / 64));
    for len in steps {
        let cut = &bytes[..len];
        let resolved = resolve(cut).is_ok_and(|resolution| !resolution.doorbells.is_empty());
        assert!(
            !resolved,
            "the section headers are at the end of the file, yet {len} bytes resolved"
        );
        assert!(!looks_like_hsa_runtime(cut));
    }
}

#[test]
fn damaged_libraries_do_not_panic() {
    let bytes = library::load("trixie");
    let section_headers = Patched(bytes.clone()).word(0x28) as usize;
    let mut random = Xorshift(0x2545_f491_4f6c_dd1d);
    let regions = [
        0..0x40,
        0x40..0x400,
        section_headers..bytes.len(),
        0x400..0x20000,
        0..bytes.len(),
    ];
    for region in regions {
        for _ in 0..120 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(8) {
                let at = region.start + random.below(region.len());
                let extremes = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8];
                damaged[at] = extremes[random.below(extremes.len())];
            }
            let _ = resolve(&damaged);
            let _ = looks_like_hsa_runtime(&damaged);
        }
    }
}

/// Marsaglia's xorshift64: the same sequence on every run.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
