//! tracer on each of Debian's kernels, compared with what the programs in the machine count themselves. The jobs' hardware
//! (tests/drm-sched-mock) and the GPUs (tests/kfd-sim) are simulated, because there is no real one.
//!
//! There are two machines per kernel, each for many checks, because booting takes longer than most of them: one with amdgpu and the
//! mock, one without any driver. They need what `cargo xtask setup --only vm` installs; `cargo xtask test` runs that.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

mod claims;
mod doctor;
mod driver_event;
mod ends;
mod executed;
mod import;
mod kernels;
mod kfd_proc;
mod machine;
mod ring;
mod script;
mod together;
mod verify;
mod vram;

use tracer_vm::Module;

use crate::machine::{Check, Machine};

/// Expands to checks with their names.
macro_rules! checks {
    ($($module:ident :: $check:ident),* $(,)?) => { &[$((stringify!($module::$check), $module::$check as Check)),*] };
}

/// Checks a kernel with amdgpu, but without a GPU, and with real scheduler rings.
fn with_drivers(kernel: &str) {
    Machine::boot(kernel, &[Module::Amdgpu, Module::Mock]).hold(checks![
        kernels::jobs_are_counted_and_traced,
        kernels::kfd_answers,
        kernels::programs_and_links_are_those_of_the_kernel,
        ring::jobs_and_ioctls,
        together::all_that_is_traced_at_once_equals_its_truth,
        together::all_that_perf_captures_equals_its_truth,
        together::all_that_ftrace_captures_equals_its_truth,
        ends::the_exiting_thread_takes_the_last_sample,
        verify::verdicts,
        doctor::both_paths_would_be_captured,
        driver_event::every_event_that_there_is_is_watched,
        import::the_text_of_ftrace_has_the_jobs_of_a_recording,
        import::files_of_trace_cmd_have_the_jobs_of_a_recording,
        script::a_printed_script_captures_what_a_recording_has,
        script::each_workload_equals_its_truth,
        script::a_killed_script_leaves_nothing,
        kfd_proc::processes_are_listed_where_the_driver_is,
        vram::rings_that_only_the_driver_can_read_are_read,
        vram::a_ring_that_nobody_can_read_is_unread,
        // This check unloads the mock.
        kernels::a_killed_submitter_leaves_nothing,
    ]);
}

/// Checks a kernel on which the DRM scheduler is missing, as on a kernel that was built without it.
fn without_drivers(kernel: &str) {
    Machine::boot(kernel, &[]).hold(checks![
        kernels::there_is_no_driver,
        kernels::programs_that_copy_stacks_are_accepted,
        ring::without_a_scheduler_rings_are_unknown,
        verify::without_a_scheduler_nothing_passes,
        doctor::doctor_names_what_is_missing,
        driver_event::without_the_driver_they_are_unknown,
        kfd_proc::without_the_driver_nothing_is_known,
        // A command that hangs stops the machine.
        kernels::commands,
    ]);
}

/// Checks the first claim. Its subject does not depend on the kernel, so one kernel is enough.
fn claims(kernel: &str) {
    Machine::boot(kernel, &[Module::Mock]).hold(checks![claims::jobs_on_a_compute_ring_decide_the_first_claim]);
}

/// Counts instructions. One kernel is enough to see that a change made programs worse.
fn instructions(kernel: &str) {
    Machine::boot_counting(kernel, &[Module::Amdgpu, Module::Mock]).hold(checks![
        executed::a_dispatch_takes_no_more_than_before,
        executed::calls_take_no_more_than_before,
        executed::jobs_and_processes_take_no_more_than_before,
    ]);
}

mod v6_1 {
    #[test]
    fn with_drivers() {
        super::with_drivers("6.1");
    }

    #[test]
    fn without_drivers() {
        super::without_drivers("6.1");
    }
}

mod v6_12 {
    #[test]
    fn with_drivers() {
        super::with_drivers("6.12");
    }

    #[test]
    fn claims() {
        super::claims("6.12");
    }

    #[test]
    fn instructions() {
        super::instructions("6.12");
    }
}

mod v7 {
    #[test]
    fn with_drivers() {
        super::with_drivers("7.x");
    }

    #[test]
    fn without_drivers() {
        super::without_drivers("7.x");
    }
}
