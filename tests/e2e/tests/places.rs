//! The same program in other places: namespaces, odd paths, overlays, deleted files. None of them needs an option, and everything
//! equals the truth, as anywhere.
//!
//! Every program here runs in its own root in a mount namespace (see `kfd-sim --root`), and the other places are added to that.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use tracer_core::tables::Fact;
use tracer_e2e::{
    cgroup::Cgroup,
    compare::{self, Compared},
    observed, place,
    running::{Program, Recorder},
    scenario::{Run, Scenario, folder},
};

const DISPATCHES: usize = 20;

fn scenario(suite: &'static str) -> Scenario {
    Scenario::new(suite, "gfx942", &["compute-only", "-n", "20"])
}

/// Returns `elsewhere` with its options.
fn elsewhere(options: &[&str]) -> Vec<OsString> {
    let program = place::programs().join("elsewhere").into_os_string();
    let words = options.iter().map(OsString::from);
    [program].into_iter().chain(words).chain(["--".into()]).collect()
}

/// Records the scenario in that folder and compares everything.
fn same_as_anywhere(scenario: &Scenario, dir: TempDir, more: &[OsString]) -> (Run, Compared) {
    let mut command = scenario.command(&dir);
    command.args(more);
    let output = command.output().expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Run::read(dir, output);
    let compared = compare::all(&run);
    assert_eq!(run.did()["results"], "ok");
    assert!(compared.dispatches >= DISPATCHES, "{compared:?}");
    (run, compared)
}

/// Returns the file of a suite's runtime.
fn runtime(suite: &str) -> PathBuf {
    let link = place::rootfs(suite).join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    link.canonicalize().expect("the runtime is there")
}

/// Copies a suite's runtime to a path below a folder.
fn copy(suite: &str, dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::copy(runtime(suite), &path).expect("it can be copied");
    path
}

fn library(path: &Path) -> [OsString; 2] {
    ["--library".into(), path.into()]
}

#[test]
fn pid_and_mount_namespaces_of_its_own() {
    for suite in ["trixie", "sid"] {
        let mut scenario = scenario(suite);
        scenario.through = elsewhere(&["--namespaces"]);
        let (run, _) = same_as_anywhere(&scenario, folder(), &[]);
        // It is the first process in its namespace, and has another id here.
        let inner = run.did()["pid"].as_u64();
        assert_eq!(inner, Some(1), "it runs in a namespace");
        let queues = run.facts.iter().filter_map(|fact| match fact {
            Fact::Queue(queue) => Some(u64::from(queue.pid)),
            _ => None,
        });
        assert!(queues.min() > inner);
    }
}

/// tracer and the program are in the cgroup of a container in a pod, and of a unit, named as kubelets and systemd do.
#[test]
fn cgroups_of_pods_and_units() {
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "2fb3c7a4-1d8e-4c43-9c57-0a3c1a2b9d10";
    let slice = UID.replace('-', "_");
    let pod = format!("kubepods.slice/kubepods-pod{slice}.slice/cri-containerd-{ID}.scope");
    for (path, unit, container, pod) in [
        (pod.as_str(), None, Some(ID), Some(UID)),
        (
            "tracer-test.slice/tracer@1.service",
            Some("tracer@1.service"),
            None,
            None,
        ),
    ] {
        let cgroup = match Cgroup::new(path) {
            Ok(cgroup) => cgroup,
            Err(reason) => return println!("not tested: {reason}"),
        };
        let dir = folder();
        let command = scenario("trixie").command(&dir);
        let mut inside = Command::new("/bin/sh");
        inside
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(cgroup.procs());
        inside.arg(command.get_program()).args(command.get_args());
        let output = inside.output().expect("tracer runs");
        let run = Run::read(dir, output);
        let of_queues = run.facts.iter().filter(|fact| matches!(fact, Fact::Queue(_)));
        let queues: BTreeSet<u32> = of_queues.filter_map(Fact::pid).collect();
        let processes = run.facts.iter().filter_map(|fact| match fact {
            Fact::Process(process) if queues.contains(&process.pid) => Some(process),
            _ => None,
        });
        let placed: Vec<_> = processes
            .map(|process| [&process.unit, &process.container, &process.pod].map(|name| name.as_deref()))
            .collect();
        assert_eq!(placed, [[unit, container, pod]], "{path}");
    }
}

#[test]
fn libraries_of_any_name_at_any_path() {
    for name in [
        "with spaces/lib hsa.so",
        "ünïcode 名前/運行.so",
        "deleted/libhsa-runtime64.so.1 (deleted)",
        "odd/-n\\040\t;$(x)'\".so",
        // The layout of wheels, with a name that auditwheel generated.
        "venv/lib/python3.12/site-packages/_rocm_sdk_core.libs/libhsa-runtime64-1f3b7a90.so.1.13.0",
    ] {
        let dir = folder();
        let path = copy("trixie", dir.path(), name);
        let (run, _) = same_as_anywhere(&scenario("trixie"), dir, &library(&path));
        let libraries = &run.trace.manifest().libraries;
        assert_eq!(libraries.len(), 1, "{libraries:?}");
        // The path as seen from outside its root.
        let inside = path.strip_prefix("/").expect("an absolute path");
        assert!(Path::new(&libraries[0].path).ends_with(inside), "{libraries:?}");
    }
}

