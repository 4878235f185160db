//! Finds the eBPF object that `cargo xtask build` makes, so that the library can carry it.
//!
//! Without one the crate still builds (for `cargo check`, clippy, editors); loading it then says what is missing.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=TRACER_EBPF_OBJECT");
    let object = env::var_os("TRACER_EBPF_OBJECT").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ebpf/tracer-ebpf.o")),
        PathBuf::from,
    );
    println!("cargo::rerun-if-changed={}", object.display());
    println!("cargo::rustc-check-cfg=cfg(has_ebpf_object)");
    if object.is_file() {
        println!("cargo::rustc-cfg=has_ebpf_object");
        println!("cargo::rustc-env=TRACER_EBPF_OBJECT_PATH={}", object.display());
    }
}
