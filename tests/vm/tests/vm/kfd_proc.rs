//! Processes that have the real /dev/kfd open, as `tracer doctor` lists them. Without a GPU, none of them can have a queue.

use serde_json::{Value, json};

use crate::machine::Machine;

/// Returns doctor's report on processes, and the id of the shell that ran it after `before`.
fn listed(machine: &mut Machine, before: &str) -> (Value, u64) {
    let script = format!("{before}; echo $$; exec 4>&1; tracer doctor --json >&4");
    // The exit code is doctor's, which finds no library here.
    let text = machine.run(&script).stdout_text();
    let (pid, json) = text.split_once('\n').unwrap();
    let found: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
    (found["gpus"]["processes"].clone(), pid.parse().unwrap())
}

pub fn processes_are_listed_where_the_driver_is(machine: &mut Machine) {
    assert_eq!(listed(machine, ":").0, json!([]), "nobody has it open");
    if machine.kernel == "7.x" {
        println!("no process: without a GPU this kernel's /dev/kfd can't be opened");
        return;
    }
    let (processes, pid) = listed(machine, "exec 3<>/dev/kfd");
    println!("{} {processes}", machine.vm.release());
    assert_eq!(processes, json!([{"pid": pid, "queues": []}]));
}

pub fn without_the_driver_nothing_is_known(machine: &mut Machine) {
    assert!(listed(machine, ":").0.is_null());
}
