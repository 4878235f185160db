//! Machines, and commands in them.

use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tracer_vm::{Command, Config, Kernel, Module, Output, Vm};

/// Where the runner does not see to it, one machine at a time: each takes 2 GiB, and a processor.
static ONE: Mutex<()> = Mutex::new(());

/// A running machine.
pub struct Machine {
    vm: Vm,
    _one: MutexGuard<'static, ()>,
}

impl Deref for Machine {
    type Target = Vm;

    fn deref(&self) -> &Vm {
        &self.vm
    }
}

impl DerefMut for Machine {
    fn deref_mut(&mut self) -> &mut Vm {
        &mut self.vm
    }
}

pub fn config(kernel: &str, modules: &[Module]) -> Config {
    let mut config = Config::new(Kernel::find(kernel).unwrap()).unwrap();
    config.modules = modules.to_vec();
    config
}

/// Boots, and says how long that took.
pub fn start(config: &Config) -> Machine {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let vm = Vm::boot(config).unwrap();
    let (wall, guest) = vm.boot_time();
    println!(
        "{} up after {wall:.2?}, {guest:.2?} by its clock; {:?}",
        vm.release(),
        vm.load_times()
    );
    Machine { vm, _one: one }
}

pub fn boot(kernel: &str, modules: &[Module]) -> Machine {
    start(&config(kernel, modules))
}

/// As [`boot`], with a folder of the host that the machine writes to.
pub fn boot_sharing(kernel: &str, modules: &[Module], folder: &Path) -> Machine {
    let mut config = config(kernel, modules);
    config.shared = vec![folder.to_owned()];
    start(&config)
}

/// Runs a shell command.
pub fn run(vm: &mut Vm, script: &str) -> Output {
    vm.run(&Command::new("sh").args(["-ec", script])).unwrap()
}

/// Runs a shell command that must succeed.
pub fn sh(vm: &mut Vm, script: &str) -> Output {
    let output = run(vm, script);
    assert_eq!(
        output.code,
        0,
        "{script}: {}{}",
        output.stdout_text(),
        output.stderr_text()
    );
    output
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout_text(), output.stderr_text()))
}

/// Words as a shell takes them.
pub fn quoted(words: &[OsString]) -> String {
    let word = |word: &OsString| format!("'{}'", word.to_string_lossy());
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A client id by which amdgpu marks its own clearing of buffers (amdgpu_job.h): 2^64 - 10.
pub const TTM_CLEAR_BUFFER: u64 = u64::MAX - 9;
