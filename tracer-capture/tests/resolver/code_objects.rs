//! Tests of the place where the runtime notifies debuggers of code objects.

use tracer_capture::runtime::resolver::resolve;

use super::library;
use super::patch::Patched;

/// Build id, `_loader_debug_state`, `_amdgpu_r_debug`. The function's address comes from disassemblies and, in running processes,
/// from `r_brk`.
const KNOWN: [(&str, u64, u64); 4] = [
    ("3ef9d39e4700b0681ee0ff8d2929b92c62f30294", 0x71640, 0x14_c060),
    ("b6b95ef508da4a05ac4a421d634550f3ed87fd60", 0x9_ce60, 0x1a_8280),
    ("5412e7bc37abffd295a4814cb8aff2a81bef0a8c", 0xc_3fd0, 0x42_a5a0),
    ("973abb449f02e6d1eab82b44df7c2165782c5e99", 0xc_3b60, 0x42_ddc0),
];

#[test]
fn every_release_has_its_function() {
    for (suite, bytes) in library::all() {
        let resolution = resolve(&bytes).unwrap();
        let site = resolution
            .code_objects
            .unwrap_or_else(|| panic!("{suite}: {:?}", resolution.notes));
        assert_eq!(
            site.debug,
            site.probe.vaddr.wrapping_add_signed(site.debug_displacement.into()),
            "{suite}"
        );
        if let Some((_, function, debug)) = KNOWN
            .iter()
            .find(|known| resolution.build_id.as_deref() == Some(known.0))
        {
            assert_eq!((site.probe.function, site.debug), (*function, *debug), "{suite}");
        }
    }
}

/// 6.1.2 has `r_brk` in the file. If it contradicts the callers, the resolver uses neither function.
#[test]
fn a_contradiction_is_no_site() {
    let library = Patched(library::load("trixie"));
    let (_, function, debug) = KNOWN[1];
    let at = library
        .0
        .windows(24)
        .position(|entry| {
            let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("8 bytes"));
            (word(0), word(8), word(16)) == (debug + 0x10, 8, function)
        })
        .expect("the relocation of r_brk");
    let changed = library.write(at as u64 + 16, &(function + 0x10).to_le_bytes());
    let resolution = resolve(&changed.0).unwrap();
    assert_eq!(resolution.code_objects, None);
    assert!(
        resolution.notes.iter().any(|note| note.contains("r_brk")),
        "{:?}",
        resolution.notes
    );
    assert!(!resolution.doorbells.is_empty(), "the rest is as it was");
}

/// Frames of a malicious file may claim that every function reaches to the end of the code. Reading each of them whole took 2 s for
/// this library, while its process is paused, and the time grows with the square of its length.
#[test]
fn functions_that_lie_over_each_other_are_not_read_for_ever() {
    let mut library = Patched(library::load("trixie"));
    let (frames, text) = (library.section(".eh_frame"), library.section(".text"));
    let half = |library: &Patched, at: usize| (library.word(at) & 0xffff_ffff) as usize;
    let mut at = frames.start;
    let mut changed = 0;
    while at + 16 < frames.end && half(&library, at) != 0 {
        // A frame description, unlike a common part, has the start, relative to the field's own place, and the length. Addresses
        // are file offsets.
        if half(&library, at + 4) != 0 {
            let start = (at + 8).wrapping_add_signed(half(&library, at + 8) as i32 as isize);
            if text.contains(&start) {
                library = library.write(at as u64 + 12, &((text.end - start) as u32).to_le_bytes());
                changed += 1;
            }
        }
        at += half(&library, at) + 4;
    }
    assert!(changed > 3000, "{changed} functions");
    let resolution = library.resolve();
    assert_eq!((resolution.code_objects, resolution.doorbells), (None, Vec::new()));
    assert!(
        resolution.notes[0].contains("no .eh_frame that can be believed"),
        "{:?}",
        resolution.notes
    );
}
