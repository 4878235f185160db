//! Traces that are not what their names say. tracer does not wait for them, follow them, or read them without end.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::fs::{CWD, FileType, Mode, makedev, mkfifoat, mknodat};
use tracer_e2e::place;
use tracer_faults::Attack;

use super::support::{ends, record, said};

/// Creates something that is not a file of a trace.
type Plant = fn(&Path);

const PLANTS: [(&str, Plant); 7] = [
    ("a link to /dev/zero", |path| symlink("/dev/zero", path).unwrap()),
    ("a link to itself", |path| symlink(path, path).unwrap()),
    ("a FIFO", |path| {
        mkfifoat(CWD, path, Mode::from_raw_mode(0o666)).unwrap();
    }),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ("the device zero", |path| {
        mknodat(
            CWD,
            path,
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            makedev(1, 5),
        )
        .unwrap();
    }),
    ("a file of 8 TiB", |path| {
        fs::File::create(path).unwrap().set_len(8 << 40).unwrap();
    }),
    ("a folder", |path| fs::create_dir(path).unwrap()),
];

fn command(words: &[&str], trace: &Path) -> Option<Output> {
    ends(Command::new(place::programs().join("tracer")).args(words).arg(trace))
}

fn only_part(table: &Path) -> PathBuf {
    fs::read_dir(table).unwrap().next().unwrap().unwrap().path()
}

/// `report` and `verify` report the problem, and read the rest.
#[test]
fn files_of_a_trace_are_something_else() {
    let mut attack = Attack::new("report and verify: manifest, part or table is a link, FIFO, socket, device, or huge");
    let dir = tempfile::tempdir().unwrap();
    for (what, plant) in PLANTS {
        for place in ["manifest", "part", "table"] {
            let trace = dir.path().join(format!("{what}-{place}").replace([' ', '/'], "-"));
            record(&trace);
            let path = match place {
                "manifest" => trace.join("manifest.json"),
                "part" => only_part(&trace.join("losses")),
                _ => trace.join("losses"),
            };
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            plant(&path);
            // An empty folder instead of a table lacks its rows. That is reported, too.
            for (words, with_manifest) in [(&["report"][..], 0), (&["verify"], 3)] {
                let expected = match (place, words[0]) {
                    ("manifest", "report") => 125,
                    // An unreadable manifest leaves every rule open.
                    ("manifest", _) => 3,
                    _ => with_manifest,
                };
                attack.count(match command(words, &trace) {
                    None => Err(format!("{words:?} hangs at {what} as {place}")),
                    Some(output) if output.status.code() != Some(expected) => Err(format!(
                        "{words:?} of {what} as {place}: {}: {}",
                        output.status,
                        said(&output)
                    )),
                    Some(output) => {
                        let mut text = said(&output);
                        text.push_str(&String::from_utf8_lossy(&output.stdout));
                        let named = path.file_name().unwrap().to_string_lossy().into_owned();
                        if text.contains(&named) && !text.contains("panicked") {
                            Ok(())
                        } else {
                            Err(format!("{words:?} of {what} as {place} does not say so: {text}"))
                        }
                    }
                });
            }
        }
    }
    attack.finish();
}

#[test]
fn a_trace_is_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.trace");
    let cases = PLANTS.iter().filter(|(what, _)| *what != "a folder");
    for (what, plant) in cases {
        plant(&path);
        let output = command(&["report"], &path).expect("it ends");
        assert_eq!(output.status.code(), Some(125), "{what}: {}", said(&output));
        fs::remove_file(&path).unwrap();
    }
}
