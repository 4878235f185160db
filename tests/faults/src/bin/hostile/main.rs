//! A program that uses AMD's runtime and then turns its own memory into a trap for any reader: lists that never end, dangling
//! pointers, names of devices. It only changes itself.
//!
//! `hostile modes` prints the names of its modes. `hostile FOLDER CODE-OBJECT MODE` submits some packets, sets the trap, submits
//! more, and exits with 0 without cleaning up. FOLDER is for files that the trap needs.

mod list;
mod memory;
mod queue;
mod runtime;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use runtime::Runtime;

/// The resources of a trap.
pub struct Scene {
    /// The runtime, in use.
    pub runtime: Runtime,
    /// A folder for the trap's files.
    pub folder: PathBuf,
    /// The bytes of a code object that the GPU can run.
    pub code: Vec<u8>,
}

/// A trap: its name and its function.
pub type Mode = (&'static str, fn(&Scene));

fn modes() -> impl Iterator<Item = Mode> {
    list::MODES.into_iter().chain(queue::MODES)
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["modes"] => {
            modes().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [folder, code, mode] => match modes().find(|(name, _)| name == mode) {
            Some((_, set)) => run(Path::new(folder), Path::new(code), set),
            None => fail(&format!("no mode {mode}")),
        },
        _ => fail("usage: hostile modes | hostile FOLDER CODE-OBJECT MODE"),
    }
}

fn run(folder: &Path, code: &Path, set: fn(&Scene)) -> ExitCode {
    let code = match std::fs::read(code) {
        Ok(code) => code,
        Err(error) => return fail(&format!("{}: {error}", code.display())),
    };
    let runtime = match Runtime::start() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    let scene = Scene {
        runtime,
        folder: folder.to_owned(),
        code,
    };
    set(&scene);
    // Leaves time to sample the changed memory.
    std::thread::sleep(std::time::Duration::from_millis(60));
    // SAFETY: this exits the process. The runtime would fail on its changed memory.
    unsafe { libc::_exit(0) }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("hostile: {why}");
    ExitCode::FAILURE
}
