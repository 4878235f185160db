//! The recorder's container is removed, with everything in it, while processes outside are paused. No process stays stopped.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use tracer_capture::kernel::rights::RECORDING;
use tracer_e2e::{
    cgroup::Cgroup,
    place,
    running::{descendants, state, wait_for},
    scenario::folder,
};
use tracer_faults::{Attack, in_kernel::Loaded, tries};

use super::support::{Dice, Ended, left_stopped, tracer, with_text};

/// How all of the recorder's processes are killed at once.
#[derive(Clone, Copy, Debug)]
enum Removal {
    /// `cgroup.kill` of the recorder's cgroup.
    Cgroup,
    /// `crun delete -f`, by which podman removes a container. The container sees the host's processes and cgroups.
    Container,
    /// The same for a container with its own cgroup namespace: it sees its own cgroup as the root.
    ContainerWithNamespace,
}

/// A container's folder, and its name in crun.
struct Container {
    dir: TempDir,
    name: String,
}

impl Container {
    /// Creates a container that runs a command. It has the host's processes and files; root's folder is empty except for these.
    fn new(command: &[String], own_cgroups: bool) -> Self {
        let dir = folder();
        let root = dir.path().join("rootfs");
        fs::create_dir(&root).expect("a folder");
        let mut mounts = Vec::new();
        for entry in fs::read_dir("/").expect("the root").flatten() {
            // Links to folders are folders in the container.
            if fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()) {
                fs::create_dir(root.join(entry.file_name())).expect("a folder");
                let path = entry.path();
                mounts.push(json!({"destination": path, "source": path, "type": "none", "options": ["rbind", "rw"]}));
            }
        }
        let mut namespaces = vec![json!({"type": "mount"})];
        if own_cgroups {
            namespaces.push(json!({"type": "cgroup"}));
            let options = ["rw", "nosuid", "noexec", "nodev"];
            mounts.push(
                json!({"destination": "/sys/fs/cgroup", "source": "cgroup", "type": "cgroup", "options": options}),
            );
        }
        let sets =
            ["bounding", "effective", "permitted"].map(|set| (set.to_owned(), json!(RECORDING.map(|(name, _)| name))));
        let config = json!({
            "ociVersion": "1.0.0",
            "root": {"path": "rootfs"},
            "process": {
                "user": {"uid": 0, "gid": 0},
                "args": command,
                "cwd": "/",
                "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
                "capabilities": sets.into_iter().collect::<serde_json::Map<_, _>>(),
            },
            "mounts": mounts,
            "linux": {"namespaces": namespaces},
        });
        fs::write(dir.path().join("config.json"), config.to_string()).expect("its description");
        let name = dir.path().file_name().expect("a name").to_string_lossy().into_owned();
        Self { dir, name }
    }

    /// Returns crun in a view with cgroup v2 only, as on most machines.
    fn crun(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        let alone =
            "cd /sys/fs/cgroup && if [ -e unified/cgroup.procs ]; then mount --bind unified .; fi && exec \"$@\"";
        command.args(["--mount", "/bin/sh", "-c", alone, "sh"]);
        command.arg(place::containers().join("crun"));
        command
            .arg("--cgroup-manager=cgroupfs")
            .arg("--root")
            .arg(self.dir.path().join("state"));
        command.args(words).arg(&self.name);
        command.stdin(Stdio::null());
        command
    }

    /// Starts it, beside this process.
    fn run(&self) {
        let bundle = self.dir.path().to_string_lossy();
        let mut command = self.crun(&["run", "--detach", "--bundle", &bundle]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.expect("unshare, of util-linux").success(), "crun run");
    }

    /// Kills everything in it, and removes it.
    fn remove(&self) -> Result<(), String> {
        let output = self
            .crun(&["delete", "--force"])
            .output()
            .expect("unshare, of util-linux");
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("crun delete: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A container that was removed leaves nothing.
        let _ = self.remove();
    }
}

/// Tries once. Returns whether the process was seen paused after the removal, and the harm.
fn remove_once(removal: Removal, after: Duration) -> Result<bool, String> {
    let before = Loaded::now();
    let dir = folder();
    let files = dir.path().join("files");
    fs::create_dir(&files).expect("a folder");
    let mut paused = Command::new(place::programs().join("loader"));
    paused
        .arg("--fresh")
        .arg(&files)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let paused = Ended(paused.spawn().expect("loader"));
    let pid = paused.0.id();
    let trace = dir.path().join("trace");
    let words = [
        "record",
        "--api",
        "hip",
        "-p",
        &pid.to_string(),
        "-o",
        &trace.to_string_lossy(),
    ]
    .map(str::to_owned);
    let began = || wait_for("the trace", || trace.join("manifest.json").exists().then_some(()));
    let is_paused = || {
        (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            state(pid) == Some('T')
        })
    };
    let seen = match removal {
        Removal::Cgroup => {
            let cgroup = Cgroup::new("tracer-faults").expect("a cgroup");
            let recorder = Ended(tracer().args(&words).spawn().expect("tracer starts"));
            began();
            cgroup.enter(recorder.0.id()).expect("its new cgroup");
            for guardian in descendants(recorder.0.id(), "tracer-guardian") {
                assert!(!cgroup.processes().lines().any(|line| line == guardian.to_string()));
            }
            std::thread::sleep(after);
            cgroup.kill().expect("a cgroup to kill");
            is_paused()
        }
        Removal::Container | Removal::ContainerWithNamespace => {
            let program = place::programs().join("tracer").to_string_lossy().into_owned();
            let command: Vec<String> = [program].into_iter().chain(words).collect();
            let container = Container::new(&command, matches!(removal, Removal::ContainerWithNamespace));
            container.run();
            began();
            std::thread::sleep(after);
            let removed = container.remove();
            let seen = is_paused();
            removed?;
            seen
        }
    };
    left_stopped(|| vec![pid])?;
    drop(paused);
    let path = trace.to_string_lossy().into_owned();
    wait_for("the end of tracer's processes", || {
        with_text(&path).is_empty().then_some(())
    });
    before.comes_back()?;
    Ok(seen)
}

fn attack(name: &'static str, removal: Removal) {
    let mut attack = Attack::new(name);
    let mut dice = Dice(20_261_124 + removal as u64);
    let mut seen = 0;
    for _ in 0..tries(2, 20) {
        let after = Duration::from_millis(100) + dice.millis(300);
        match remove_once(removal, after) {
            Ok(was_paused) => {
                seen += usize::from(was_paused);
                attack.count(Ok(()));
            }
            Err(harm) => attack.count(Err(format!("after {after:?}: {harm}"))),
        }
    }
    println!("{seen} times the process was seen paused after the removal");
    attack.finish();
}

#[test]
fn a_cgroup_that_is_killed() {
    match Cgroup::new("tracer-faults-try") {
        Err(reason) => return println!("not tried: {reason}"),
        Ok(cgroup) if !cgroup.has_kill() => return println!("not tried: this kernel has no cgroup.kill"),
        Ok(_) => {}
    }
    attack("cgroup.kill of the recorder's cgroup", Removal::Cgroup);
}

#[test]
fn a_container_that_is_removed() {
    attack(
        "`crun delete -f` of the recorder's container, host's cgroups",
        Removal::Container,
    );
}

#[test]
fn a_container_with_its_own_cgroups_that_is_removed() {
    attack(
        "`crun delete -f` of the recorder's container, cgroup namespace",
        Removal::ContainerWithNamespace,
    );
}
