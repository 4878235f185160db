//! Queues that existed before the recording: what sysfs reports of them while a program has them.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tracer_capture::kernel::kfd_proc::{self, Numbering, Queue};
use tracer_e2e::place;

fn lines(truth: &Path) -> Vec<Value> {
    let text = fs::read_to_string(truth).unwrap_or_default();
    // The last line may be incomplete.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn every_queue_of_a_running_program_is_found_with_its_numbers() {
    let (programs, kernels, dir) = (place::programs(), place::kernels(), TempDir::new().unwrap());
    let truth = dir.path().join("truth.jsonl");
    let mut simulator = Command::new(programs.join("kfd-sim"))
        .arg("--root")
        .arg(place::rootfs("trixie"))
        .arg("--truth")
        .arg(&truth)
        .arg("--kernels")
        .arg(&kernels)
        .arg("--bind")
        .arg(&programs)
        .arg("--bind")
        .arg(&kernels)
        .arg("--")
        .arg(programs.join("hsa-dispatch"))
        .arg("--kernels")
        .arg(&kernels)
        .args(["--json", "/dev/null", "long", "-n", "1", "--ms", "60000"])
        .spawn()
        .expect("the simulator runs");
    // Its last queue exists when its first kernel runs.
    let began = Instant::now();
    while !lines(&truth).iter().any(|line| line["kind"] == "kernel_dispatch") {
        assert!(began.elapsed() < Duration::from_secs(30), "no kernel was dispatched");
        std::thread::sleep(Duration::from_millis(20));
    }
    let made: Vec<Value> = lines(&truth)
        .into_iter()
        .filter(|line| line["ev"] == "queue_create")
        .collect();
    let pid = made[0]["pid"].as_u64().unwrap();
    let root = format!("/proc/{pid}/root");
    let found = kfd_proc::below(Path::new(&root), Numbering::WithDiq).unwrap();
    println!("{found:?}");
    // SIGTERM ends the simulator, and the program with it, long before its kernel completes.
    // SAFETY: this test started the process and has not waited for it yet.
    unsafe { libc::kill(simulator.id() as i32, libc::SIGTERM) };
    simulator.wait().unwrap();

    // The runtime's own queue, and the program's.
    assert_eq!(made.len(), 2, "{made:?}");
    assert_eq!(found.len(), 1);
    assert_eq!(u64::from(found[0].pid), pid);
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    let expected: Vec<Queue> = made
        .iter()
        .map(|line| Queue {
            queue_id: number(line, "queue_id") as u32,
            context: None,
            gpu_id: Some(number(line, "gpu_id") as u32),
            type_number: Some(0),
            kind: Some("compute"),
            ring_bytes: Some(number(line, "ring_size")),
        })
        .collect();
    assert_eq!(found[0].queues, expected);
}
