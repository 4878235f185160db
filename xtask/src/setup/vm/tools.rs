//! QEMU and busybox: a folder of Debian's packages, so that the system needs no change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::MARKER;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;
use crate::setup::Install;

/// The suite whose QEMU is used: 7.2 emulates some 25 % faster than trixie's 10.0 (measured once, both by TCG).
const SUITE: &str = "bookworm";
/// The emulator without a display, and the program that starts a virtual machine's user space.
const PACKAGES: [&str; 2] = ["qemu-system-x86", "busybox-static"];
/// Where libraries are in a folder of packages.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The folder of tools.
pub struct VmTools {
    dir: PathBuf,
}

impl VmTools {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.vm_dir().join("tools"),
        }
    }

    /// Busybox, linked statically.
    pub fn busybox(&self) -> PathBuf {
        let folders = ["usr/bin", "bin"].map(|folder| self.dir.join(folder).join("busybox"));
        folders
            .iter()
            .find(|file| file.is_file())
            .unwrap_or(&folders[0])
            .clone()
    }

    /// Writes a script that runs QEMU by the folder's own loader, in the place where the folder will lie.
    ///
    /// The packages' libraries are those of another release than this machine's, maybe.
    fn write_launcher(&self, unpacked: &Path) -> Result<()> {
        let (dir, libraries) = (cmd::shell_quote(&self.dir.to_string_lossy()), LIBRARIES);
        let script = format!(
            "#!/bin/sh\n\
             # Runs QEMU with the libraries of its own packages. Written by cargo xtask setup.\n\
             export QEMU_MODULE_DIR={dir}/{libraries}/qemu\n\
             exec {dir}/lib64/ld-linux-x86-64.so.2 --library-path {dir}/{libraries}:{dir}/lib/x86_64-linux-gnu \\\n    \
             {dir}/usr/bin/qemu-system-x86_64 -L {dir}/usr/share/qemu -L {dir}/usr/share/seabios \"$@\"\n"
        );
        write_script(&unpacked.join("qemu"), &script)
    }
}

/// Writes a script that may be run.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}

impl Install for VmTools {
    fn name(&self) -> String {
        format!("QEMU of Debian {SUITE}")
    }

    fn is_ready(&self) -> bool {
        fs::read_to_string(self.dir.join(MARKER)).is_ok_and(|marker| marker == PACKAGES.join(" "))
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, SUITE)?;
        let packages = suite.download_closure(&PACKAGES)?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        eprintln!("==> unpacking {} packages", packages.len());
        for package in &packages {
            apt::unpack(package, &partial)?;
        }
        self.write_launcher(&partial)?;
        fs::write(partial.join(MARKER), PACKAGES.join(" "))?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        // The launcher names the final place, so only there can it be tried.
        if let Err(error) = cmd::read(Command::new(self.dir.join("qemu")).arg("--version")) {
            cmd::remove_all(&self.dir.join(MARKER))?;
            bail!("the unpacked QEMU does not start: {error:#}");
        }
        suite.close()
    }
}
