//! A program that uses AMD's runtime and then makes its own memory a trap for whoever reads it: lists that never end, pointers to
//! nowhere, names of devices. What it does it does to itself alone.
//!
//! `hostile modes` prints the names of its modes. `hostile FOLDER CODE-OBJECT MODE` submits some packets, sets the trap, submits
//! more, and exits with 0 and without tidying up. FOLDER is for files that the trap needs.

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

/// What a trap may use.
pub struct Scene {
    /// The runtime, in use.
    pub runtime: Runtime,
    /// A folder of its own.
    pub folder: PathBuf,
    /// Bytes of a code object that the GPU understands.
    pub code: Vec<u8>,
}

/// A trap: its name, and what it does.
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
    // Time for samples of what is wrong now.
    std::thread::sleep(std::time::Duration::from_millis(60));
    // SAFETY: ends the process. The runtime would stumble over what was done to its memory.
    unsafe { libc::_exit(0) }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("hostile: {why}");
    ExitCode::FAILURE
}
