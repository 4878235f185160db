//! Where the runtime tells of code objects.

use tracer_capture::resolver::resolve;

use super::library;
use super::patch::Patched;

/// Build id, `_loader_debug_state`, `_amdgpu_r_debug`: the first read in disassemblies and, in running processes, in `r_brk`.
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

/// 6.1.2 has `r_brk` in the file: one that contradicts what callers do is not followed, and neither is the other.
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
