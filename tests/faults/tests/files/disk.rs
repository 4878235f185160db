//! A disk that is full while tracer records.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Command, Stdio},
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;
use tracer_e2e::place;
use tracer_faults::{Attack, tries};
use tracer_store::{State, Trace, manifest::Exit};

/// A small disk. It is removed when the test ends, however it ends.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        mount("tmpfs", dir.path(), "tmpfs", MountFlags::empty(), Some(c"size=4m")).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills all free space.
    fn fill(&self) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path().join("fill"))
            .unwrap();
        for size in [4096, 512, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// The disk fills up while the command runs. The command produces rows until the recorder has reported the full disk; then it exits
/// with 7. What was recorded before can be read, and the command's exit is in the manifest.
#[test]
fn a_full_disk_is_reported_at_once_and_the_exit_code_is_kept() {
    let mut attack = Attack::new("record: the disk is full (for good, or for a while) while the command runs");
    for turn in 0..tries(2, 20) {
        let disk = Disk::new();
        let trace = disk.path().join("x.trace");
        let again = turn % 2 == 1;
        let files = tempfile::tempdir().unwrap();
        let [full, heard] = ["full", "heard"].map(|name| files.path().join(name));
        let script = format!(
            "/bin/true; sleep 1; echo ready; while ! test -e {full}; do sleep 0.05; done
             while ! test -e {heard}; do /bin/true; sleep 0.05; done; exit 7",
            full = full.display(),
            heard = heard.display()
        );
        let mut recorder = Command::new(place::programs().join("tracer"))
            .args(["record", "-o"])
            .arg(&trace)
            .args(["--", "/bin/sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(recorder.stdout.take().unwrap())
            .read_line(&mut ready)
            .unwrap();
        assert_eq!(ready, "ready\n");
        disk.fill();
        fs::write(&full, "").unwrap();
        // Read before the command exits, because the command waits for this.
        let mut stderr = BufReader::new(recorder.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("No space left on device") && stderr.read_line(&mut said).is_ok_and(|bytes| bytes > 0) {}
        let at_once = said.contains("No space left on device");
        if again {
            fs::remove_file(disk.path().join("fill")).unwrap();
        }
        fs::write(&heard, "").unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let status = recorder.wait().unwrap();
        let trace = Trace::open(&trace);
        attack.count(match trace {
            Ok(trace) => {
                let manifest = trace.manifest();
                let readable = trace
                    .facts(&tracer_core::tables::Table::ALL)
                    .map(|facts| facts.filter(Result::is_ok).count());
                let found = (
                    at_once,
                    status.code(),
                    manifest.exit,
                    trace.state(),
                    manifest.warnings.len(),
                );
                match (found, readable) {
                    ((true, Some(7), Some(Exit::Code(7)), State::Interrupted, 1), Ok(rows)) if rows > 0 => Ok(()),
                    other => Err(format!("{other:?}: {said}")),
                }
            }
            Err(error) => Err(format!("{error}: {said}")),
        });
    }
    attack.finish();
}
