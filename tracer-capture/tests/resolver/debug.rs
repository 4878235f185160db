//! Separate debug files: which of them the resolver accepts, and what it reports about the others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use tracer_capture::runtime::debug_files::{Network, Search, read};
use tracer_capture::runtime::resolver::{Decision, Outcome, Resolution, ResolverStep, resolve, resolve_with};

use super::library;
use super::names::{crc32, debug_file, symbols};
use super::patch::Patched;
use super::steps::{install_debug_file, no_network, search};

/// Returns the decision about each place where a debug file could have been.
fn places(resolution: &Resolution) -> Vec<&Decision> {
    let account = resolution.account.iter();
    account
        .filter(|decision| decision.step == ResolverStep::DebugFile)
        .collect()
}

fn resolve_in(root: &Path, library: &[u8]) -> Resolution {
    resolve_with(library, &mut search(root)).expect("set up")
}

struct Fixture {
    dir: tempfile::TempDir,
    library: Vec<u8>,
    debug: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let library = library::load("trixie");
        let debug = debug_file(&library, &symbols(&resolve(&library).expect("set up")));
        let dir = tempfile::tempdir().expect("set up");
        Self { dir, library, debug }
    }

    /// Creates a file below the root.
    fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("set up")).expect("set up");
        fs::write(path, bytes).expect("set up");
    }

    fn resolve(&self) -> Resolution {
        resolve_in(self.dir.path(), &self.library)
    }

    /// Returns the library with a link to a debug file of this name and checksum.
    fn linked(&self, name: &str, checksum: u32) -> Vec<u8> {
        Patched(self.library.clone()).link_debug_file(name, checksum).0
    }
}

#[test]
fn without_a_debug_file_every_searched_place_is_reported() {
    let fixture = Fixture::new();
    let resolution = fixture.resolve();
    let places = places(&resolution);
    let folder = "/usr/lib/x86_64-linux-gnu";
    let name = "b95ef508da4a05ac4a421d634550f3ed87fd60.debug";
    let expected = [
        format!("/usr/lib/debug/.build-id/b6/{name}"),
        format!("{folder}/{name}"),
        format!("{folder}/.debug/{name}"),
        format!("/usr/lib/debug{folder}/{name}"),
        "debuginfod-find".to_owned(),
    ];
    let looked_at: Vec<_> = places.iter().map(|place| place.looked_at.clone()).collect();
    assert_eq!(looked_at, expected);
    assert!(
        places[..4].iter().all(|place| place.outcome == Outcome::Absent),
        "{places:?}"
    );
    assert_eq!(places[4].outcome, Outcome::NotTried);
    assert!(places[4].reason.contains("--debuginfod"), "{places:?}");
    assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
}

#[test]
fn a_link_leads_to_the_file_of_its_checksum_only() {
    for folder in ["", "/.debug"] {
        let fixture = Fixture::new();
        let library = fixture.linked("x.debug", crc32(&fixture.debug));
        let place = format!("/usr/lib/x86_64-linux-gnu{folder}/x.debug");
        fixture.put(&place, &fixture.debug);
        let resolution = resolve_in(fixture.dir.path(), &library);
        assert_eq!(
            resolution.doorbells[0].step,
            ResolverStep::DebugFile,
            "{:?}",
            resolution.account
        );
        let other = resolve_in(fixture.dir.path(), &fixture.linked("x.debug", 1));
        assert_eq!(other.doorbells[0].step, ResolverStep::VtableShape);
        let refused = places(&other).into_iter().find(|decision| decision.looked_at == place);
        let refused = refused.expect("it was looked at");
        assert_eq!(refused.outcome, Outcome::Refused);
        assert!(refused.reason.contains("checksum"), "{refused:?}");
    }
}

#[test]
fn a_link_out_of_its_folders_is_not_followed() {
    let fixture = Fixture::new();
    fixture.put("/etc/x.debug", &fixture.debug);
    let library = fixture.linked("../../../etc/x.debug", crc32(&fixture.debug));
    let resolution = resolve_in(fixture.dir.path(), &library);
    assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
    assert!(places(&resolution).iter().all(|place| !place.looked_at.contains("etc")));
}

#[test]
fn a_file_of_another_build_is_refused() {
    let fixture = Fixture::new();
    let path = install_debug_file(fixture.dir.path(), &fixture.library, &[]);
    let id = Patched(fixture.debug.clone()).section(".note.gnu.build-id").start as u64 + 16;
    fs::write(&path, Patched(fixture.debug.clone()).write(id, &[0xee]).0).unwrap();
    let resolution = fixture.resolve();
    assert_eq!(places(&resolution)[0].outcome, Outcome::Refused);
    assert!(
        places(&resolution)[0].reason.contains("another build: ee"),
        "{:?}",
        places(&resolution)
    );
    assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
}

