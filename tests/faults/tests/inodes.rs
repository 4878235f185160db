//! The inode of a file that tracer has examined belongs to another file later: to a runtime.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Stdio},
};

use tracer_core::tables::Fact;
use tracer_e2e::{
    place,
    running::{Program, Recorder},
    scenario::{Run, Scenario, folder},
};
use tracer_faults::{Attack, tries};

/// The number of dispatches of a program.
const COUNT: &str = "300";
/// The number of files that the test creates to get a certain inode.
const FILES: usize = 1000;

/// A process that uses the KFD maps a file that is no runtime. Then the file goes.
fn map_something(file: &Path) {
    fs::write(file, [0; 4096]).expect("a file");
    let mut loader = Command::new(place::programs().join("loader"));
    let status = loader.arg("--kfd").arg(file).stdout(Stdio::null()).status();
    assert!(status.expect("it runs").success());
}

/// Copies the runtime to a file with this inode. Returns whether the file system gave the inode to one of the files.
fn copy_to_inode(inode: u64, library: &Path) -> bool {
    let original = place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let folder = library.parent().expect("a folder");
    for number in 0..FILES {
        let file = folder.join(format!("file-{number}"));
        fs::write(&file, "").expect("a file");
        if fs::metadata(&file).expect("it is there").ino() == inode {
            fs::copy(original, &file).expect("it can be copied");
            fs::rename(&file, library).expect("it can be renamed");
            return true;
        }
    }
    false
}

fn reuse() -> Result<(), String> {
    let libraries = folder();
    let library = libraries.path().join("libhsa-runtime64.so.1");
    let traces = folder();
    let recorder = Recorder::start(&traces.path().join("t.trace"), &["-a".to_owned()]);
    recorder.hears("watching   every process");
    let plain = libraries.path().join("plain");
    map_something(&plain);
    let inode = fs::metadata(&plain).expect("it is there").ino();
    fs::remove_file(&plain).expect("it can be removed");
    if !copy_to_inode(inode, &library) {
        println!("this file system used no inode again: nothing was tried");
        drop(recorder);
        return Ok(());
    }
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", COUNT]);
    let dir = folder();
    let mut words = scenario.simulated_with(dir.path(), &[libraries.path()]);
    words.extend(["--library".into(), library.into()]);
    let mut program = Program::start(dir, &words);
    assert!(program.wait().success());
    // Without the runtime's probes the recorder exits with 124.
    let run: Run = program.read(recorder.interrupt());
    let dispatches = run
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Dispatch(_)))
        .count() as u64;
    let seen = run
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Doorbell(_)))
        .count();
    if dispatches == run.truth.dispatches() && dispatches > 0 && seen > 0 {
        Ok(())
    } else {
        let all = run.truth.dispatches();
        Err(format!("{dispatches} of {all} dispatches, {seen} doorbells"))
    }
}

#[test]
fn a_runtime_with_the_inode_of_an_examined_file_is_found() {
    let mut attack = Attack::new("a runtime gets the inode of a file that was examined and is gone");
    for _ in 0..tries(1, 20) {
        attack.count(reuse());
    }
    attack.finish();
}
