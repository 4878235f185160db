//! Copies of a real library with changed code, vtables or symbols: what the resolver must and must not accept.

use tracer_capture::runtime::resolver::{DoorbellRole, InstructionKind, Outcome, QueueRole, Resolution, ResolverStep};

use super::known;
use super::library;
use super::patch::Patched;

/// Returns a copy of the build whose code the tests below change.
fn trixie() -> Patched {
    let library = Patched(library::load("trixie"));
    let build_id = library.resolve().build_id;
    assert_eq!(
        build_id.as_deref(),
        Some(known::TRIXIE),
        "a new build in trixie: add it to tests/resolver/known.rs"
    );
    library
}

/// `mov 8(%rax),%rax; sfence; mov %rsi,(%rax)`: the end of each doorbell function.
const RING: [u8; 10] = [0x48, 0x8b, 0x40, 0x08, 0x0f, 0xae, 0xf8, 0x48, 0x89, 0x30];
const RET: u8 = 0xc3;
const NOP: u8 = 0x90;

/// Resolves a copy in which the thunk consists of `before`, [`RING`] and `after`.
fn store_release_thunk(before: &[u8], after: &[u8]) -> Resolution {
    let mut code = [before, &RING, after].concat();
    code.resize(known::SIGNAL_STORE_RELEASE_LEN, NOP);
    trixie().write(known::SIGNAL_STORE_RELEASE, &code).resolve()
}

#[test]
fn a_thunk_with_an_inlined_body_is_a_site_of_its_own() {
    // mov 8(%rdi),%rax; and the same after add $-0x38,%rdi (as a thunk does it, then as the queue's method does).
    for code in [
        &[0x48, 0x8b, 0x47, 0x08][..],
        &[0x48, 0x83, 0xc7, 0xc8, 0x48, 0x8b, 0x47, 0x40],
    ] {
        let resolution = store_release_thunk(code, &[RET]);
        let roles: Vec<_> = resolution
            .doorbells
            .iter()
            .map(|site| (site.role, site.signal_offset))
            .collect();
        assert_eq!(
            roles,
            [(DoorbellRole::Main, 0x40), (DoorbellRole::SignalThunkRelease, 8)]
        );
        let probe = resolution.doorbells[1].probe;
        assert_eq!(
            (probe.vaddr, probe.instruction),
            (known::SIGNAL_STORE_RELEASE, InstructionKind::Other)
        );
        assert_eq!(resolution.notes, Vec::<String>::new());
    }
}

#[test]
fn a_thunk_that_contradicts_the_method_is_refused() {
    let other_signal = store_release_thunk(&[0x48, 0x8b, 0x47, 0x10], &[RET]);
    assert_absent(&other_signal, "finds its signal at 0x10, but StoreRelaxed implies 0x8");
    // The thunk rings, then jumps to StoreRelaxed, which rings again: sub $0x38,%rdi; jmp StoreRelaxed.
    let jump = (known::STORE_RELAXED as u32)
        .wrapping_sub(known::SIGNAL_STORE_RELEASE as u32 + 23)
        .to_le_bytes();
    let twice = store_release_thunk(
        &[0x48, 0x8b, 0x47, 0x08],
        &[&[0x48, 0x83, 0xef, 0x38, 0xe9], &jump[..]].concat(),
    );
    assert_absent(&twice, "doorbells would count twice");
}

#[test]
fn a_thunk_that_does_nothing_known_is_noted() {
    let resolution = trixie().write(known::SIGNAL_STORE_RELEASE, &[RET]).resolve();
    assert_eq!(resolution.doorbells.len(), 1);
    assert!(
        resolution.notes[0].contains("neither rings a doorbell nor hands over"),
        "{:?}",
        resolution.notes
    );
}