#[test]
fn a_file_that_is_no_debug_file_gives_one_sentence() {
    let fixture = Fixture::new();
    let path = install_debug_file(fixture.dir.path(), &fixture.library, &[]);
    let cases: [(&[u8], &str); 5] = [
        (b"", "not an ELF file"),
        (
            b"#!/bin/sh\nexit 0\n# and more of it, longer than an ELF header is\n",
            "not an ELF file",
        ),
        (&fixture.library, "no .symtab"),
        (&fixture.debug[..fixture.debug.len() / 2], "point outside"),
        (&fixture.debug[..70], "point outside"),
    ];
    for (bytes, words) in cases {
        fs::write(&path, bytes).unwrap();
        let resolution = fixture.resolve();
        let first = places(&resolution)[0];
        assert!(
            first.outcome == Outcome::Refused && first.reason.contains(words),
            "{first:?}"
        );
        assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
    }
    // Opening a FIFO would wait for its other end; a folder can't be read.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(places(&fixture.resolve())[0].outcome, Outcome::Refused);
}

/// In a container, a link to an absolute path means a path in the container.
#[test]
fn links_stay_in_the_root() {
    let fixture = Fixture::new();
    let path = install_debug_file(fixture.dir.path(), &fixture.library, &[]);
    fs::remove_file(&path).unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), &fixture.debug).unwrap();
    symlink(outside.path(), &path).unwrap();
    assert_eq!(places(&fixture.resolve())[0].outcome, Outcome::Absent);
    fs::remove_file(&path).unwrap();
    fixture.put("/opt/debug", &fixture.debug);
    symlink("/opt/debug", &path).unwrap();
    assert_eq!(places(&fixture.resolve())[0].outcome, Outcome::Used);
}

#[test]
fn a_cache_of_debuginfod_is_used_without_asking() {
    let fixture = Fixture::new();
    let build_id = resolve(&fixture.library).unwrap().build_id.unwrap();
    fixture.put(&format!("cache/{build_id}/debuginfo"), &fixture.debug);
    let caches = vec![fixture.dir.path().join("nothing"), fixture.dir.path().join("cache")];
    let mut search = Search::new(fixture.dir.path(), library::PATH, caches, no_network());
    let resolution = resolve_with(&fixture.library, &mut search).unwrap();
    assert_eq!(resolution.doorbells[0].step, ResolverStep::DebugFile);
}

/// Resolves with a script in the role of the client.
fn with_client(fixture: &Fixture, script: &str, allowed: bool, patience: Duration) -> Resolution {
    let client = fixture.dir.path().join("client");
    fs::write(&client, format!("#!/bin/sh\n{script}\n")).expect("set up");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("set up");
    let network = Network {
        allowed,
        urls: Some("https://example.invalid".into()),
        client,
        patience,
    };
    let mut search = Search::new(fixture.dir.path(), library::PATH, Vec::new(), network);
    resolve_with(&fixture.library, &mut search).expect("set up")
}

#[test]
fn the_network_is_asked_only_if_allowed() {
    let fixture = Fixture::new();
    fixture.put("loaded", &fixture.debug);
    let loaded = fixture.dir.path().join("loaded");
    let asked = fixture.dir.path().join("asked");
    let script = format!(
        "echo \"$@ $DEBUGINFOD_URLS\" > {}; echo {}",
        asked.display(),
        loaded.display()
    );
    let long = Duration::from_secs(60);
    let resolution = with_client(&fixture, &script, false, long);
    assert!(!asked.exists());
    assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
    let resolution = with_client(&fixture, &script, true, long);
    assert_eq!(
        resolution.doorbells[0].step,
        ResolverStep::DebugFile,
        "{:?}",
        resolution.account
    );
    let build_id = resolution.build_id.unwrap();
    assert_eq!(
        fs::read_to_string(asked).unwrap(),
        format!("debuginfo {build_id} https://example.invalid\n")
    );
}

#[test]
fn a_client_that_fails_or_hangs_is_a_place_without_a_file() {
    let fixture = Fixture::new();
    for (script, words, outcome) in [
        ("exit 1", "no server has it", Outcome::Absent),
        ("echo nonsense", "did not print a file name", Outcome::Refused),
        ("exec sleep 1000", "did not answer", Outcome::Refused),
    ] {
        // A script that does not hang exits long before this.
        let patience = Duration::from_secs(if words.contains("answer") { 1 } else { 60 });
        let resolution = with_client(&fixture, script, true, patience);
        let last = *places(&resolution).last().unwrap();
        assert!(last.reason.contains(words) && last.outcome == outcome, "{last:?}");
        assert_eq!(resolution.doorbells[0].step, ResolverStep::VtableShape);
    }
}

#[test]
fn damaged_debug_files_do_not_panic() {
    let fixture = Fixture::new();
    let bytes = fixture.debug.as_slice();
    assert!(!read(&bytes).unwrap().functions.is_empty());
    for len in (0..300).chain((300..bytes.len()).step_by(bytes.len() / 64)) {
        let _ = read(&&bytes[..len]);
    }
    let headers = Patched(bytes.to_vec()).word(0x28) as usize;
    let mut damaged = bytes.to_vec();
    for at in (0..64).chain(headers..bytes.len()) {
        let whole = damaged[at];
        for value in [0, 0x7f, 0xff] {
            damaged[at] = value;
            let _ = read(&damaged.as_slice());
        }
        damaged[at] = whole;
    }
}
