//! Python as its users run it: HIP and the HSA runtime are in the folder of a wheel, a thread loads them late, and processes of
//! every kind launch kernels from several threads. The recording has no option, and everything equals the truth log and the
//! program's own reports.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use tracer_core::tables::{ApiCall, Fact, Process};
use tracer_e2e::{
    compare, place,
    scenario::{ATTEMPTS, Run, each_release, folder},
    verdict::{rule, verdict},
};

/// The libraries that wheels bring: AMD's, and those that they need of the system.
const BUNDLED: [&str; 8] = [
    "libnuma",
    "libelf",
    "libdrm",
    "libdrm_amdgpu",
    "libhsakmt",
    "libhsa-runtime64",
    "libamd_comgr",
    "libamdhip64",
];

/// Those among them that have a name without a number inside, too, in a wheel with plain names.
const RENAMED: [&str; 3] = ["libhsakmt", "libhsa-runtime64", "libamdhip64"];

/// How a wheel names its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// As auditwheel does: `libamdhip64-1a2b3c4d.so.5`.
    Hashed,
    /// As torch does: `libamdhip64.so`. The libraries refer to each other by these names, which no library of the system has.
    Plain,
}

/// What a process of the program says that it did.
#[derive(Debug, Deserialize)]
struct Report {
    pid: u32,
    parent: u32,
    /// The files of HIP and of the HSA runtime in its memory.
    libraries: BTreeSet<PathBuf>,
    threads: Vec<Thread>,
}

/// What a thread says that it did.
#[derive(Debug, Deserialize)]
struct Thread {
    tid: u32,
    kernel: String,
    grid: [u32; 3],
    workgroup: [u16; 3],
    launches: u64,
    /// Calls that waited for its stream.
    waits: u64,
    /// Whether the results are those of so many launches; `None` for a kernel without results.
    right: Option<bool>,
}

/// A recording of the program.
struct Recorded {
    run: Run,
    /// The reports of its processes, by their roles.
    reports: BTreeMap<String, Report>,
    /// The wheel's files of HIP and of the HSA runtime.
    hip: PathBuf,
    hsa: PathBuf,
}

impl Recorded {
    /// Returns each thread that launched kernels, with its process.
    fn threads(&self) -> impl Iterator<Item = (u32, &Thread)> {
        let reports = self.reports.values();
        reports.flat_map(|report| report.threads.iter().map(move |thread| (report.pid, thread)))
    }

    /// Checks that tracer put probes into these files, and into no others.
    fn has_probes_in(&self, files: &[&Path]) {
        let libraries = &self.run.trace.manifest().libraries;
        assert_eq!(libraries.len(), files.len(), "{libraries:?}");
        for file in files {
            // The trace has the path as seen from outside the program's root.
            let inside = file.strip_prefix("/").expect("an absolute path");
            let found = libraries
                .iter()
                .any(|library| Path::new(&library.path).ends_with(inside));
            assert!(found, "{}: {libraries:?}", file.display());
        }
    }
}

/// Copies a release's libraries into the folder of a wheel. Returns the folder, and the paths of HIP and of the HSA runtime.
fn wheel(suite: &str, names: Names, dir: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let system = place::rootfs(&format!("{suite}-hip")).join("usr/lib/x86_64-linux-gnu");
    let wheel = dir.join("site-packages/rocm_like/lib");
    fs::create_dir_all(&wheel).expect("a folder");
    let (mut hip, mut hsa) = (None, None);
    for entry in fs::read_dir(&system).expect("the libraries of the root") {
        let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let Some((base, number)) = file.split_once(".so.") else {
            continue;
        };
        if !BUNDLED.contains(&base) || number.contains('.') {
            continue;
        }
        let mut bytes = fs::read(system.join(&file)).expect("a library");
        let path = match names {
            Names::Hashed => wheel.join(format!("{base}-1a2b3c4d.so.{number}")),
            Names::Plain => wheel.join(format!("{base}.so")),
        };
        if names == Names::Plain && RENAMED.contains(&base) {
            drop_numbers(&mut bytes);
        }
        fs::write(&path, bytes).expect("it can be written");
        match base {
            "libamdhip64" => hip = Some(path),
            "libhsa-runtime64" => hsa = Some(path),
            _ => {}
        }
    }
    (wheel, hip.expect("HIP"), hsa.expect("the HSA runtime"))
}

