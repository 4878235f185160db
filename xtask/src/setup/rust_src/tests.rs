//! Tests of the ways to the source, with a stub instead of rustup and an archive of one file.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// A compiler without the source, a stub of rustup, and an archive.
struct Setting {
    dir: TempDir,
    source: RustSrc,
}

impl Setting {
    /// Creates the setting. `script` is what the stub runs. `$SYSROOT` is the compiler's folder.
    fn new(script: &str, limit: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sysroot = dir.path().join("toolchains/stable");
        fs::create_dir_all(&sysroot).unwrap();
        let program = dir.path().join("rustup");
        let text = format!(
            "#!/bin/sh\nSYSROOT='{}'\nDIR='{}'\n{script}\n",
            sysroot.display(),
            dir.path().display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let tree = dir.path().join("rust-src-9.9.9/library/core/src");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("lib.rs"), "// of the archive").unwrap();
        let archive = dir.path().join("rust-src-9.9.9.tar.xz");
        let mut tar = Command::new("tar");
        tar.arg("-cJf")
            .arg(&archive)
            .arg("-C")
            .arg(dir.path())
            .arg("rust-src-9.9.9");
        cmd::read(&mut tar).unwrap();
        let source = RustSrc {
            release: "9.9.9".to_owned(),
            place: sysroot.join("lib/rustlib/src/rust"),
            copy: dir.path().join("cache/rust-src/9.9.9"),
            archive,
            rustup: Ok(Rustup {
                program,
                toolchain: "stable".to_owned(),
                limit,
            }),
        };
        Self { dir, source }
    }

    /// Tries the ways in the real order, without the way that needs the network.
    fn go(&self) -> Result<()> {
        let source = &self.source;
        source.first_of(&[
            ("rustup", &|| source.by_rustup()),
            ("the archive", &|| source.by_archive()),
        ])
    }

    /// Returns the first words of the source that cargo would find after the copy was linked.
    fn found(&self) -> String {
        if !self.source.is_ready() {
            self.source.link().unwrap();
        }
        fs::read_to_string(self.source.place.join(PROOF)).unwrap()
    }
}

const LONG: Duration = Duration::from_secs(60);
const INSTALLS: &str = r#"[ "$*" = "component add rust-src --toolchain stable" ] || exit 9
mkdir -p "$SYSROOT/lib/rustlib/src/rust/library/core/src"
echo '// of rustup' >"$SYSROOT/lib/rustlib/src/rust/library/core/src/lib.rs""#;

#[test]
fn rustup_installs_the_component() {
    let setting = Setting::new(INSTALLS, LONG);
    setting.go().unwrap();
    assert_eq!(setting.found(), "// of rustup\n");
    assert!(!setting.source.copy.exists(), "no copy is needed");
}

#[test]
fn a_link_to_a_copy_that_is_gone_is_not_in_rustups_way() {
    let setting = Setting::new(INSTALLS, LONG);
    setting.source.link().unwrap();
    assert!(setting.source.place.is_symlink() && !setting.source.is_ready());
    setting.go().unwrap();
    assert_eq!(setting.found(), "// of rustup\n");
}

#[test]
fn the_next_way_is_taken_where_rustup_fails_or_does_nothing() {
    for script in ["echo 'error: no network' >&2; exit 1", "exit 0"] {
        let setting = Setting::new(script, LONG);
        setting.go().unwrap();
        assert_eq!(setting.found(), "// of the archive", "{script}");
    }
}

#[test]
fn a_rustup_that_hangs_is_killed_with_what_it_started() {
    // The grandchild keeps rustup's output open.
    let hangs = "sleep 600 & echo $! >\"$DIR/grandchild\"; mv \"$DIR/grandchild\" \"$DIR/pid\"; sleep 600";
    let setting = Setting::new(hangs, Duration::from_secs(2));
    setting.go().unwrap();
    assert_eq!(setting.found(), "// of the archive");
    let pid = fs::read_to_string(setting.dir.path().join("pid")).unwrap();
    let ended = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
    };
    // The kill of the grandchild is under way when the group's leader has exited.
    let began = std::time::Instant::now();
    while !ended() {
        assert!(began.elapsed() < LONG, "process {pid} was left behind");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_error_names_every_reason_and_the_fix() {
    let mut setting = Setting::new("echo 'error: first line\nsecond line' >&2; exit 1", LONG);
    setting.source.archive = setting.dir.path().join("gone.tar.xz");
    let error = setting.go().unwrap_err().to_string();
    for part in [
        "second line",
        "gone.tar.xz",
        "rustup: ",
        "the archive: ",
        "rustup component add",
    ] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn without_a_rustup_the_reason_is_given() {
    let mut setting = Setting::new("", LONG);
    setting.source.rustup = Err("rustup does not manage the compiler".to_owned());
    setting.go().unwrap();
    assert_eq!(setting.found(), "// of the archive");
}

#[test]
fn releases_are_compared_whole() {
    assert!(is_release("1.95.0+dfsg1-2~bpo13+1", "1.95.0"));
    assert!(is_release("1.95.0-1", "1.95.0"));
    assert!(!is_release("1.95.01-1", "1.95.0"));
    assert!(!is_release("1.96.1+dfsg1-2", "1.95.0"));
}
