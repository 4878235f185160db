//! `tracer verify --claims` where jobs on rings can be seen: AMD's runtime on the simulated GPU, on a real kernel with the real DRM
//! scheduler, and jobs on a compute ring of the mock.

use std::env;

use serde_json::Value;
use tracer_vm::Command;

use crate::machine::Machine;

/// Jobs on a compute ring.
const JOBS: &str = "ring-jobs -n 3 comp_1.0.0";

fn folder(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `cargo xtask test --vm`"))
}

/// Tests C1 with a control command, on a dispatcher before which another command runs. Returns the exit code and the verdict.
fn first_claim(machine: &mut Machine, control: &str, before: &str) -> (i32, Value) {
    let (root, programs, kernels) = (
        folder("TRACER_ROOTFS_DIR"),
        folder("TRACER_BIN_DIR"),
        folder("TRACER_GPU_KERNELS"),
    );
    let dispatcher = format!("{before}; exec \"$@\"");
    let output = machine
        .vm
        .run(
            &Command::new("tracer")
                .args(["verify", "--claims=C1", "--format", "json", "--control", control])
                .args(["--", "/bin/sh", "-c", &dispatcher, "dispatcher"])
                .args(["kfd-sim", "--root", &format!("{root}/trixie"), "--asic", "gfx1100"])
                .args(["--kernels", &kernels, "--bind", &programs, "--bind", &kernels, "--"])
                .args([&format!("{programs}/hsa-dispatch"), "--kernels", &kernels]),
        )
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout_text(), output.stderr_text()));
    println!("{report:#}");
    (output.code, report["claims"][0].clone())
}

pub fn jobs_on_a_compute_ring_decide_the_first_claim(machine: &mut Machine) {
    let (code, found) = first_claim(machine, JOBS, "true");
    assert_eq!((code, &found["verdict"]), (0, &"holds".into()), "{found:#}");
    let rings = &found["checks"][1]["counts"];
    assert_eq!(
        (&rings["control_jobs"], &rings["jobs_of_traced_processes"]),
        (&3.into(), &0.into())
    );

    let (code, found) = first_claim(machine, "true", "true");
    assert_eq!(
        (code, &found["verdict"]),
        (3, &"inconclusive".into()),
        "a control that shows nothing: {found:#}"
    );

    let (code, found) = first_claim(machine, JOBS, &format!("{JOBS} >&2"));
    assert_eq!((code, &found["verdict"]), (1, &"contradicted".into()), "{found:#}");
    assert_eq!(found["as_sources_say"], false);
    assert_eq!(found["checks"][1]["counts"]["jobs_of_traced_processes"], 3);
}
