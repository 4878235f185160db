//! The packages in use: installed into new root folders of Debian, run there on the simulated GPU, upgraded and removed.
//!
//! The kernel is this machine's, the GPU is simulated, and systemd does not run there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Release, packages};
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;
use crate::simulated;

/// The releases of Debian: 12, 13, and the one in the making; and a GPU that its runtime knows.
const SUITES: [(&str, &str); 3] = [("bookworm", "gfx90a"), ("trixie", "gfx1100"), ("sid", "gfx1100")];
/// What a user installs besides tracer, and what unpacks the .rpm.
const PACKAGES: &str = "libhsa-runtime64-1,rpm2cpio,cpio";
/// The capabilities of docs/security.md that record a command.
const CAPABILITIES: [&str; 10] = [
    "bpf",
    "perfmon",
    "sys_admin",
    "sys_ptrace",
    "dac_read_search",
    "checkpoint_restore",
    "kill",
    "setuid",
    "setgid",
    "setpcap",
];
/// Dispatches of each recorded run.
const DISPATCHES: u64 = 200;
/// Folders that are not compared: apt and dpkg write into some of them, and the kernel owns the others.
const OTHERS: [&str; 7] = [
    "var/lib/dpkg",
    "var/lib/apt",
    "var/cache",
    "var/log",
    "proc",
    "sys",
    "dev",
];

/// Tries the packages in each root folder.
pub fn run(project: &Project, release: &Release, package: &Path) -> Result<()> {
    // The kernels of every GPU are there: the packages contain them.
    crate::build::simulation(project, simulated::ASIC)?;
    let folder = project.target().join("dist-trial");
    cmd::remove_all(&folder)?;
    fs::create_dir_all(&folder)?;
    let mirror = Mirror::find()?;
    let builder = builder(project, &mirror, &folder)?;
    let upgrade = packages::deb(project, release, package, 2, &folder)?;
    for (suite, gpu) in SUITES {
        let root = Root {
            path: folder.join(suite),
            suite,
            gpu,
        };
        root.make(&builder, &mirror)
            .and_then(|()| root.tries(project, release, &upgrade))
            .with_context(|| format!("in the root folder of Debian {suite}"))?;
    }
    cmd::remove_all(&folder)
}

/// Makes one root folder, without the package.
pub fn with_runtime(project: &Project, folder: &Path) -> Result<Root> {
    fs::create_dir_all(folder)?;
    let mirror = Mirror::find()?;
    let root = Root {
        path: folder.join("root"),
        suite: "trixie",
        gpu: simulated::ASIC,
    };
    root.make(&builder(project, &mirror, folder)?, &mirror)?;
    Ok(root)
}

/// Returns the program that makes root folders, without installing it.
fn builder(project: &Project, mirror: &Mirror, folder: &Path) -> Result<PathBuf> {
    let suite = Suite::open(project.cache(), mirror, "trixie")?;
    let files = suite.download_only(&["mmdebstrap".to_owned()])?;
    let into = folder.join("builder");
    for file in files {
        apt::unpack(&file, &into)?;
    }
    suite.close()?;
    Ok(into.join("usr/bin/mmdebstrap"))
}

/// A root folder of one release of Debian.
pub struct Root {
    pub path: PathBuf,
    suite: &'static str,
    /// The simulated GPU.
    gpu: &'static str,
}

impl Root {
    fn make(&self, builder: &Path, mirror: &Mirror) -> Result<()> {
        let sources = self.path.with_extension("sources");
        fs::write(&sources, mirror.stanza(self.suite))?;
        let mut make = Command::new("perl");
        make.arg(builder)
            .args(["--quiet", "--mode=root", "--variant=apt", "--include"])
            .arg(PACKAGES)
            .arg(self.suite)
            .arg(&self.path)
            .arg(&sources);
        if self.suite == "sid" {
            // Its list expires after a week, and a mirror may have an older copy, which is signed all the same.
            make.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
        }
        cmd::run(&mut make)
    }

    /// Installs, runs, upgrades and removes the package.
    fn tries(&self, project: &Project, release: &Release, upgrade: &Path) -> Result<()> {
        let before = self.files()?;
        let first = release.out.join(format!("tracer_{}-1_amd64.deb", release.version));
        self.install(&first)?;
        self.says(project, &["tracer", "--version"], &release.version)?;
        self.doctor(project)?;
        self.records(project, &[])?;
        let all: Vec<String> = CAPABILITIES.iter().map(|name| format!("+{name}")).collect();
        let all = format!("-all,{}", all.join(","));
        let as_user = [
            "setpriv",
            "--reuid=12345",
            "--regid=12345",
            "--clear-groups",
            "--inh-caps",
            &all,
            "--ambient-caps",
            &all,
            "--bounding-set",
            &all,
        ];
        self.records(project, &as_user)?;
        self.install(upgrade)?;
        let version = self.inside(&["dpkg-query", "--show", "--showformat=${Version}", "tracer"])?;
        ensure!(
            version == format!("{}-2", release.version),
            "the upgrade left version {version}"
        );
        self.says(project, &["tracer", "--version"], &release.version)?;
        self.inside(&["dpkg", "--purge", "tracer"])?;
        let left: Vec<String> = self
            .files()?
            .difference(&before)
            .map(|file| file.display().to_string())
            .collect();
        ensure!(left.is_empty(), "the removal left {}", left.join(", "));
        self.unpack_rpm(project, release)?;
        eprintln!(
            "==> Debian {}: installed, used as root and as a user, upgraded, removed",
            self.suite
        );
        Ok(())
    }