/// Removes the number from each name of a renamed library in a file: from its own name, and from those that it needs.
fn drop_numbers(bytes: &mut [u8]) {
    for text in bytes.split_mut(|byte| *byte == 0) {
        for base in RENAMED {
            let number = text.strip_prefix(base.as_bytes());
            let number = number.and_then(|rest| rest.strip_prefix(b".so."));
            if number.is_some_and(|number| number.iter().all(u8::is_ascii_digit)) {
                text[base.len() + ".so".len()..].fill(0);
            }
        }
    }
}

/// Records the program. `options` are more options of `record`.
fn record(suite: &str, asic: &str, names: Names, options: &[&str]) -> Recorded {
    let mut made = record_once(suite, asic, names, options);
    for _ in 1..ATTEMPTS {
        if !made.run.passed_over() {
            break;
        }
        made = record_once(suite, asic, names, options);
    }
    made
}

fn record_once(suite: &str, asic: &str, names: Names, options: &[&str]) -> Recorded {
    let (dir, programs, kernels) = (folder(), place::programs(), place::kernels());
    let (wheel, hip, hsa) = wheel(suite, names, dir.path());
    let clients = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients"));
    let told = dir.path().join("told");
    fs::create_dir(&told).expect("a folder");
    let output = Command::new(programs.join("tracer"))
        .args(["record", "-o"])
        .arg(dir.path().join("t.trace"))
        .args(options)
        .arg("--")
        .arg(programs.join("kfd-sim"))
        .arg("--root")
        .arg(place::rootfs(&format!("{suite}-hip")))
        .args(["--asic", asic, "--truth"])
        .arg(dir.path().join("truth.jsonl"))
        .arg("--kernels")
        .arg(&kernels)
        .args(
            [dir.path(), &kernels, clients]
                .iter()
                .flat_map(|path| ["--bind".as_ref(), path.as_os_str()]),
        )
        .args(["--", "/usr/bin/python3"])
        .arg(clients.join("wheel.py"))
        .arg(&wheel)
        .arg(kernels.join(format!("{asic}.co")))
        .arg(&told)
        // HIP and Python keep caches, which must not be in the root.
        .env("HOME", dir.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{suite} {asic} {names:?}: {said}");
    let reports = reports(&told);
    Recorded {
        run: Run::read(dir, output),
        reports,
        hip,
        hsa,
    }
}

/// Reads the reports of the program's processes.
fn reports(told: &Path) -> BTreeMap<String, Report> {
    let read = |path: PathBuf| {
        let role = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read(&path).expect("a report");
        let report: Report = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error} in {role}"));
        (role, report)
    };
    let entries = fs::read_dir(told).expect("the reports");
    entries.map(|entry| read(entry.expect("an entry").path())).collect()
}

/// Checks that the processes are those of the program, that each used the wheel's libraries, and that each has a row.
fn processes(made: &Recorded) {
    let launching = ["fork", "loaded", "spawn", "forkserver"];
    let launching = (1..).zip(launching.into_iter().flat_map(|kind| [kind, kind]));
    let mut roles: BTreeMap<String, usize> = launching
        .map(|(number, kind)| (format!("{kind}-{number}"), 3))
        .collect();
    roles.insert("main".to_owned(), 3);
    roles.extend(["data-9", "data-10"].map(|role| (role.to_owned(), 0)));
    let told: BTreeMap<String, usize> = made
        .reports
        .iter()
        .map(|(role, report)| (role.clone(), report.threads.len()))
        .collect();
    assert_eq!(told, roles);

    let rows = made.run.facts.iter().filter_map(|fact| match fact {
        Fact::Process(row) => Some((row.pid, row)),
        _ => None,
    });
    let rows: BTreeMap<u32, &Process> = rows.collect();
    for (role, report) in &made.reports {
        assert_eq!(report.libraries, [made.hip.clone(), made.hsa.clone()].into(), "{role}");
        let row = rows[&report.pid];
        assert_eq!((row.parent, &*row.comm), (Some(report.parent), "python3"), "{role}");
        assert!(row.exit_ns.is_some(), "{role}: {row:?}");
        let queues = made.run.queues().filter(|queue| queue.pid == report.pid).count();
        assert_eq!(queues == 0, report.threads.is_empty(), "{role}: {queues} queues");
    }
}

