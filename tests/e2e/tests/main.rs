//! The end-to-end tests, one file per probe family or command, in one program.

mod aggregated;
mod answers;
mod api;
mod api_stats;
mod attach;
mod attach_hip;
mod attach_refused;
mod backends;
mod baselines;
mod book;
mod claims;
mod clients;
mod code_object;
mod diff;
mod dispatch_form;
mod doctor;
mod doorbell;
mod driver_event;
mod export;
mod gpu_time;
mod hip;
mod import;
mod inside;
mod ioctl;
mod kfd_proc;
mod live;
mod matrix;
mod monitors;
mod no_runtime;
mod opencl;
mod otlp;
mod page;
mod page_tables;
mod places;
mod profile;
mod progress;
mod proxy;
mod python;
mod query;
mod record;
mod report_page;
mod reserve;
mod resolver;
mod sdma;
mod serve;
mod share;
mod stacks;
mod system;
mod top;
mod unread;
mod verifier;
mod verify;

/// A file that no line above names would not be compiled, and its tests would never run.
#[test]
fn every_file_of_tests_is_in_this_program() {
    let this = include_str!("main.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).expect("the folder of this file") {
        let path = entry.expect("its entries").path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        if name != "main" {
            assert!(
                this.contains(&format!("\nmod {name};")),
                "{name} is not in tests/main.rs"
            );
        }
    }
}