#[test]
fn a_value_that_only_some_paths_keep_is_not_the_value() {
    // test %eax,%eax; je 1f; xor %esi,%esi; 1: mov 8(%rdi),%rax
    let resolution = store_release_thunk(&[0x85, 0xc0, 0x74, 0x02, 0x31, 0xf6, 0x48, 0x8b, 0x47, 0x08], &[RET]);
    assert_eq!(resolution.doorbells.len(), 1);
    assert!(
        resolution.notes[0].contains("in a way that was not understood"),
        "{:?}",
        resolution.notes
    );
}

#[test]
fn a_method_that_stores_something_else_is_refused() {
    let (store, rdi_instead_of_rsi) = (0x4e693, [0x48, 0x89, 0x38]);
    let resolution = trixie().write(store, &rdi_instead_of_rsi).resolve();
    assert_absent(
        &resolution,
        "AqlQueue::StoreRelaxed at 0x4e5c0 does not store rsi to a doorbell",
    );
}

#[test]
fn two_classes_that_ring_doorbells_are_not_guessed_between() {
    let mut library = trixie();
    for slot in 0..known::QUEUE_SLOTS {
        let function = library.pointer(known::QUEUE_VTABLE + slot * 8);
        library = library.set_pointer(known::OTHER_QUEUE_VTABLE + slot * 8, function);
    }
    let code = [&[0x48, 0x8b, 0x47, 0x40], &RING[..], &[RET]].concat();
    let store_relaxed = known::OTHER_QUEUE_VTABLE + (known::QUEUE_SLOTS - 2) * 8;
    let library = library.write(known::SIGNAL_STORE_RELEASE, &code);
    let library = library.set_pointer(store_relaxed, known::SIGNAL_STORE_RELEASE);
    assert_absent(&library.resolve(), "several classes look like AqlQueue");
}

fn assert_absent(resolution: &Resolution, reason: &str) {
    assert_eq!(resolution.doorbells, [], "{reason}");
    assert!(
        resolution.notes.iter().any(|note| note.contains(reason)),
        "{reason}: {:?}",
        resolution.notes
    );
    assert!(
        !resolution.sdma.is_empty() && !resolution.exports.reserves.is_empty(),
        "the rest is still there"
    );
}

#[test]
fn an_sdma_doorbell_needs_the_whole_pattern() {
    let changes: [(u64, &[u8]); 4] = [
        (0x37481, &[0x48, 0x89, 0x18]), // mov %rbx,(%rax): another value to the write pointer
        (0x3748b, &[0x48, 0x89, 0x18]), // the same to the doorbell
        (0x37491, &[0x48, 0x89, 0x9d]), // mov %rbx,0xb0(%rbp): another value committed
        (0x37491, &[0x4c, 0x89, 0xad, 0xb8, 0, 0]), // mov %r13,0xb8(%rbp): not to the field waited on
    ];
    for (offset, code) in changes {
        let resolution = trixie().write(offset, code).resolve();
        let functions: Vec<_> = resolution.sdma.iter().map(|site| site.probe.function).collect();
        assert_eq!(functions, [0x35710, 0x39200], "{offset:#x}");
    }
}

const SYMBOLS: [(&str, u64); 5] = [
    ("_ZN4rocr3AMD8AqlQueue12StoreRelaxedEl", known::STORE_RELAXED),
    ("_ZN4rocr3AMD8AqlQueue12StoreReleaseEl", known::STORE_RELEASE),
    (
        "_ZThn56_N4rocr3AMD8AqlQueue12StoreRelaxedEl",
        known::SIGNAL_STORE_RELAXED,
    ),
    (
        "_ZThn56_N4rocr3AMD8AqlQueue12StoreReleaseEl",
        known::SIGNAL_STORE_RELEASE,
    ),
    ("_ZN4rocr3AMD8AqlQueue19AddWriteIndexAcqRelEm", 0x4e4c0),
];

