//! Each step of the ladder finds the same functions in every available runtime, even if the whole library is moved.

use std::path::{Path, PathBuf};

use tracer_capture::runtime::debug_files::{Network, Search};
use tracer_capture::runtime::resolver::{
    Confidence, Outcome, QueueRole, Resolution, ResolverStep, Sought, resolve, resolve_with,
};

use super::library;
use super::names::{borrowed, debug_file, symbols};
use super::patch::Patched;

/// A multiple of a page that is not a distance in any library.
const SHIFT: u64 = 0x0123_4000;
const GAP: u64 = 0x3000;

/// Asserts that both resolutions found the same places, whatever the step.
fn assert_same(suite: &str, a: &Resolution, b: &Resolution) {
    let doorbells = |r: &Resolution| -> Vec<_> {
        let sites = r.doorbells.iter();
        sites
            .map(|site| (site.role, site.probe, site.signal_offset, site.doorbell_stores.clone()))
            .collect()
    };
    let sdma = |r: &Resolution| -> Vec<_> { r.sdma.iter().map(|site| (site.probe, site.doorbell_store)).collect() };
    let own = |r: &Resolution| r.own_reserve.map(|site| (site.probe, site.queue_offset));
    assert_eq!(doorbells(a), doorbells(b), "{suite}");
    assert_eq!(a.functions, b.functions, "{suite}");
    assert_eq!((sdma(a), own(a)), (sdma(b), own(b)), "{suite}");
    assert_eq!(a.exports, b.exports, "{suite}");
    let functions = |r: &Resolution| -> Vec<_> {
        let functions = r.queue_functions.iter();
        functions.map(|f| (f.role, f.probe, f.queue_offset)).collect()
    };
    assert_eq!(functions(a), functions(b), "{suite}");
    assert_eq!(functions(a).len(), QueueRole::ALL.len(), "{suite}");
}

fn outcome(resolution: &Resolution, step: ResolverStep) -> Option<Outcome> {
    let mut account = resolution.account.iter();
    let decision = account.rfind(|decision| decision.sought == Sought::Doorbells && decision.step == step);
    decision.map(|decision| decision.outcome)
}

fn assert_confidence(suite: &str, resolution: &Resolution, step: ResolverStep, confidence: Confidence) {
    for site in &resolution.doorbells {
        assert_eq!((site.step, site.confidence), (step, confidence), "{suite}");
    }
    let own = resolution.own_reserve.as_ref().expect("found");
    assert_eq!((own.step, own.confidence), (step, confidence), "{suite}");
    for site in &resolution.sdma {
        assert_eq!(
            (site.step, site.confidence),
            (ResolverStep::CodePattern, confidence),
            "{suite}"
        );
    }
}

#[test]
fn every_step_finds_the_same_functions() {
    for (suite, bytes) in library::all() {
        let stripped = resolve(&bytes).unwrap();
        assert_confidence(&suite, &stripped, ResolverStep::VtableShape, Confidence::Medium);
        assert_eq!(outcome(&stripped, ResolverStep::Symtab), Some(Outcome::Absent));
        assert_eq!(outcome(&stripped, ResolverStep::DebugFile), Some(Outcome::NotTried));
        assert_eq!(outcome(&stripped, ResolverStep::VtableShape), Some(Outcome::Used));

        let symbols = symbols(&stripped);
        let named = Patched(bytes.clone()).add_symtab(&borrowed(&symbols)).resolve();
        assert_same(&suite, &stripped, &named);
        assert_confidence(&suite, &named, ResolverStep::Symtab, Confidence::High);
        assert_eq!(outcome(&named, ResolverStep::VtableShape), Some(Outcome::Agrees));
        assert_eq!(outcome(&named, ResolverStep::DebugFile), None);

        let dir = tempfile::tempdir().unwrap();
        install_debug_file(dir.path(), &bytes, &symbols);
        let debug = resolve_with(&bytes, &mut search(dir.path())).unwrap();
        assert_same(&suite, &stripped, &debug);
        assert_confidence(&suite, &debug, ResolverStep::DebugFile, Confidence::High);
        assert_eq!(outcome(&debug, ResolverStep::DebugFile), Some(Outcome::Used));
        assert_eq!(debug.notes, Vec::<String>::new());
    }
}

/// Hides the vtables, as if the build's classes had another shape: only names remain.
#[test]
fn names_suffice_where_the_shape_is_unknown() {
    for (suite, bytes) in library::all() {
        let stripped = resolve(&bytes).unwrap();
        let hidden = Patched(bytes).rename_section(".data.rel.ro", ".data.rel.xx");
        let blind = hidden.resolve();
        assert_eq!(blind.doorbells, [], "{suite}");
        assert_eq!(outcome(&blind, ResolverStep::VtableShape), Some(Outcome::Absent));
        let symbols = symbols(&stripped);
        let named = hidden.add_symtab(&borrowed(&symbols)).resolve();
        assert_same(&suite, &stripped, &named);
        assert_eq!(named.doorbells[0].confidence, Confidence::Medium);
        assert_eq!(outcome(&named, ResolverStep::VtableShape), Some(Outcome::Refused));
    }
}

