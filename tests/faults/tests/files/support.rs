//! A folder of an ordinary user, and what lies outside and must not change.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tracer_core::fact::{Fact, Loss};
use tracer_e2e::place;
use tracer_files::Owner;
use tracer_store::{
    Manifest, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

/// The user who calls sudo in these tests, and another one. Neither is in /etc/passwd.
pub const USER: u32 = 54_321;
pub const OTHER: u32 = 54_322;

/// What a file that must not change holds.
const CONTENT: &str = "untouched\n";

/// Where an attack takes place.
pub struct Scene {
    dir: TempDir,
    /// The user's folder.
    pub home: PathBuf,
    /// Root's file, which anybody may read.
    pub target: PathBuf,
    /// Root's folder, which anybody may enter.
    pub folder: PathBuf,
}

impl Scene {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        open_to_all(dir.path());
        let [home, folder] = ["home", "folder"].map(|name| dir.path().join(name));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&folder).unwrap();
        open_to_all(&folder);
        chown(&home, Some(USER), Some(USER)).unwrap();
        let target = dir.path().join("target");
        fs::write(&target, CONTENT).unwrap();
        Self {
            dir,
            home,
            target,
            folder,
        }
    }

    /// What was changed outside of the user's folder.
    pub fn harm(&self) -> Result<(), String> {
        let metadata = fs::symlink_metadata(&self.target).map_err(|error| format!("the target: {error}"))?;
        if (metadata.uid(), metadata.gid()) != (0, 0) {
            return Err("the target has another owner".to_owned());
        }
        match fs::read_to_string(&self.target) {
            Ok(text) if text == CONTENT => {}
            other => return Err(format!("the target holds {:.60}", format!("{other:?}"))),
        }
        let mut names = names(self.dir.path());
        names.retain(|name| !["home", "folder", "target"].contains(&name.as_str()));
        names.extend(self::names(&self.folder));
        if names.is_empty() {
            Ok(())
        } else {
            Err(format!("new files: {names:?}"))
        }
    }
}

fn open_to_all(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Names in a folder.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Rights of the user who called sudo.
pub fn user() -> Owner {
    Owner::user(USER, USER, vec![USER])
}

/// `tracer` as that user calls it by sudo.
pub fn sudo_tracer() -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command
        .env("SUDO_UID", USER.to_string())
        .env("SUDO_GID", USER.to_string());
    command.env_remove("SUDO_USER");
    command
}

/// Ends of a command that may hang; `None` if it did.
pub fn ends(command: &mut Command) -> Option<Output> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id().cast_signed();
    // Pipes are emptied meanwhile.
    let streams = [
        std::thread::spawn({
            let mut stream = child.stdout.take().expect("a pipe");
            move || read_all(&mut stream)
        }),
        std::thread::spawn({
            let mut stream = child.stderr.take().expect("a pipe");
            move || read_all(&mut stream)
        }),
    ];
    let began = Instant::now();
    let status = loop {
        match child.try_wait().expect("it can be waited for") {
            Some(status) => break Some(status),
            None if began.elapsed() > PATIENCE => {
                // SAFETY: it has not been waited for: the id is its own.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                child.wait().expect("it ends");
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let [stdout, stderr] = streams.map(|thread| thread.join().expect("a reader"));
    status.map(|status| Output { status, stdout, stderr })
}

fn read_all(stream: &mut impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn manifest() -> Manifest {
    let tool = Tool {
        name: "tracer".into(),
        version: "0.1.0".into(),
    };
    let target = Target::Command {
        argv: vec!["./app".into()],
    };
    Manifest::new(tool, Host::here(), target, ClockSnapshot::now())
}

/// A row of a table.
pub fn loss(time_ns: u64) -> Fact {
    Fact::Loss(Loss {
        time_ns,
        source: "doorbell-ring".to_owned(),
        count: 1,
    })
}

/// A complete trace with several tables.
pub fn record(dir: &Path) {
    let mut writer = TraceWriter::create(dir, manifest(), false).expect("a trace");
    for time in 0..50 {
        writer.push(&loss(time));
        writer.push(&Fact::Dispatch(tracer_core::sample::dispatch(time, time)));
        writer.push(&Fact::Doorbell(tracer_core::sample::doorbell(time, time)));
    }
    writer.push(&Fact::Queue(tracer_core::sample::queue(50)));
    let written = writer.finish(|manifest| manifest.complete = true);
    written.expect("it is written");
}
