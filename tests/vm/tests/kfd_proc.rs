//! Processes that have the real /dev/kfd open, as `tracer doctor` lists them. Without a GPU none of them can have a queue.
//!
//! `cargo xtask test --vm` runs them: they need what `cargo xtask setup --only vm` installs.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

use serde_json::Value;
use tracer_vm::{Command, Config, Kernel, Module, Vm};

/// Why the tests are left out of an ordinary run.
macro_rules! on_each_kernel {
    ($($check:ident),*) => {
        mod v6_1 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("6.1"); })* }
        mod v6_12 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("6.12"); })* }
        mod v7 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("7.x"); })* }
    };
}
on_each_kernel!(processes_are_listed_where_the_driver_is);

fn boot(kernel: &str, modules: &[Module]) -> Vm {
    let mut config = Config::new(Kernel::find(kernel).unwrap()).unwrap();
    config.modules = modules.to_vec();
    Vm::boot(&config).unwrap()
}

/// What doctor says of processes, and the id of the shell that ran it after `before`.
fn listed(vm: &mut Vm, before: &str) -> (Value, u64) {
    let script = format!("{before}; echo $$; exec 4>&1; tracer doctor --json >&4");
    let output = vm.run(&Command::new("sh").args(["-c", &script])).unwrap();
    let text = output.stdout_text();
    let (pid, json) = text.split_once('\n').unwrap();
    let found: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
    (found["gpus"]["processes"].clone(), pid.parse().unwrap())
}

fn processes_are_listed_where_the_driver_is(kernel: &str) {
    let mut vm = boot(kernel, &[Module::Amdgpu]);
    assert_eq!(listed(&mut vm, ":").0, Value::Array(vec![]), "nobody has it open");
    if kernel == "7.x" {
        println!("no process: without a GPU this kernel's /dev/kfd can't be opened");
    } else {
        let (processes, pid) = listed(&mut vm, "exec 3<>/dev/kfd");
        println!("{} {processes}", vm.release());
        assert_eq!(processes, serde_json::json!([{"pid": pid, "queues": []}]));
    }
    let mut without = boot(kernel, &[]);
    assert!(listed(&mut without, ":").0.is_null());
}