/// Checks that each launch is a dispatch with its kernel and its size, published by the thread that launched it; and that no other
/// dispatch has a kernel with a name. Each stream has a queue of its own, so no thread rings for another one. Returns the number of
/// launches.
fn launches(made: &Recorded) -> u64 {
    let mut told = BTreeMap::new();
    let mut by_kernel = BTreeMap::new();
    for (pid, thread) in made.threads() {
        assert_ne!(thread.right, Some(false), "{thread:?}");
        let key = (pid, thread.tid, &*thread.kernel, thread.grid, thread.workgroup);
        *told.entry(key).or_insert(0) += thread.launches;
        *by_kernel.entry((u64::from(pid), &*thread.kernel)).or_insert(0) += thread.launches;
    }
    let mut traced = BTreeMap::new();
    for dispatch in made.run.dispatches() {
        if let Some(kernel) = &dispatch.kernel {
            let key = (dispatch.pid, dispatch.tid, &**kernel, dispatch.grid, dispatch.workgroup);
            *traced.entry(key).or_insert(0_u64) += 1;
        }
    }
    assert_eq!(traced, told);

    // The report counts the same.
    let mut reported = BTreeMap::new();
    for row in made.run.report["kernels"].as_array().expect("kernels") {
        if let Some(kernel) = row["name"].as_str() {
            let pid = row["pid"].as_u64().expect("a process");
            *reported.entry((pid, kernel)).or_insert(0) += row["count"].as_u64().expect("a number");
        }
    }
    assert_eq!(reported, by_kernel);
    told.values().sum()
}

/// Checks the rules whose outcome does not depend on the machine or on options.
fn verdict_passes(run: &Run) {
    let (_, verdict) = verdict("doorbell-bypass", run.trace.dir());
    for name in ["sound-capture", "dispatches", "command", "coverage"] {
        let rule = rule(&verdict, name);
        assert_eq!(rule["outcome"], "pass", "{rule}");
    }
}

/// Records without options and compares everything.
fn equal_without_options(turn: usize, names: Names) {
    for (suite, asic) in each_release(turn) {
        let made = record(suite, asic, names, &[]);
        let compared = compare::all(&made.run);
        made.has_probes_in(&[&made.hsa]);
        processes(&made);
        let launches = launches(&made);
        println!("{suite} {asic} {names:?}: {launches} launches, {compared:?}");
        assert_eq!(launches, 9 * 3 * 40);
        verdict_passes(&made.run);
    }
}

#[test]
fn a_wheel_with_hashed_names_needs_no_option() {
    equal_without_options(0, Names::Hashed);
}

#[test]
fn a_wheel_with_plain_names_needs_no_option() {
    equal_without_options(1, Names::Plain);
}

/// HIP of a wheel is found too: each launch and each wait is a call of its thread, and each launch is linked to its dispatch.
#[test]
fn calls_of_the_hip_in_a_wheel_are_rows() {
    for (suite, asic, names) in [
        ("trixie", "gfx1100", Names::Hashed),
        ("experimental", "gfx942", Names::Plain),
    ] {
        let made = record(suite, asic, names, &["--api", "hip"]);
        compare::all(&made.run);
        compare::consistent_calls(&made.run);
        made.has_probes_in(&[&made.hip, &made.hsa]);
        launches(&made);
        for (pid, thread) in made.threads() {
            let own = |call: &&ApiCall| (call.pid, call.tid) == (pid, thread.tid);
            let of = |function: &str| {
                let own = made.run.api_calls().filter(own);
                own.filter(|call| call.function == function).collect::<Vec<_>>()
            };
            let launched = of("hipModuleLaunchKernel");
            assert_eq!(launched.len() as u64, thread.launches, "{thread:?}");
            assert_eq!(of("hipStreamSynchronize").len() as u64, thread.waits, "{thread:?}");
            for call in launched {
                assert_eq!((call.failed, call.dispatches), (Some(false), 1), "{call:?}");
            }
        }
    }
}
