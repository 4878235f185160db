//! KFD and DRM ioctls with their arguments and results, failures included.

use std::process::Command;

use tempfile::TempDir;
use tracer_core::tables::{Fact, Ioctl};
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, each_release},
};

/// ENOMEM of `include/uapi/asm-generic/errno-base.h`.
const ENOMEM: i64 = 12;

#[test]
fn a_refused_queue_is_an_ioctl_with_its_error_and_no_queue() {
    for (suite, asic) in each_release(0) {
        let mut scenario = Scenario::new(suite, asic, &["compute-only", "-n", "5"]);
        scenario.sim = vec!["--fail", "CREATE_QUEUE:2:ENOMEM"];
        let run = scenario.record_any();
        assert!(!run.output.status.success(), "the dispatcher noticed nothing");
        compare::no_losses(&run);
        let results: Vec<Option<i64>> = run
            .facts
            .iter()
            .filter_map(|fact| {
                if let Fact::Ioctl(i) = fact {
                    (i.name == "CREATE_QUEUE").then_some(i.ret)
                } else {
                    None
                }
            })
            .collect();
        assert!(results.contains(&Some(-ENOMEM)), "{results:?}");
        let queues = run.facts.iter().filter(|fact| matches!(fact, Fact::Queue(_))).count();
        assert_eq!(queues, results.iter().filter(|ret| **ret == Some(0)).count());
        assert!(run.report["ioctls"]["by_name"]["CREATE_QUEUE"]["errors"].as_u64() >= Some(1));
    }
}

#[test]
fn queue_creation_has_a_latency() {
    let run = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "1"]).record();
    let stats = &run.report["ioctls"]["by_name"]["CREATE_QUEUE"]["ns"];
    println!("CREATE_QUEUE: {stats}");
    assert!(stats["min"].as_u64() > Some(0) && stats["max"].as_u64() >= stats["min"].as_u64());
}

/// The calls of tests/e2e/src/bin/drm-ioctls.rs, as tracer prints them. All of them except AMDGPU_INFO fail here, because the
/// simulated render node has no contexts, no rings and no user queues.
const DRM_ARGS: [Option<&str>; 6] = [
    Some("op=alloc flags=0x0 ctx_id=0 priority=-1023"),
    Some("ctx_id=7 bo_list_handle=9 num_chunks=3 flags=0x0 chunks=0x7f0000001000"),
    Some(
        "op=create queue_id=0 ip_type=compute doorbell_handle=5 doorbell_offset=8 flags=0x0 queue_va=0x100100000 \
         queue_size=4096 rptr_va=0x200001000 wptr_va=0x200001008 mqd=0x300003000 mqd_size=16",
    ),
    Some(
        "op=free queue_id=3 ip_type=gfx doorbell_handle=0 doorbell_offset=0 flags=0x0 queue_va=0x0 queue_size=0 \
         rptr_va=0x0 wptr_va=0x0 mqd=0x0 mqd_size=0",
    ),
    Some("query=0x0 return_size=4"),
    None,
];

#[test]
fn amdgpu_ioctls_have_names_arguments_and_results() {
    let dir = TempDir::with_prefix("tracer-e2e-").unwrap();
    let at = |name: &str| dir.path().join(name);
    let programs = place::programs();
    let output = Command::new(programs.join("tracer"))
        .args(["record", "-o"])
        .arg(at("t.trace"))
        .arg("--")
        .arg(programs.join("kfd-sim"))
        .arg("--truth")
        .arg(at("truth.jsonl"))
        .arg("--")
        .arg(programs.join("drm-ioctls"))
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = Run::read(dir, output);
    compare::no_losses(&run);
    // Compares with the device: commands, bytes in and out, results, times.
    let compared = compare::ioctls(&run);
    let made = made(&run);
    assert_eq!(compared, made.len());

    // Compares with the program that made the calls.
    let traced: Vec<&Ioctl> = run
        .facts
        .iter()
        .filter_map(|fact| {
            if let Fact::Ioctl(ioctl) = fact {
                Some(ioctl)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(traced.len(), made.len());
    for ((ioctl, made), args) in traced.iter().zip(&made).zip(DRM_ARGS) {
        println!("{} {} {:?}", ioctl.name, ioctl.ret.unwrap(), ioctl.args);
        assert_eq!(
            (ioctl.name.as_ref(), ioctl.device),
            (made["name"].as_str().unwrap(), "drm")
        );
        assert_eq!(
            (i64::from(ioctl.cmd), ioctl.ret),
            (made["cmd"].as_i64().unwrap(), made["ret"].as_i64())
        );
        assert_eq!(ioctl.args.as_deref(), args, "{made}");
    }
    let by_name = &run.report["ioctls"]["by_name"];
    for (name, count, errors) in [
        ("AMDGPU_CS", 1, 1),
        ("AMDGPU_USERQ", 2, 2),
        ("AMDGPU_INFO", 1, 0),
        ("drm-nr-0x7f", 1, 1),
    ] {
        let calls = &by_name[name];
        assert_eq!(
            (&calls["count"], &calls["errors"]),
            (&count.into(), &errors.into()),
            "{by_name}"
        );
    }
}

/// Returns the calls that the program printed, found in the recorder's output.
fn made(run: &Run) -> Vec<serde_json::Value> {
    let said = String::from_utf8_lossy(&run.output.stdout);
    let line = said
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("the program's line");
    let said: serde_json::Value = serde_json::from_str(line).expect("JSON");
    said["ioctls"].as_array().expect("a list").clone()
}
