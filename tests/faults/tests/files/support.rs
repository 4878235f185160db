//! A folder of an ordinary user, and files outside it that must not change.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tracer_core::tables::{Fact, Loss};
use tracer_e2e::place;
use tracer_files::Owner;
use tracer_store::{
    Manifest, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

/// The user who calls sudo in these tests, and another one. Neither of them is in /etc/passwd.
pub const USER: u32 = 54_321;
pub const OTHER: u32 = 54_322;

/// The content of a file that must not change.
const CONTENT: &str = "untouched\n";

/// The place of an attack.
pub struct Scene {
    dir: TempDir,
    /// The user's folder.
    pub home: PathBuf,
    /// Root's file, which every user may read.
    pub target: PathBuf,
    /// Root's folder, which every user may enter.
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

    /// Fails if anything outside the user's folder has changed.
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

/// Returns the names in a folder.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Returns the rights of the user who called sudo.
pub fn user() -> Owner {
    Owner::user(USER, USER, vec![USER])
}

/// Returns `tracer` as that user calls it by sudo.
pub fn sudo_tracer() -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command
        .env("SUDO_UID", USER.to_string())
        .env("SUDO_GID", USER.to_string());
    command.env_remove("SUDO_USER");
    command
}

/// Runs a command that may hang. Returns `None` if it did.
pub fn ends(command: &mut Command) -> Option<Output> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = child.id().cast_signed();
    // Reads the pipes while the command runs.
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
                // SAFETY: the process has not been waited for, so the id is still its own.
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

/// Returns a row of a table.
pub fn loss(time_ns: u64) -> Fact {
    Fact::Loss(Loss {
        time_ns,
        source: "doorbell-ring".to_owned(),
        count: 1,
    })
}

/// Records a complete trace with several tables.
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
