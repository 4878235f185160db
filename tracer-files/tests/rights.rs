//! The rights of a thread after it has become another user's. Needs root; without it, these tests say so and end.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by it")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::thread::{CapabilitySet, capabilities};
use tracer_files::{Folder, Mode, Owner, append, write};

/// An ordinary user that owns nothing else.
const USER: u32 = 54321;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIPPED: only root can become another user");
    }
    root
}

fn user() -> Owner {
    Owner::user(USER, USER, vec![USER])
}

/// Creates a folder that the user owns, and one that root owns beside it.
fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (users, roots) = (dir.path().join("users"), dir.path().join("roots"));
    fs::create_dir(&users).unwrap();
    fs::create_dir(&roots).unwrap();
    std::os::unix::fs::chown(&users, Some(USER), Some(USER)).unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o755)).unwrap();
    (dir, users, roots)
}

fn status(line: &str) -> String {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap();
    let found = text.lines().find_map(|l| l.strip_prefix(line)).unwrap();
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_thread_has_the_users_ids_and_no_capability_and_others_keep_theirs() {
    if !is_root() {
        return;
    }
    let before = (status("Uid:"), status("Groups:"), status("CapEff:"));
    let seen = user()
        .run(|| {
            assert_eq!(capabilities(None).unwrap().effective, CapabilitySet::empty());
            assert_eq!(capabilities(None).unwrap().permitted, CapabilitySet::empty());
            (status("Uid:"), status("Gid:"), status("Groups:"), status("CapEff:"))
        })
        .unwrap();
    let ids = format!("0 0 0 {USER}");
    assert_eq!(
        seen,
        (ids.clone(), ids, USER.to_string(), "0000000000000000".to_owned())
    );
    assert_eq!((status("Uid:"), status("Groups:"), status("CapEff:")), before);
}

/// Tests more than the explicit removal: leaving fsuid 0 removes the rights over files by itself.
#[test]
fn root_rights_over_files_are_gone() {
    if !is_root() {
        return;
    }
    let (_dir, users, roots) = folders();
    let secret = roots.join("secret");
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    user()
        .run(|| {
            for done in [
                fs::write(roots.join("new"), "x"),
                fs::write(&secret, "x"),
                fs::read(&secret).map(drop),
                fs::remove_file(&secret),
                std::os::unix::fs::chown(&users, Some(0), Some(0)),
            ] {
                assert_eq!(
                    done.unwrap_err()
                        .raw_os_error()
                        .map(|e| e == libc::EACCES || e == libc::EPERM),
                    Some(true)
                );
            }
            fs::write(users.join("own"), "x").unwrap();
        })
        .unwrap();
    assert_eq!(fs::metadata(users.join("own")).unwrap().uid(), USER);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
}

#[test]
fn outputs_are_the_users_and_private() {
    if !is_root() {
        return;
    }
    let (_dir, users, roots) = folders();
    let file = users.join("out.xml");
    for text in ["one", "two"] {
        write(&user(), &file, Mode::PRIVATE, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777),
        (USER, USER, 0o600)
    );
    write(&user(), &file, "755".parse().unwrap(), b"three").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
    append(&user(), &file, Mode::PRIVATE, b" four").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "three four");
    let refused = write(&user(), &roots.join("out.xml"), Mode::PRIVATE, b"x").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(names(&users), ["out.xml"]);
}

#[test]
fn links_and_devices_are_neither_followed_nor_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs::write(&target, "untouched").unwrap();
    symlink(&target, dir.path().join("link")).unwrap();
    symlink(&target, dir.path().join(".file.tmp")).unwrap();
    let own = Owner::process();
    for name in ["link", "/dev/null", "/dev/stdout"] {
        let path = dir.path().join(name);
        let refused = write(&own, &path, Mode::PRIVATE, b"x").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{name}: {refused}");
        let refused = append(&own, &path, Mode::PRIVATE, b"x").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{name}: {refused}");
    }
    write(&own, &dir.path().join("file"), Mode::PRIVATE, b"new").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert_eq!(names(dir.path()), ["file", "link", "target"]);
}

#[test]
fn only_regular_files_of_bounded_size_are_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "0123456789").unwrap();
    symlink("/dev/zero", dir.path().join("zero")).unwrap();
    symlink(dir.path().join("file"), dir.path().join("link")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        dir.path().join("fifo"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    assert_eq!(folder.read_file("file".as_ref(), 10).unwrap(), b"0123456789");
    for (name, limit) in [
        ("file", 9),
        ("zero", 10),
        ("link", 10),
        ("fifo", 10),
        ("../file", 10),
        ("..", 10),
    ] {
        let refused = folder.read_file(name.as_ref(), limit).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{name}: {refused}");
    }
}

/// A renamed folder is still the same folder, and a new one in its place receives nothing.
#[test]
fn a_folder_is_a_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let above = Folder::open(dir.path()).unwrap();
    let folder = above.create_folder("trace".as_ref()).unwrap();
    assert_eq!(folder.stat().unwrap().st_mode & 0o7777, 0o700);
    fs::rename(dir.path().join("trace"), dir.path().join("moved")).unwrap();
    fs::create_dir(dir.path().join("trace")).unwrap();
    folder.create_file("file".as_ref()).unwrap();
    assert_eq!(names(&dir.path().join("moved")), ["file"]);
    assert!(names(&dir.path().join("trace")).is_empty());
    symlink(dir.path().join("moved"), dir.path().join("link")).unwrap();
    assert!(above.folder("link".as_ref()).is_err());
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
