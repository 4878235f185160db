//! This kernel's verifier accepts every eBPF program, and the verification costs no more than before.

use aya::{EbpfLoader, programs::Program};
use std::{collections::BTreeMap, fs, os::fd::AsFd};

use tracer_capture::{kernel::ebpf_object::Object, session::Api, sys::program_misses};
use tracer_common::pause::TaskLayout;
use tracer_e2e::baseline;

/// The kernel's limit on instructions that the verifier examines (`BPF_COMPLEXITY_LIMIT_INSNS`, Linux 5.2 and later).
const LIMIT: u32 = 1_000_000;

#[test]
fn every_program_passes_the_verifier_far_from_its_limit() {
    load_all("usual", Object::Plain, Api::NONE, 0);
}

#[test]
fn programs_with_diagnostics_load() {
    load_all("with diagnostics", Object::Diagnostic, Api::NONE, 0);
}

/// Whether processes are added automatically is decided when the programs are loaded, too.
#[test]
fn programs_for_every_process_load() {
    load_all("every process", Object::Plain, Api::NONE, std::process::id());
    load_all(
        "every process, with diagnostics",
        Object::Diagnostic,
        Api::NONE,
        std::process::id(),
    );
}

/// The handling of API calls is decided when the programs are loaded. The verifier removes the rest.
#[test]
fn programs_for_api_calls_load() {
    load_all("API calls", Object::Plain, Api::ALL, 0);
    load_all("statistics of API calls", Object::Plain, Api::STATS, 0);
}

/// Returns the kernel's major and minor version: verifiers of different releases count differently.
fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    release.trim().split('.').take(2).collect::<Vec<_>>().join(".")
}

fn load_all(what: &str, object: Object, api: Api, system: u32) {
    let word = api.word();
    // Without offsets, the verifier would remove what reads the fields. Any offset does.
    let offset = 8_u32;
    let task = [offset; size_of::<TaskLayout>() / size_of::<u32>()];
    let mut ebpf = EbpfLoader::new()
        .override_global("API", &word, true)
        .override_global("SYSTEM", &system, true)
        .override_global("TASK", &task, true)
        .override_global("EXIT_GROUP_DEAD", &offset, true)
        .override_global("SIGNAL_NUMBER", &offset, true)
        .override_global("SIGNAL_HANDLER", &offset, true)
        .load(object.bytes().expect("built by xtask"))
        .expect("the object loads; root is needed");
    let mut names: Vec<String> = Vec::new();
    let mut counts = BTreeMap::new();
    println!("{:<16} {:>12} {:>12}", "program", "verified", "translated B");
    for (name, program) in ebpf.programs_mut() {
        match program {
            Program::UProbe(p) => p.load(),
            Program::TracePoint(p) => p.load(),
            Program::KProbe(p) => p.load(),
            Program::RawTracePoint(p) => p.load(),
            other => panic!(
                "{name}: a kind of program that this test does not know: {:?}",
                other.prog_type()
            ),
        }
        .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let info = program.info().expect("a loaded program");
        let misses = program_misses(program.fd().expect("a loaded program").as_fd());
        assert_eq!(
            misses.expect("Linux 5.12 and later count them"),
            0,
            "{name} was never attached"
        );
        let verified = info
            .verified_instruction_count()
            .expect("Linux 5.16 and later count them");
        println!("{name:<16} {verified:>12} {:>12}", info.size_translated().unwrap_or(0));
        assert!(
            verified < LIMIT / 4,
            "{name} takes the verifier {verified} of {LIMIT} instructions"
        );
        counts.insert(name.to_owned(), u64::from(verified));
        names.push(name.to_owned());
    }
    // Without a baseline for this kernel, only the limit counts.
    baseline::compare(&format!("instructions verified by Linux {}, {what}", kernel()), &counts);
    names.sort();
    let expected = [
        "api_enter",
        "api_return",
        "code_object",
        "cost",
        "doorbell",
        "doorbell_by_signal",
        "driver_enter",
        "driver_event_cleaner",
        "driver_event_cs",
        "driver_event_flush",
        "driver_event_move",
        "driver_event_run",
        "driver_return",
        "empty",
        "hsa_queue_enter",
        "hsa_queue_enter_described",
        "hsa_queue_return",
        "ioctl_enter",
        "ioctl_enter_twin",
        "ioctl_exit",
        "ioctl_exit_twin",
        "mmap_exit",
        "mmap_exit_twin",
        "progress_exit",
        "progress_exit_twin",
        "progress_signal",
        "progress_signal_raw",
        "reserve",
        "ring_done",
        "ring_done_raw",
        "ring_run",
        "ring_run_raw",
        "ring_submit",
        "ring_submit_raw",
        "runtime_init",
        "sdma_doorbell",
        "stop_sent",
        "task_exec",
        "task_exec_raw",
        "task_exit",
        "task_exit_raw",
        "task_new",
        "task_new_raw",
    ];
    assert_eq!(names, expected);
}
