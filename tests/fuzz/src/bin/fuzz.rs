//! Runs one target under libFuzzer: `TRACER_FUZZ_TARGET` names it (without it, all are listed), `TRACER_FUZZ_SEEDS` the folder that
//! its seeds are written to.
#![no_main]

use std::{env, fs, path::Path, sync::OnceLock};

use tracer_fuzz::{ALL, Target};

/// The target, chosen before the first input.
static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

fn choose() {
    let Ok(name) = env::var("TRACER_FUZZ_TARGET") else {
        ALL.iter().for_each(|target| println!("{}", target.name));
        std::process::exit(0);
    };
    let Some(target) = ALL.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
        eprintln!(
            "set TRACER_FUZZ_TARGET to one of {}, as `cargo xtask fuzz` does",
            names.join(", ")
        );
        std::process::exit(2);
    };
    if let Some(folder) = env::var_os("TRACER_FUZZ_SEEDS") {
        for (number, seed) in (target.seeds)().iter().enumerate() {
            if let Err(error) = fs::write(Path::new(&folder).join(format!("seed-{number}")), seed) {
                eprintln!("a seed can't be written to {}: {error}", Path::new(&folder).display());
                std::process::exit(2);
            }
        }
    }
    let _ = CHOSEN.set(target);
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(data);
    }
});