/// The layers have their own inodes: one of the lower layer's file, and one of a file that was copied up.
#[test]
fn libraries_in_an_overlay() {
    for name in ["lower.so", "upper.so"] {
        let dir = folder();
        copy("trixie", dir.path(), &format!("layer/{name}"));
        let at = |name: &str| dir.path().join(name).to_str().expect("a plain path").to_owned();
        let mut scenario = scenario("trixie");
        scenario.through = elsewhere(&["--overlay", &at("layer"), &at("merged")]);
        let path = dir.path().join("merged").join(name);
        same_as_anywhere(&scenario, dir, &library(&path));
    }
}

/// A program without a dynamic linker executes another one.
#[test]
fn behind_a_static_program() {
    let dir = folder();
    let launcher = dir.path().join("launcher");
    let mut scenario = scenario("sid");
    scenario.through = elsewhere(&["--launcher", launcher.to_str().expect("a plain path")]);
    same_as_anywhere(&scenario, dir, &[]);
}

#[test]
fn a_runtime_loaded_long_after_the_start() {
    let dir = folder();
    let go = dir.path().join("go");
    let mut recorder = scenario("sid").command(&dir);
    recorder
        .args(["--wait-for".as_ref(), go.as_os_str()])
        .stderr(std::process::Stdio::piped());
    let recorder = recorder.spawn().expect("tracer runs");
    tracer_e2e::running::wait_for("the dispatcher", || {
        tracer_e2e::running::descendants(recorder.id(), "hsa-dispatch")
            .first()
            .copied()
    });
    fs::write(&go, "").expect("it can be written");
    let output = recorder.wait_with_output().expect("tracer ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Run::read(dir, output);
    assert!(compare::all(&run).dispatches >= DISPATCHES);
}

/// Runs processes that each load the runtime anew, work briefly and exit.
fn many_processes(options: &[&str], processes: usize) {
    let mut scenario = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "2"]);
    scenario.through = elsewhere(options);
    let dir = folder();
    let mut command = scenario.command(&dir);
    let output = command.args(["--timeout", "300"]).output().expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for number in 0..processes {
        let did = fs::read(dir.path().join(format!("did.{number}.json"))).expect("each says what it did");
        let did: serde_json::Value = serde_json::from_slice(&did).expect("JSON");
        assert_eq!((&did["results"], &did["dispatches"]), (&"ok".into(), &2.into()));
    }
    let run = Run::read(dir, output);
    let compared = compare::device(&run);
    println!("{processes} processes: {compared:?}");
    assert!(compared.dispatches >= 2 * processes, "{compared:?}");
    assert_eq!(run.trace.manifest().libraries.len(), 1);
}

#[test]
fn processes_that_live_for_a_moment() {
    many_processes(&["--in-turn", "8"], 8);
}

#[test]
fn sixty_four_processes_at_once() {
    many_processes(&["--at-once", "64"], 64);
}

/// A file that has no name any more, and a file whose name belongs to another file now. Processes run both.
#[test]
fn deleted_and_replaced_files_of_running_processes() {
    let libraries = folder();
    let name = "libhsa-runtime64.so.1";
    let path = copy("trixie", libraries.path(), name);
    let steady = |suite: &'static str, more: &[OsString]| {
        let dir = folder();
        let scenario = Scenario::new(suite, "gfx942", &["steady"]);
        let mut words = scenario.simulated_with(dir.path(), &[libraries.path()]);
        for (option, file) in [("--until", "stop"), ("--progress", "progress")] {
            words.extend([option.into(), dir.path().join(file).into_os_string()]);
        }
        words.extend(more.iter().cloned());
        let program = Program::start(dir, &words);
        program.goes_on(50);
        program
    };
    let first = steady("trixie", &library(&path));
    // As a package manager does: the new file takes the name, and processes that have opened the old file keep it.
    let new = copy("trixie", libraries.path(), "new");
    fs::rename(&new, &path).expect("it takes the name");
    let second = steady("trixie", &library(&path));
    fs::remove_file(&path).expect("it can be removed");
    let traces = folder();
    let recorder = Recorder::attach(
        &traces.path().join("t"),
        &[first.pid(), second.pid()],
        &["--detail", "full"],
    );
    for program in [&first, &second] {
        program.goes_on(200);
        program.stop();
    }
    let recorded = recorder.wait().expect_success();
    let again = tracer_e2e::running::Recorded {
        output: recorded.output.clone(),
        trace: recorded.trace.clone(),
    };
    for (program, recorded) in [(first, recorded), (second, again)] {
        let run = program.read(recorded);
        let found = observed::adopted(&run, true);
        println!("{found:?}");
        assert!(found.claimed >= 200, "{found:?}");
        let libraries = &run.trace.manifest().libraries;
        assert_eq!(libraries.len(), 2, "{libraries:?}");
        assert_ne!(libraries[0].inode, libraries[1].inode);
    }
}

/// A container's process, by its id outside the container.
#[test]
fn a_process_in_namespaces_is_attached_to() {
    let mut scenario = Scenario::new("sid", "gfx1100", &["steady"]);
    scenario.through = elsewhere(&["--namespaces"]);
    let run = Program::of(folder(), &scenario).to_the_end(&[]);
    let found = observed::adopted(&run, true);
    println!("{found:?}");
    assert!(found.claimed >= 200, "{found:?}");
}