#[test]
fn symbols_lead_to_the_same_sites_as_the_vtables() {
    let by_shape = trixie().resolve();
    let similar = [
        ("_ZThn8_", 0x37400),
        ("_ZThn8_El", 0x37400),
        ("_ZThn8_N3foo12StoreRelaxedEl", 0x37400),
    ];
    let by_name = trixie().add_symtab(&[SYMBOLS.as_slice(), &similar].concat()).resolve();
    assert_eq!(by_name.doorbells[0].step, ResolverStep::Symtab);
    assert_eq!(by_name.doorbells[0].probe, by_shape.doorbells[0].probe);
    assert_eq!(by_name.doorbells[0].signal_offset, by_shape.doorbells[0].signal_offset);
    assert_eq!(by_name.notes, Vec::<String>::new());
    let own = |resolution: &Resolution| resolution.own_reserve.map(|site| (site.probe, site.queue_offset));
    assert!(own(&by_name).is_some());
    assert_eq!(own(&by_name), own(&by_shape));
}

/// An addition to a word other than the write index, or of a value other than the argument, is not probed.
#[test]
fn the_runtimes_own_reserve_needs_the_whole_pattern() {
    let site = trixie().resolve().own_reserve.unwrap();
    assert_eq!((site.probe.function, site.queue_offset), (0x4e4c0, 0x18));
    let changes: [(u64, &[u8]); 3] = [
        (0x4e4ce, &[0x48, 0x83, 0xc2, 0x40]), // add $0x40,%rdx: another word of the queue
        (0x4e4c8, &[0x48, 0x89, 0xf8]),       // mov %rdi,%rax: adds another value
        (0x4e4d2, &[0x90]),                   // nop for the lock prefix
    ];
    for (offset, code) in changes {
        let resolution = trixie().write(offset, code).resolve();
        assert_eq!(resolution.own_reserve, None, "{offset:#x}");
        let notes = resolution.notes.join("; ");
        assert!(
            !resolution.doorbells.is_empty() || notes.contains("no vtable"),
            "{offset:#x}: {notes}"
        );
    }
}

/// A function that stores to another word, stores another value, or continues in an unknown way, does not store the write index.
#[test]
fn a_store_of_the_write_index_needs_the_whole_pattern() {
    let changes: [(u64, &[u8]); 3] = [
        (0x4e59b, &[0x40]),             // mov %rsi,0x40(%rax)
        (0x4e598, &[0x48, 0x89, 0x78]), // mov %rdi,0x38(%rax)
        (0x4e59c, &[0x06]),             // no instruction for ret
    ];
    for (offset, code) in changes {
        let resolution = trixie().write(offset, code).resolve();
        let roles: Vec<_> = resolution.queue_functions.iter().map(|found| found.role).collect();
        assert_eq!(
            roles,
            [QueueRole::StoreWriteIndexRelease, QueueRole::ExecutePm4],
            "{offset:#x}"
        );
        let mut account = resolution.account.iter();
        let refused = account.find(|decision| decision.looked_at == "AqlQueue::StoreWriteIndexRelaxed at 0x4e590");
        assert_eq!(refused.map(|decision| decision.outcome), Some(Outcome::Refused));
    }
}

#[test]
fn packed_relocations_are_relocations() {
    assert_eq!(trixie().pack_relocations().resolve(), trixie().resolve());
}

#[test]
fn symbols_that_lie_are_not_believed() {
    let elsewhere = SYMBOLS.map(|(name, vaddr)| (name, if vaddr == known::STORE_RELAXED { 0x37400 } else { vaddr }));
    let ambiguous = [SYMBOLS.as_slice(), &[(SYMBOLS[0].0, 0x37400)]].concat();
    for symbols in [elsewhere.as_slice(), &ambiguous, &SYMBOLS[..3]] {
        let resolution = trixie().add_symtab(symbols).resolve();
        assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
        assert_eq!(resolution.doorbells[0].probe.function, known::STORE_RELAXED);
        assert_eq!(resolution.notes.len(), 1, "{:?}", resolution.notes);
    }
}
