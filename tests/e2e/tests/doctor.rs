//! `tracer doctor` reports the true state of this machine, and changes nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;
use tracer_e2e::{place, scenario::each_release};

fn runtime(suite: &str) -> PathBuf {
    place::rootfs(suite).join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1")
}

fn doctor(options: &[&str], library: Option<&Path>) -> Output {
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("doctor").args(options);
    if let Some(library) = library {
        command.arg("--library").arg(library);
    }
    command.output().expect("tracer runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns whether this machine itself has the scheduler's events. No test machine so far had them.
fn has_driver() -> bool {
    ["amdgpu", "gpu_sched", "amd_sched"]
        .iter()
        .any(|module| Path::new("/sys/module").join(module).exists())
}

#[test]
fn doorbells_of_each_runtime_would_be_captured() {
    for (suite, _) in each_release(0) {
        let output = doctor(&["--json"], Some(&runtime(suite)));
        let found = json(&output);
        let capture = &found["record_would_capture"];
        for what in ["doorbells", "packets", "reserves", "sdma", "ioctls"] {
            assert_eq!(capture[what]["captured"], "yes", "{suite}, {what}: {}", capture[what]);
        }
        let library = &found["libraries"][0];
        assert_eq!(found["libraries"].as_array().unwrap().len(), 1);
        assert_eq!(library["error"], Value::Null);
        assert_eq!(library["recognised"], true);
        let doorbells = library["doorbells"].as_array().unwrap();
        // docs/facts.md: 7.2.4 has three stores, each behind a conditional jump.
        let (sites, instruction) = if suite == "experimental" {
            (3, "jcc")
        } else {
            (1, "push")
        };
        assert_eq!(doorbells.len(), sites, "{suite}");
        for site in doorbells {
            assert_eq!(
                (&site["instruction"], &site["emulated"]),
                (&instruction.into(), &true.into()),
                "{suite}"
            );
            assert!(site["ns"].as_u64().is_some(), "{site}");
            assert!(site["file_offset"].as_u64().unwrap() > site["function"].as_u64().unwrap() % 4096);
        }
        assert!(!library["sdma"].as_array().unwrap().is_empty());
        assert!(!library["reserves"].as_array().unwrap().is_empty());
        assert!(library["queue_create"]["file_offset"].is_u64(), "{suite}");
        // No packaged runtime has `hsa_amd_queue_create` yet.
        let described = &library["queue_create_described"];
        assert_eq!(described, &Value::Null, "{suite}: if it has one, demand its site");
    }
}

#[test]
fn rings_without_a_driver_are_a_lack_with_a_fix() {
    if has_driver() {
        println!("skipped: this machine has the driver");
        return;
    }
    let output = doctor(&["--json"], Some(&runtime("trixie")));
    assert_eq!(output.status.code(), Some(1));
    let found = json(&output);
    let rings = &found["record_would_capture"]["rings"];
    assert_eq!(rings["captured"], "no");
    assert!(rings["fix"].as_str().unwrap().contains("modprobe amdgpu"), "{rings}");
    assert_eq!(found["complete"], false);
    assert_eq!(found["driver"]["events"]["set"], Value::Null);
    let functions = found["driver"]["functions"].as_array().unwrap();
    assert!(
        functions
            .iter()
            .any(|f| f["name"] == "kfd_ioctl" && f["presence"] == "absent")
    );
}

#[test]
fn every_program_loads_and_uprobes_of_each_kind_are_measured() {
    let found = json(&doctor(&["--json"], Some(&runtime("trixie"))));
    let programs = found["programs"]["programs"].as_array().unwrap();
    assert!(
        programs.len() > 10 && programs.iter().all(|p| p["error"].is_null()),
        "{programs:?}"
    );
    for feature in ["ring_buffer", "bpf_loop", "attach_cookie", "send_signal"] {
        assert_eq!(found["programs"]["features"][feature], true, "{feature}");
    }
    let kinds = found["uprobe_cost"]["kinds"].as_array().unwrap();
    let ns = |name: &str| {
        let kind = kinds.iter().find(|k| k["instruction"] == name).expect("measured");
        println!("{name}: {} ns", kind["ns"]);
        kind["ns"].as_u64().unwrap_or_else(|| panic!("{kind}"))
    };
    for emulated in ["nop", "push", "call", "jcc"].map(ns) {
        assert!(emulated > 0);
        for stepped in ["mov", "endbr64"].map(ns) {
            assert!(
                stepped > emulated,
                "{stepped} ns single-stepped, {emulated} ns emulated"
            );
        }
    }
    // The programs of a recording, which did their work: an error says that they did not.
    let cost = &found["doorbell_cost"];
    println!("{cost}");
    assert_eq!(cost["error"], Value::Null);
    let ns = |name: &str| cost[name].as_u64().unwrap();
    assert!(ns("empty_ns") > 0 && ns("doorbell_ns") > ns("empty_ns") && ns("reserve_ns") > ns("empty_ns"));
}

#[test]
fn a_file_that_is_no_runtime_gives_one_sentence() {
    let dir = TempDir::new().unwrap();
    let cut = dir.path().join("cut.so");
    let whole = fs::read(runtime("trixie")).unwrap();
    let of = |path: &Path| {
        let output = doctor(&["--json"], Some(path));
        assert_eq!(output.status.code(), Some(1));
        let found = json(&output);
        assert_eq!(found["record_would_capture"]["doorbells"]["captured"], "no");
        let error = found["libraries"][0]["error"].as_str().expect("an error").to_owned();
        assert!(
            error.contains(&*path.to_string_lossy()) && !error.contains('\n'),
            "{error}"
        );
        error
    };
    assert!(of(Path::new("/etc/passwd")).contains("not an ELF file"));
    assert!(of(&dir.path().join("none")).contains("No such file"));
    assert!(of(dir.path()).contains("not a regular file"));
    assert!(of(Path::new("/bin/sh")).contains("not an HSA runtime"));
    fs::write(&cut, &whole[..whole.len() / 3]).unwrap();
    assert!(of(&cut).contains("malformed ELF file"));
    fs::write(&cut, &whole[..40]).unwrap();
    of(&cut);
}

#[test]
fn the_text_ends_with_what_would_be_captured() {
    let output = doctor(&[], Some(&runtime("sid")));
    let said = text(&output);
    let (_, end) = said.split_once("Would record capture").expect("a conclusion");
    assert!(end.contains("doorbells  yes"), "{said}");
    assert!(said.contains("per hit on this machine"), "{said}");
}

/// Inside the simulator's namespace, doctor names its simulated GPU, and finds the runtime at the path where a container has it.
#[test]
fn a_simulated_gpu_is_called_so_and_its_runtime_is_found() {
    let programs = place::programs();
    let output = Command::new(programs.join("kfd-sim"))
        .arg("--root")
        .arg(place::rootfs("trixie"))
        .args(["--asic", "gfx1100", "--bind"])
        .arg(&programs)
        .arg("--")
        .arg(programs.join("tracer"))
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let found = json(&output);
    assert!(found["gpus"]["simulated"].as_str().unwrap().contains("kfd-sim"));
    assert_eq!(found["gpus"]["gpus"][0]["name"], "gfx1100");
    assert_eq!(found["gpus"]["nodes"][0]["path"], "/dev/kfd");
    assert_eq!(found["libraries"].as_array().unwrap().len(), 1, "links are one library");
    assert_eq!(found["record_would_capture"]["doorbells"]["captured"], "yes");
}

#[test]
fn the_error_for_a_user_without_rights_names_sudo() {
    let output = place::without_rights().arg("doctor").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(said.contains("sudo tracer doctor"), "{said}");
    assert!(said.contains("no cap_bpf") && said.contains("doorbells  no"), "{said}");
}

#[test]
fn nothing_is_left_behind() {
    let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
    // tracer's programs by name. Others may be loaded and unloaded in between.
    let programs = || {
        let all = aya::programs::loaded_programs().filter_map(Result::ok);
        all.filter(|p| p.name_as_str() == Some("cost")).count()
    };
    let before = (mounts(), programs());
    assert!(doctor(&["--json"], None).status.code().is_some());
    assert_eq!((mounts(), programs()), before);
}

#[test]
fn an_unknown_option_is_a_usage_error() {
    assert_eq!(doctor(&["--nonsense"], None).status.code(), Some(2));
}
