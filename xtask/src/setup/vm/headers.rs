//! Debian's kernel headers in a folder of the cache, with build tools that run on this machine.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cmd;
use crate::setup::folder::write_script;

/// Programs that only start another program for the architecture, which they cannot do when a loader runs them.
const DISPATCHERS: [(&str, &str); 2] = [("modpost", "modpost.real-lsb-64"), ("objtool", "objtool.real-x86")];

/// Makes unpacked headers usable at their final place.
///
/// `unpacked` contains the packages' `usr`. It is later renamed to `place`. `runtime` is a root file system whose C library is as
/// new as the headers' programs need.
pub fn adapt(unpacked: &Path, place: &Path, release: &str, runtime: &Path) -> Result<()> {
    let makefile = unpacked.join(format!("usr/src/linux-headers-{release}/Makefile"));
    let text = fs::read_to_string(&makefile).with_context(|| format!("cannot read {}", makefile.display()))?;
    // The text names /usr/src, where the packages would have been installed.
    let text = text.replace("/usr/src/", &format!("{}/usr/src/", place.display()));
    fs::write(&makefile, text).with_context(|| format!("cannot write {}", makefile.display()))?;
    let mut folders = vec![unpacked.join("usr/lib")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if entry.file_type()?.is_file() && is_program(&path)? {
                wrap(&path, unpacked, place, runtime)?;
            }
        }
    }
    Ok(())
}

/// Replaces a program by a script of the same name that runs it with the loader and libraries of `runtime`.
fn wrap(program: &Path, unpacked: &Path, place: &Path, runtime: &Path) -> Result<()> {
    let name = program
        .file_name()
        .context("a program without a name")?
        .to_string_lossy()
        .into_owned();
    let moved = program.with_file_name(format!("{name}.elf"));
    fs::rename(program, &moved).with_context(|| format!("cannot rename {}", program.display()))?;
    let real = DISPATCHERS
        .iter()
        .map(|(dispatcher, real)| (*dispatcher, *real))
        // In older packages the program of this name is the real one.
        .find(|(dispatcher, real)| *dispatcher == name && has_program(program, real))
        .map_or(name.as_str(), |(_, real)| real);
    let folder = program
        .strip_prefix(unpacked)?
        .parent()
        .context("a program without a folder")?;
    let elf: PathBuf = place.join(folder).join(format!("{real}.elf"));
    let quoted = |path: &Path| cmd::shell_quote(&path.to_string_lossy());
    let script = format!(
        "#!/bin/sh\nexec {} --library-path {} {} \"$@\"\n",
        quoted(&runtime.join("usr/lib64/ld-linux-x86-64.so.2")),
        quoted(&runtime.join("usr/lib/x86_64-linux-gnu")),
        quoted(&elf),
    );
    write_script(program, &script)
}

/// Returns whether a program of this name is beside another, whether or not it is already wrapped.
fn has_program(beside: &Path, name: &str) -> bool {
    beside.with_file_name(name).exists()
}

/// Returns whether a file is an executable ELF program for this machine.
fn is_program(path: &Path) -> Result<bool> {
    let mut head = [0; 4];
    let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let read = file.take(4).read(&mut head)?;
    Ok(read == 4 && head == *b"\x7fELF" && cmd::is_executable(path))
}
