//! Generates docs/claims.md: tests the claims on every simulated GPU, on a real kernel with the driver and scheduler events.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::setup::Rootfs;
use crate::vm;

/// The simulated GPUs: one of the MES class, and those that a claim names.
const ASICS: [&str; 3] = ["gfx1100", "gfx942", "gfx90a"];

/// The kernel: the newest one whose system calls never make it pass over a program (docs/limitations.md), which would leave claims
/// open. Read raw, the events of its scheduler say as much as those of later kernels.
const KERNEL: &str = "6.12";

/// A compute ring of the mock scheduler. It shows that tracer would see jobs on such a ring.
const RING: &str = "comp_1.0.0";

/// Exit codes of `tracer verify --claims` that come with a report: all claims are decided, or some are open. A claim that
/// contradicts the sources is for a person to examine first.
const REPORTED: [i32; 2] = [0, 3];

/// Tests the claims in a virtual machine, and writes docs/claims and docs/claims.md.
pub fn run(project: &Project) -> Result<ExitCode> {
    let fresh = project.target().join("vm/claims");
    crate::cmd::remove_all(&fresh)?;
    fs::create_dir_all(&fresh).with_context(|| format!("cannot create {}", fresh.display()))?;
    let script = ASICS.map(|asic| script(project, &fresh, asic)).join("");
    let machine = vm::Vm::new(KERNEL, &["/bin/sh", "-c", &script], &format!("gfx_0.0.0,{RING},sdma0"));
    let code = vm::run(project, &machine)?;
    if code != ExitCode::SUCCESS {
        bail!("the claims could not be tested in a virtual machine with Linux {KERNEL}: see above");
    }
    let kept = project.root().join("docs/claims");
    fs::create_dir_all(&kept).with_context(|| format!("cannot create {}", kept.display()))?;
    for asic in ASICS {
        let name = format!("{asic}.json");
        fs::copy(fresh.join(&name), kept.join(&name)).with_context(|| format!("there is no report on {asic}"))?;
    }
    document(project, &kept)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the script of one `tracer verify --claims`, for a shell in the machine.
fn script(project: &Project, out: &Path, asic: &str) -> String {
    let quote = |path: PathBuf| crate::cmd::shell_quote(&path.to_string_lossy());
    let expected = REPORTED.map(|code| code.to_string()).join("|");
    format!(
        "code=0; tracer verify --claims --control 'ring-jobs -n 5 {RING}' --json {json} -- kfd-sim --root {root} \
         --asic {asic} --kernels {kernels} --bind {target} -- {dispatcher} --kernels {kernels} >/dev/null || code=$?\n\
         case $code in {expected}) ;; *) exit $code ;; esac\n",
        json = quote(out.join(format!("{asic}.json"))),
        root = quote(Rootfs::stable_with_hip(project).dir().to_owned()),
        kernels = quote(project.gpu_kernels()),
        target = quote(project.target().to_owned()),
        dispatcher = quote(project.bin_dir().join("hsa-dispatch")),
    )
}

/// Writes docs/claims.md from the reports.
fn document(project: &Project, kept: &Path) -> Result<()> {
    let mut tracer = Command::new(project.bin_dir().join("tracer"));
    tracer.args(["verify", "--claims", "--format", "markdown"]);
    for asic in ASICS {
        tracer.arg("--from").arg(kept.join(format!("{asic}.json")));
    }
    let output = tracer.output().context("cannot start tracer")?;
    if output.stdout.is_empty() {
        bail!("no document: {}", String::from_utf8_lossy(&output.stderr));
    }
    let path = project.root().join("docs/claims.md");
    fs::write(&path, output.stdout).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("==> wrote {}", path.display());
    Ok(())
}
