//! Attaches a program that does nothing to a place in a file, until its input ends: what the method itself costs,
//! for `cargo xtask bench`.
//!
//!     empty_probe FILE OFFSET

use std::{env, error::Error, io, path::PathBuf};

use aya::{
    EbpfLoader,
    programs::{
        Program,
        uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope},
    },
};
use tracer_capture::kernel::ebpf_object::Object;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let (Some(file), Some(offset)) = (words.next(), words.next()) else {
        return Err("usage: empty_probe FILE OFFSET".into());
    };
    let file = PathBuf::from(file);
    let offset = offset.to_string_lossy().parse()?;
    let mut ebpf = EbpfLoader::new().load(Object::Plain.bytes()?)?;
    let Some(Program::UProbe(program)) = ebpf.program_mut("empty") else {
        return Err("the object has no program of this name".into());
    };
    program.load()?;
    let point = UProbeAttachPoint {
        location: UProbeAttachLocation::AbsoluteOffset(offset),
        cookie: None,
    };
    program.attach(point, &file, UProbeScope::AllProcesses)?;
    println!("attached");
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
