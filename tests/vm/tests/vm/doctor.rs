//! `tracer doctor` where amdgpu is loaded, and where it is not.

use serde_json::{Value, json};
use tracer_e2e::place;

use crate::machine::{Machine, json};

/// Returns doctor's exit code and its report on a library.
fn doctor(machine: &mut Machine) -> (i32, Value) {
    let library = place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let output = machine.run(&format!("tracer doctor --json --library {}", library.display()));
    (output.code, json(&output))
}

fn captured(found: &Value, what: &str) -> Value {
    found["record_would_capture"][what]["captured"].clone()
}

pub fn both_paths_would_be_captured(machine: &mut Machine) {
    let (code, found) = doctor(machine);
    assert_eq!(code, 0, "{found:#}");
    for what in ["doorbells", "packets", "reserves", "sdma", "ioctls", "rings"] {
        assert_eq!(captured(&found, what), "yes", "{what}: {found:#}");
    }
    assert_eq!(found["driver"]["state"], "loaded");
    let set = if machine.kernel == "7.x" { "new" } else { "old" };
    assert_eq!(found["driver"]["events"]["set"], set, "{}", found["driver"]);
    assert_eq!(found["driver"]["events"]["raw"], true, "the modules have BTF");
    let probes = found["programs"]["events"].as_array().unwrap();
    let failed: Vec<&Value> = probes.iter().filter(|probe| !probe["error"].is_null()).collect();
    assert_eq!(failed, [&Value::Null; 0]);
    let kprobe = |probe: &&Value| probe["family"] == "driver" && probe["event"] == "kfd_ioctl";
    assert_eq!(probes.iter().filter(kprobe).count(), 1, "{probes:?}");
    let functions = found["driver"]["functions"].as_array().unwrap();
    let presence = |name: &str| {
        let found = functions.iter().find(|function| function["name"] == name);
        found.map_or(Value::Null, |function| function["presence"].clone())
    };
    for name in [
        "kfd_ioctl",
        "create_queue_cpsch",
        "add_queue_mes",
        "mes_v11_0_add_hw_queue",
    ] {
        assert_eq!(presence(name), "present", "{name} {functions:?}");
    }
    assert_eq!(presence("kfd_ioctl_no_such"), Value::Null);
}

pub fn doctor_names_what_is_missing(machine: &mut Machine) {
    let (code, found) = doctor(machine);
    assert_eq!((code, captured(&found, "rings")), (1, json!("no")), "{found:#}");
    assert_eq!(captured(&found, "doorbells"), "yes");
    // In this machine, amdgpu is not a module of /lib/modules.
    assert_eq!(found["driver"]["state"], "not-installed", "{}", found["driver"]);
    assert!(
        found["record_would_capture"]["rings"]["fix"]
            .as_str()
            .unwrap()
            .contains("modprobe amdgpu"),
        "{found:#}"
    );
}
