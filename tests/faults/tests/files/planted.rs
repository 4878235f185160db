//! Links that other users plant where tracer writes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    process::Output,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tracer_core::tables::Table;
use tracer_e2e::terminal::Terminal;
use tracer_faults::{Attack, tries};
use tracer_files::{Mode, Owner};
use tracer_store::{Placing, State, StoreError, Trace, TraceWriter};

use super::support::{OTHER, Scene, USER, ends, loss, manifest, names, record, said, sudo_tracer, user};

/// Writes a script of the user.
fn script(scene: &Scene, text: &str) {
    let path = scene.home.join("evil.sh");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn recorded(scene: &Scene, words: &[&str]) -> Option<Output> {
    ends(sudo_tracer().current_dir(&scene.home).args(words))
}

/// What the traced program does to the trace; `$1` is root's file, `$2` is root's folder. The first is the script of the issue.
const SCRIPTS: [&str; 4] = [
    "mv x.trace y; mkdir x.trace; ln -s $1 x.trace/.manifest.json.tmp",
    "ln -s $1 x.trace/.manifest.json.tmp; ln -sf $1 x.trace/manifest.json; ln -s $2 x.trace/processes",
    "mv x.trace y; ln -s $2 x.trace",
    "(while :; do ln -sf $1 x.trace/.manifest.json.tmp; mv -T x.trace y; ln -sfT $2 x.trace; rm x.trace; mv -T y x.trace; done) & \
     sleep 0.7; kill $!",
];

#[test]
fn a_traced_program_plants_links_in_its_trace() {
    let mut attack = Attack::new("record: the traced program of a sudo user plants links in the trace");
    for turn in 0..tries(5, 100) {
        let scene = Scene::new();
        let text = SCRIPTS[turn % SCRIPTS.len()];
        let text = text.replace("$1", scene.target.to_str().unwrap());
        script(&scene, &text.replace("$2", scene.folder.to_str().unwrap()));
        let output = recorded(&scene, &["record", "-o", "x.trace", "--", "./evil.sh"]);
        attack.count(scene.harm().and_then(|()| {
            let output = output.ok_or("tracer hangs")?;
            // The first and the third script leave the trace complete, elsewhere.
            let whole = (turn % SCRIPTS.len()).is_multiple_of(2);
            let trace = Trace::open(&scene.home.join("y"));
            match (output.status.code(), trace) {
                (Some(0), Ok(trace)) if whole && trace.state() == State::Complete => Ok(()),
                (Some(0 | 125), _) if !whole => Ok(()),
                (code, trace) => Err(format!("exit code {code:?}, trace {trace:?}: {}", said(&output))),
            }
        }));
    }
    attack.finish();
}

#[test]
fn a_trace_is_the_users_and_private() {
    let scene = Scene::new();
    for (mode, folder, file) in [("700", 0o700, 0o600), ("755", 0o755, 0o644)] {
        let name = format!("{mode}.trace");
        let words = ["record", "--mode", mode, "-o", &name, "--", "/bin/true"];
        let output = recorded(&scene, &words).expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        let trace = scene.home.join(&name);
        let mut paths = vec![(trace.clone(), folder), (trace.join("manifest.json"), file)];
        for part in names(&trace.join("processes")) {
            paths.push((trace.join("processes").join(part), file));
        }
        paths.push((trace.join("processes"), folder));
        assert_eq!(paths.len(), 4);
        for (path, bits) in paths {
            let metadata = fs::metadata(&path).unwrap();
            let found = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
            assert_eq!(found, (USER, USER, bits), "{}", path.display());
        }
    }
    // Where the user may not write, root does not write either.
    let words = ["record", "-o", "../folder/x.trace", "--", "/bin/true"];
    let output = recorded(&scene, &words).expect("it ends");
    assert_eq!(
        (output.status.code(), scene.harm()),
        (Some(125), Ok(())),
        "{}",
        said(&output)
    );
}

#[test]
fn sudos_variables_name_a_user_or_nothing_is_done() {
    let scene = Scene::new();
    for (uid, gid) in [
        (Some("-1"), Some("1000")),
        (Some("abc"), Some("1000")),
        (Some("4294967295"), Some("1000")),
        (Some("1000"), Some("")),
        (Some("1000"), None),
        (None, Some("1000")),
    ] {
        let mark = scene.home.join("mark");
        for words in [
            vec!["record", "-o", "x.trace", "--", "/bin/touch", mark.to_str().unwrap()],
            vec!["verify", "--", "/bin/touch", mark.to_str().unwrap()],
            vec!["verify", "--claims", "-o", "claims"],
        ] {
            let mut command = sudo_tracer();
            for (name, value) in [("SUDO_UID", uid), ("SUDO_GID", gid)] {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let output = ends(command.current_dir(&scene.home).args(&words)).expect("it ends");
            assert_eq!(
                output.status.code(),
                Some(125),
                "{uid:?} {gid:?} {words:?}: {}",
                said(&output)
            );
            assert!(
                names(&scene.home).is_empty(),
                "{uid:?} {gid:?} {words:?}: {:?}",
                names(&scene.home)
            );
        }
    }
}

/// Repeats the attack as the user until the work is complete.
fn meanwhile<T>(attack: impl Fn(usize) + Send + Sync, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            user()
                .run(|| {
                    for turn in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        attack(turn);
                    }
                })
                .expect("the attacker is the user");
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// Returns the names at which the writer creates something, or did in earlier versions.
fn places() -> Vec<String> {
    let mut places = vec!["manifest.json".to_owned(), ".manifest.json.tmp".to_owned()];
    for table in [Table::Losses, Table::Dispatches] {
        places.push(table.name().to_owned());
        for part in 1..4 {
            places.push(format!("{}/.part-{part:06}.parquet.tmp", table.name()));
        }
    }
    places
}

/// The writer alone, against a user who renames and links as fast as the system allows.
#[test]
fn links_and_renames_race_with_the_writer() {
    for (name, owner) in [
        (
            "writer with the user's rights: planted links and racing renames",
            user(),
        ),
        (
            "writer with root's rights: planted links and racing renames",
            Owner::process(),
        ),
    ] {
        let mut attack = Attack::new(name);
        for _ in 0..tries(5, 100) {
            let scene = Scene::new();
            let (trace, moved) = (scene.home.join("x.trace"), scene.home.join("y"));
            let places = places();
            let attacker = |turn: usize| {
                // Each of these operations fails as often as it succeeds.
                let place = &places[turn % places.len()];
                for dir in [&trace, &moved] {
                    let _ = fs::remove_file(dir.join(place));
                    let _ = symlink(&scene.target, dir.join(place));
                    let _ = symlink(&scene.folder, dir.join("losses"));
                }
                if turn.is_multiple_of(3) {
                    let _ = fs::rename(&trace, &moved);
                    let _ = symlink(&scene.folder, &trace);
                    let _ = fs::remove_file(&trace);
                    let _ = fs::rename(&moved, &trace);
                }
            };
            let placing = Placing {
                owner: owner.clone(),
                mode: Mode::PRIVATE,
                overwrite: true,
                ..Placing::default()
            };
            // The write may fail: a user can damage the user's own files.
            let done = meanwhile(attacker, || write(&trace, placing));
            attack.count(scene.harm().and(match done {
                Ok(()) | Err(StoreError::Io { .. } | StoreError::Foreign(_) | StoreError::OthersFolder(_)) => Ok(()),
                Err(StoreError::NotAllowed(_) | StoreError::Exists(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }));
        }
        attack.finish();
    }
}

/// Writes a trace with everything that a recorder does: several parts, changes of the manifest, merged parts at the end.
fn write(trace: &Path, placing: Placing) -> Result<(), StoreError> {
    let mut writer = TraceWriter::create_as(trace, manifest(), placing)?;
    let mut now = Instant::now();
    for time in 0..20 {
        writer.push(&loss(time));
        writer.update_manifest(|manifest| manifest.warnings = vec![time.to_string()]);
        now += Duration::from_secs(1);
        writer.tick(now)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    writer.finish(|manifest| manifest.complete = true).map(drop)
}

#[test]
fn a_folder_that_another_user_made_is_not_used() {
    let mut attack = Attack::new("record and top: another user made the folder of the trace, with links in it");
    for turn in 0..tries(4, 100) {
        let scene = Scene::new();
        let trace = scene.home.join("x.trace");
        fs::create_dir(&trace).unwrap();
        if turn.is_multiple_of(2) {
            symlink(&scene.target, trace.join(".manifest.json.tmp")).unwrap();
        }
        fs::set_permissions(&trace, fs::Permissions::from_mode(0o777)).unwrap();
        chown(&trace, Some(OTHER), Some(OTHER)).unwrap();
        let mut command = sudo_tracer();
        if turn % 4 > 1 {
            // Root itself, without sudo.
            command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        }
        let output = ends(
            command
                .args(["record", "--overwrite", "-o"])
                .arg(&trace)
                .args(["--", "/bin/true"]),
        );
        attack.count(scene.harm().and_then(|()| {
            let output = output.ok_or("tracer hangs")?;
            let planted = usize::from(turn % 2 == 0);
            match (output.status.code(), names(&trace).len()) {
                (Some(125), found) if found == planted => Ok(()),
                (code, found) => Err(format!("exit code {code:?}, {found} files: {}", said(&output))),
            }
        }));
    }
    attack.finish();
}

/// A command that writes a file.
struct Form {
    name: &'static str,
    words: &'static [&'static str],
    file: &'static str,
}

const FORMS: [Form; 7] = [
    Form {
        name: "verify --junit: a planted link, with racing renames",
        words: &["verify", "--junit", "out", "x.trace"],
        file: "out",
    },
    Form {
        name: "verify --json: a planted link, with racing renames",
        words: &["verify", "--json", "out", "x.trace"],
        file: "out",
    },
    Form {
        name: "verify --claims --json: a planted link, with racing renames",
        words: &["verify", "--claims", "--from", "claims.json", "--json", "out"],
        file: "out",
    },
    Form {
        name: "verify --format github: a planted link as step summary, with racing renames",
        words: &["verify", "--format", "github", "x.trace"],
        file: "out",
    },
    Form {
        name: "export --format perfetto: a planted link, with racing renames",
        words: &["export", "--format", "perfetto", "-o", "out", "x.trace"],
        file: "out",
    },
    Form {
        name: "export --format rocpd: a planted link, with racing renames",
        words: &["export", "--format", "rocpd", "-o", "out", "x.trace"],
        file: "out",
    },
    Form {
        name: "export --format csv: a planted link, with racing renames",
        words: &["export", "--format", "csv", "-o", "out", "x.trace"],
        file: "out",
    },
];

#[test]
fn results_are_not_written_through_links() {
    let claims = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/claims");
    let claims = names(Path::new(claims))
        .into_iter()
        .find(|name| name.ends_with(".json"));
    let claims = claims.map(|name| format!("{}/../../docs/claims/{name}", env!("CARGO_MANIFEST_DIR")));
    for form in FORMS {
        let mut attack = Attack::new(form.name);
        for turn in 0..tries(5, 100) {
            let scene = Scene::new();
            record(&scene.home.join("x.trace"));
            let claims = claims.as_deref().expect("a report of claims is in docs/claims");
            fs::copy(claims, scene.home.join("claims.json")).unwrap();
            let out = scene.home.join(form.file);
            let temporary = scene.home.join(format!(".{}.tmp", form.file));
            symlink(&scene.target, &out).unwrap();
            let run = || {
                let mut command = sudo_tracer();
                command.current_dir(&scene.home).env("GITHUB_STEP_SUMMARY", "out");
                if turn % 2 == 1 {
                    command.env_remove("SUDO_UID").env_remove("SUDO_GID");
                }
                ends(command.args(form.words))
            };
            // In the first turn the link stays; in the others it is created and removed repeatedly.
            let output = if turn == 0 {
                run()
            } else {
                let attacker = |_| {
                    let _ = fs::remove_file(&out);
                    let _ = symlink(&scene.target, &temporary);
                    let _ = symlink(&scene.target, &out);
                };
                meanwhile(attacker, run)
            };
            attack.count(scene.harm().and_then(|()| {
                let output = output.ok_or("tracer hangs")?;
                match output.status.code() {
                    Some(125) => Ok(()),
                    Some(0 | 1 | 3) if turn > 0 => Ok(()),
                    code => Err(format!("exit code {code:?}: {}", said(&output))),
                }
            }));
        }
        attack.finish();
    }
}

#[test]
fn results_are_the_users() {
    let scene = Scene::new();
    record(&scene.home.join("x.trace"));
    let words = [
        "verify", "--junit", "a.xml", "--json", "a.json", "--format", "github", "x.trace",
    ];
    let mut command = sudo_tracer();
    command
        .current_dir(&scene.home)
        .env("GITHUB_STEP_SUMMARY", "summary")
        .args(words);
    let output = ends(&mut command).expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    for name in ["a.xml", "a.json", "summary"] {
        let metadata = fs::metadata(scene.home.join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (USER, 0o600), "{name}");
    }
    for format in ["chrome", "rocpd", "csv"] {
        let output = recorded(&scene, &["export", "--format", format, "-o", format, "x.trace"]).expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    for (name, mode) in [
        ("chrome", 0o600),
        ("rocpd", 0o600),
        ("csv", 0o700),
        ("csv/manifest.json", 0o600),
    ] {
        let metadata = fs::metadata(scene.home.join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (USER, mode), "{name}");
    }
    // A file that only root could write stays unwritten.
    let words = ["verify", "--junit", "../folder/a.xml", "x.trace"];
    let output = recorded(&scene, &words).expect("it ends");
    assert_eq!(
        (output.status.code(), scene.harm()),
        (Some(125), Ok(())),
        "{}",
        said(&output)
    );
}

/// `verify -o`: the judged command replaces its trace, and is judged by what was recorded.
#[test]
fn a_command_is_judged_by_what_it_did_not_by_what_it_planted() {
    let mut attack = Attack::new("verify -o: the judged command puts another trace at the path of its own");
    for _ in 0..tries(2, 100) {
        let scene = Scene::new();
        let forged = scene.home.join("forged");
        record(&forged);
        for entry in [&forged, &forged.join("losses"), &forged.join("manifest.json")] {
            chown(entry, Some(USER), Some(USER)).unwrap();
        }
        script(&scene, "mv -T x.trace y; mv -T forged x.trace");
        let words = ["verify", "--json", "out", "-o", "x.trace", "--", "./evil.sh"];
        let output = recorded(&scene, &words);
        attack.count(scene.harm().and_then(|()| {
            let output = output.ok_or("tracer hangs")?;
            let text = fs::read_to_string(scene.home.join("out")).map_err(|error| error.to_string())?;
            // The forged trace has losses; the trace of a shell has none.
            if text.contains("doorbell-ring") {
                return Err(format!("it was judged by the forged trace: {}", said(&output)));
            }
            Ok(())
        }));
    }
    attack.finish();
}

#[test]
fn key_r_of_top_writes_as_the_user() {
    let mut attack = Attack::new("top, key R: planted links in the trace, which is renamed");
    for _ in 0..tries(2, 20) {
        let scene = Scene::new();
        let trace = scene.home.join("x.trace");
        let mut command = sudo_tracer();
        command
            .current_dir(&scene.home)
            .args(["top", "-o", "x.trace", "--", "/bin/sleep", "60"]);
        let mut top = Terminal::start(command);
        top.wait_for(|shown| shown.contains("sleep"));
        top.press("R");
        top.wait_for(|shown| shown.contains("REC "));
        user()
            .run(|| {
                fs::rename(&trace, scene.home.join("y")).unwrap();
                symlink(&scene.folder, &trace).unwrap();
                let _ = symlink(&scene.target, scene.home.join("y/.manifest.json.tmp"));
                let _ = symlink(&scene.folder, scene.home.join("y/processes"));
            })
            .unwrap();
        top.press("R");
        top.wait_for(|shown| shown.contains("recorded ") || shown.contains("recording ended"));
        top.press("q");
        let (status, shown) = top.end();
        end_sleep(&shown);
        let owner = fs::metadata(scene.home.join("y")).map(|metadata| metadata.uid());
        attack.count(scene.harm().and(match (status.success(), owner) {
            (true, Ok(USER)) => Ok(()),
            other => Err(format!("{other:?}: {shown}")),
        }));
    }
    attack.finish();
}

/// Kills the process that `top` leaves running and names.
fn end_sleep(shown: &str) {
    let pid = shown.split("`kill ").nth(1).and_then(|rest| rest.split('`').next());
    if let Some(pid) = pid.and_then(|pid| pid.trim().parse::<i32>().ok()) {
        let is_sleep = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "sleep");
        if is_sleep {
            // SAFETY: the arguments are plain integers, and this test started the process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// A command that cannot run leaves no trace, and tracer removes only what it created.
#[test]
fn a_trace_of_nothing_is_removed_with_the_users_rights() {
    let scene = Scene::new();
    let output = recorded(&scene, &["record", "-o", "x.trace", "--", "/no/such/program"]).expect("it ends");
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
    assert!(names(&scene.home).is_empty(), "{:?}", names(&scene.home));
}

/// If the parent folder is a link of the user's own, tracer follows it as the user would.
#[test]
fn links_on_the_way_are_followed_with_the_users_rights() {
    let scene = Scene::new();
    let elsewhere = scene.home.join("elsewhere");
    user()
        .run(|| {
            fs::create_dir(&elsewhere).unwrap();
            symlink("elsewhere", scene.home.join("link")).unwrap();
            symlink(&scene.folder, scene.home.join("out")).unwrap();
        })
        .unwrap();
    let output = recorded(&scene, &["record", "-o", "link/x.trace", "--", "/bin/true"]).expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        Trace::open(&elsewhere.join("x.trace")).unwrap().state(),
        State::Complete
    );
    let output = recorded(&scene, &["record", "-o", "out/x.trace", "--", "/bin/true"]).expect("it ends");
    assert_eq!(
        (output.status.code(), scene.harm()),
        (Some(125), Ok(())),
        "{}",
        said(&output)
    );
}

/// The attack of the issue, word by word.
#[test]
fn evil_sh() {
    let scene = Scene::new();
    let target = scene.target.to_str().unwrap();
    let text = format!("mv x.trace y; mkdir x.trace; ln -s {target} x.trace/.manifest.json.tmp");
    script(&scene, &text);
    let output = recorded(&scene, &["record", "-o", "x.trace", "--", "./evil.sh"]).expect("it ends");
    assert_eq!(
        (output.status.code(), scene.harm()),
        (Some(0), Ok(())),
        "{}",
        said(&output)
    );
    assert_eq!(names(&scene.home.join("x.trace")), [".manifest.json.tmp"]);
    assert_eq!(Trace::open(&scene.home.join("y")).unwrap().state(), State::Complete);
}
