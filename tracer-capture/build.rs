//! Finds the eBPF objects that `cargo xtask build` makes, so that the library can carry them.
//!
//! Without them the crate still builds (for `cargo check`, clippy, editors); loading one then says what is missing.

use std::{env, path::PathBuf};

/// Of each object: the variable that names it, its default place, and the `cfg` that says it is there.
const OBJECTS: [(&str, &str, &str); 2] = [
    ("TRACER_EBPF_OBJECT", "tracer-ebpf.o", "has_ebpf_object"),
    ("TRACER_EBPF_LOG_OBJECT", "tracer-ebpf-log.o", "has_ebpf_log_object"),
];

fn main() {
    for (variable, file, cfg) in OBJECTS {
        println!("cargo::rerun-if-env-changed={variable}");
        let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf")).join(file);
        let object = env::var_os(variable).map_or(built, PathBuf::from);
        println!("cargo::rerun-if-changed={}", object.display());
        println!("cargo::rustc-check-cfg=cfg({cfg})");
        if object.is_file() {
            println!("cargo::rustc-cfg={cfg}");
            println!("cargo::rustc-env={variable}_PATH={}", object.display());
        }
    }
}
