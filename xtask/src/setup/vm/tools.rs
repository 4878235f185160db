//! QEMU, busybox and trace-cmd: a folder of Debian's packages, so that the system needs no change.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::apt::Suite;
use crate::cmd;
use crate::project::Project;
use crate::setup::folder::{Folder, LIBRARIES, Programs, write_script};

/// The suite whose QEMU is used: 7.2 emulates some 25 % faster than trixie's 10.0 (measured once, both by TCG).
const SUITE: &str = "bookworm";
/// The emulator without a display, the program that starts the user space of a virtual machine, and the one whose files tests import.
const PACKAGES: [&str; 3] = ["qemu-system-x86", "busybox-static", "trace-cmd"];
/// The script that runs the emulator.
const LAUNCHER: &str = "qemu";
/// The script that runs trace-cmd. Its `--version` is an error, so the setup does not try it.
const TRACE_CMD: &str = "trace-cmd";

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

    /// Returns the path of busybox, linked statically.
    pub fn busybox(&self) -> PathBuf {
        let folders = ["usr/bin", "bin"].map(|folder| self.dir.join(folder).join("busybox"));
        folders
            .iter()
            .find(|file| file.is_file())
            .unwrap_or(&folders[0])
            .clone()
    }
}

impl Programs for VmTools {
    const NAME: &str = "QEMU";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            launchers: &[LAUNCHER],
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_closure(&PACKAGES)
    }

    /// Writes scripts that run the programs by the folder's own loader, from the folder's final place.
    ///
    /// The packages' libraries may be from another release than this machine's.
    fn prepare(&self, unpacked: &Path) -> Result<()> {
        let (dir, libraries) = (cmd::shell_quote(&self.dir.to_string_lossy()), LIBRARIES);
        let script = |name: &str, environment: &str, program: &str| {
            format!(
                "#!/bin/sh\n\
                 # Runs {name} with the libraries of its own packages. Written by cargo xtask setup.\n\
                 {environment}\
                 exec {dir}/lib64/ld-linux-x86-64.so.2 --library-path {dir}/{libraries}:{dir}/lib/x86_64-linux-gnu \\\n    \
                 {dir}/usr/bin/{program} \"$@\"\n"
            )
        };
        let environment = format!("export QEMU_MODULE_DIR={dir}/{libraries}/qemu\n");
        let program = format!("qemu-system-x86_64 -L {dir}/usr/share/qemu -L {dir}/usr/share/seabios");
        write_script(&unpacked.join(LAUNCHER), &script("QEMU", &environment, &program))?;
        write_script(&unpacked.join(TRACE_CMD), &script("trace-cmd", "", "trace-cmd"))
    }
}