#[test]
fn nothing_depends_on_where_it_lies() {
    for (suite, bytes) in library::all() {
        let here = resolve(&bytes).unwrap();
        let shifted = Patched(bytes).shift(SHIFT, GAP);
        let there = shifted.resolve();
        let doorbells = |r: &Resolution, by: u64| -> Vec<_> {
            let sites = r.doorbells.iter();
            sites
                .map(|site| {
                    (
                        site.role,
                        site.probe.function + by,
                        site.probe.vaddr + by,
                        site.signal_offset,
                    )
                })
                .collect()
        };
        assert_eq!(doorbells(&here, SHIFT), doorbells(&there, 0), "{suite}");
        let sdma = |r: &Resolution, by: u64| -> Vec<_> { r.sdma.iter().map(|s| s.doorbell_store + by).collect() };
        assert_eq!(sdma(&here, SHIFT), sdma(&there, 0), "{suite}");
        assert_eq!(here.exports.reserves.len(), there.exports.reserves.len(), "{suite}");
        for (a, b) in here.doorbells.iter().zip(&there.doorbells) {
            // The code is in the second segment.
            assert_eq!(a.probe.file_offset + GAP, b.probe.file_offset, "{suite}");
        }
        assert_eq!(here.notes, there.notes);
        let symbols = symbols(&there);
        let named = shifted.add_symtab(&borrowed(&symbols)).resolve();
        assert_same(&suite, &there, &named);
        assert_confidence(&suite, &named, ResolverStep::Symtab, Confidence::High);
    }
}

/// The names lead to another function that rings: it passes every examination of its own, but is not that of the class.
#[test]
fn steps_that_contradict_each_other_are_both_refused() {
    let bytes = library::load("trixie");
    let stripped = resolve(&bytes).unwrap();
    let mut symbols = symbols(&stripped);
    // The thunk that hands over to StoreRelaxed through the vtable gets both names. By itself it is valid in both roles.
    let release = symbols
        .iter()
        .find(|(name, _)| name.starts_with("_ZThn56") && name.contains("StoreRelease"));
    let release = release.expect("named").1;
    for (name, vaddr) in &mut symbols {
        if name.starts_with("_ZThn56") {
            *vaddr = release;
        }
    }
    let resolution = Patched(bytes).add_symtab(&borrowed(&symbols)).resolve();
    assert_eq!(resolution.doorbells, []);
    assert_eq!(outcome(&resolution, ResolverStep::Symtab), Some(Outcome::Refused));
    assert_eq!(outcome(&resolution, ResolverStep::VtableShape), Some(Outcome::Refused));
    assert!(resolution.notes[0].contains("not guessing"), "{:?}", resolution.notes);
}

/// The steps agree on the functions that ring. They disagree on another function, so one of them is wrong about it.
#[test]
fn a_function_that_steps_do_not_agree_on_is_not_believed() {
    let bytes = library::load("trixie");
    let stripped = resolve(&bytes).unwrap();
    let add = "AddWriteIndexAcqRel";
    let swapped = [
        ("StoreWriteIndexRelaxed", "StoreWriteIndexRelease"),
        (add, "AddWriteIndexAcquire"),
    ];
    // These functions pass every examination of their own: the other store, and the next addition in the vtable.
    let next_add = Patched(bytes.clone()).pointer(super::known::QUEUE_VTABLE + 18 * 8);
    for (name, other) in swapped {
        let mut symbols = symbols(&stripped);
        let place = |name: &str| symbols.iter().find(|known| known.0.contains(name)).map(|known| known.1);
        let lie = place(other).unwrap_or(next_add);
        for (known, vaddr) in &mut symbols {
            if known.contains(name) {
                *vaddr = lie;
            }
        }
        let named = Patched(bytes.clone()).add_symtab(&borrowed(&symbols)).resolve();
        assert_eq!(outcome(&named, ResolverStep::VtableShape), Some(Outcome::Agrees));
        assert_eq!(named.doorbells[0].confidence, Confidence::High);
        assert_eq!(
            named.own_reserve.is_some(),
            name != add,
            "{name}: {:x?}",
            named.own_reserve
        );
        let roles: Vec<_> = named.queue_functions.iter().map(|found| found.role).collect();
        let believed = if name == add {
            &QueueRole::ALL[..]
        } else {
            &QueueRole::ALL[1..]
        };
        assert_eq!(roles, believed, "{name}");
    }
}

/// Creates a debug file at the place that the build-id names.
pub fn install_debug_file(root: &Path, library: &[u8], symbols: &[(String, u64)]) -> PathBuf {
    let build_id = tracer_capture::runtime::resolver::build_id(library).expect("it has one");
    let folder = root.join("usr/lib/debug/.build-id").join(&build_id[..2]);
    std::fs::create_dir_all(&folder).expect("a folder of the test");
    let path = folder.join(format!("{}.debug", &build_id[2..]));
    std::fs::write(&path, debug_file(library, symbols)).expect("a folder of the test");
    path
}

/// Searches for debug files in a root, for the library at its path in Debian.
pub fn search(root: &Path) -> Search {
    Search::new(root, library::PATH, Vec::new(), no_network())
}

pub fn no_network() -> Network {
    Network {
        allowed: false,
        urls: None,
        client: "debuginfod-find".into(),
        patience: std::time::Duration::from_secs(10),
    }
}