    /// Installs a package.
    pub fn install(&self, package: &Path) -> Result<()> {
        let inside = self.path.join("package.deb");
        fs::copy(package, &inside)?;
        let done = self.inside(&["apt-get", "-qq", "install", "--yes", "./package.deb"]);
        fs::remove_file(&inside)?;
        done.map(drop)
    }

    /// Unpacks the .rpm, and runs its program.
    fn unpack_rpm(&self, project: &Project, release: &Release) -> Result<()> {
        let name = format!("tracer-{}-1.x86_64.rpm", release.version);
        fs::copy(release.out.join(&name), self.path.join("package.rpm"))?;
        self.inside(&[
            "sh",
            "-ec",
            "mkdir /unpacked; cd /unpacked; rpm2cpio /package.rpm | cpio --quiet -id",
        ])?;
        self.says(project, &["/unpacked/usr/bin/tracer", "--version"], &release.version)
    }

    /// Runs a command in the root, and returns what it prints.
    fn inside(&self, command: &[&str]) -> Result<String> {
        cmd::read(
            Command::new("chroot")
                .arg(&self.path)
                .args(command)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    }

    /// Returns a command that runs in the root, with a simulated GPU.
    fn simulated(&self, project: &Project, truth: Option<&Path>) -> Command {
        let mut command = Command::new(project.bin_dir().join("kfd-sim"));
        command.arg("--root").arg(&self.path);
        command
            .args(["--asic", self.gpu, "--kernels"])
            .arg(project.gpu_kernels());
        if let Some(truth) = truth {
            command.arg("--truth").arg(truth);
        }
        command.arg("--");
        command
    }

    fn says(&self, project: &Project, command: &[&str], expected: &str) -> Result<()> {
        let said = cmd::read(self.simulated(project, None).args(command))?;
        ensure!(
            said.contains(expected),
            "{command:?} printed {said:?}, not {expected:?}"
        );
        Ok(())
    }

    /// Runs `tracer doctor`: it must find that doorbells would be captured.
    fn doctor(&self, project: &Project) -> Result<()> {
        // It fails, because this machine has no rings of a kernel driver.
        let output = self
            .simulated(project, None)
            .args(["tracer", "doctor", "--json"])
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let found: serde_json::Value = serde_json::from_str(&text)?;
        let doorbells = &found["record_would_capture"]["doorbells"];
        ensure!(doorbells["captured"] == "yes", "doctor says of doorbells: {doorbells}");
        Ok(())
    }

    /// Records a run, with words before the command, and compares its dispatches with the simulator's log.
    fn records(&self, project: &Project, before: &[&str]) -> Result<()> {
        let folder = self.path.join("trial");
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let truth = self.path.with_extension("truth");
        let count = DISPATCHES.to_string();
        cmd::read(
            self.simulated(project, Some(&truth))
                .args(before)
                .args(["tracer", "record", "-o", "/trial/t.trace", "--"])
                .args(["hsa-dispatch", "compute-only", "-n", &count]),
        )?;
        let report =
            cmd::read(
                self.simulated(project, None)
                    .args(["tracer", "report", "--format", "json", "/trial/t.trace"]),
            )?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let expected = dispatches(&fs::read_to_string(&truth)?)?;
        let found = &report["dispatches"]["total"];
        ensure!(
            expected >= DISPATCHES && *found == expected,
            "{found} dispatches were recorded of {expected}"
        );
        fs::remove_file(&truth)?;
        cmd::remove_all(&folder)
    }

    /// Returns the files and folders of the root, without those in [`OTHERS`].
    fn files(&self) -> Result<BTreeSet<PathBuf>> {
        let mut command = Command::new("find");
        command.arg(&self.path).arg("-xdev");
        for other in OTHERS {
            command.arg("-path").arg(self.path.join(other)).args(["-prune", "-o"]);
        }
        let text = cmd::read(command.args(["-printf", "%P\\n"]))?;
        Ok(text.lines().map(PathBuf::from).collect())
    }
}

/// Returns the number of kernel dispatches in a log of the simulator.
fn dispatches(log: &str) -> Result<u64> {
    let mut count = 0;
    for line in log.lines() {
        let event: serde_json::Value = serde_json::from_str(line)?;
        count += u64::from(event["ev"] == "packet" && event["kind"] == "kernel_dispatch");
    }
    Ok(count)
}
