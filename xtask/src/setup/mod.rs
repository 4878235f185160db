//! Installs what the build and the tests need beyond cargo, into the cache folder.
//!
//! Each part first checks whether it is installed. On a machine that is set up, nothing else happens. Otherwise the part works
//! under the cache's lock in a folder with its own name, and renames that folder at the end: an interrupted run never leaves a
//! folder that counts as complete.

mod bpf_linker;
mod browser;
mod containers;
mod engines;
pub mod folder;
mod monitors;
mod peers;
mod rootfs;
mod rust_src;
mod tool;
mod valgrind;
mod vm;
mod zig;

use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;

pub use bpf_linker::BpfLinker;
pub use rootfs::Rootfs;
pub use tool::Tool;
pub use vm::{Series, VmKernel};
pub use zig::Zig;

use crate::cmd;
use crate::lock;
use crate::project::Project;
use browser::Browser;
use containers::Containers;
use engines::Engines;
use monitors::Monitors;
use peers::Peers;
use rust_src::RustSrc;
use valgrind::Valgrind;
use vm::VmTools;

/// What `setup` can install.
#[derive(Clone, Copy, ValueEnum)]
pub enum Part {
    /// The standard library's source, to build it for eBPF and for GPUs.
    RustSrc,
    /// The linker of eBPF programs.
    BpfLinker,
    /// The folder with AMD's unmodified runtime that the demonstration uses, as Debian's stable release ships it.
    Stable,
    /// Folders with AMD's unmodified runtimes, HSA and HIP, as each release of Debian ships them.
    Rootfs,
    /// Prometheus and VictoriaMetrics, as Debian's stable release ships them, for the tests of what `tracer serve` exposes and
    /// pushes.
    Monitors,
    /// Chromium without windows, as Debian's stable release ships it, for the test of the page of `tracer serve`.
    Browser,
    /// crun, which runs and removes containers, for the attacks on the tracer.
    Containers,
    /// Podman and Docker, as Debian's stable release ships them, for `dist --containers`.
    Engines,
    /// Callgrind, as Debian's stable release ships it, for the test that counts instructions.
    Valgrind,
    /// bpftrace and perf, as Debian's stable release ships them, for `bench`.
    Peers,
    /// Zig's C compiler and the programs that make packages, for `dist`.
    Packagers,
    /// mdBook, which makes the book of docs/, for `book`.
    MdBook,
    /// QEMU and Debian's kernels, for tests on drivers that this machine's kernel lacks.
    Vm,
}

impl Part {
    /// The parts that the demonstration needs.
    pub const DEMO: [Self; 3] = [Self::RustSrc, Self::BpfLinker, Self::Stable];
    /// The parts that `bench` needs.
    pub const BENCH: [Self; 4] = [Self::RustSrc, Self::BpfLinker, Self::Rootfs, Self::Peers];
    /// The parts that `dist` needs.
    pub const DIST: [Self; 3] = [Self::RustSrc, Self::BpfLinker, Self::Packagers];
    /// The parts that the tests without virtual machines need.
    pub const ALL: [Self; 7] = [
        Self::RustSrc,
        Self::BpfLinker,
        Self::Rootfs,
        Self::Monitors,
        Self::Browser,
        Self::Containers,
        Self::Valgrind,
    ];
    /// The parts that a build needs.
    pub const BUILD: [Self; 2] = [Self::RustSrc, Self::BpfLinker];

    fn installs(self, project: &Project) -> Result<Vec<Box<dyn Install>>> {
        Ok(match self {
            Self::RustSrc => vec![Box::new(RustSrc::new(project))],
            Self::BpfLinker => vec![Box::new(BpfLinker::choose(project)?)],
            Self::Stable => vec![Box::new(Rootfs::stable(project))],
            Self::Rootfs => Rootfs::all(project)
                .map(|rootfs| Box::new(rootfs) as Box<dyn Install>)
                .collect(),
            Self::Monitors => vec![Box::new(Monitors::new(project))],
            Self::Browser => vec![Box::new(Browser::new(project))],
            Self::Containers => vec![Box::new(Containers::new(project))],
            Self::Engines => vec![Box::new(Engines::new(project))],
            Self::Valgrind => vec![Box::new(Valgrind::new(project))],
            Self::Peers => vec![Box::new(Peers::new(project))],
            Self::Packagers => vec![
                Box::new(Zig::new(project)),
                Box::new(cargo_deb(project)),
                Box::new(cargo_generate_rpm(project)),
                Box::new(cargo_deny(project)),
                Box::new(cargo_cyclonedx(project)),
            ],
            Self::MdBook => vec![Box::new(mdbook(project))],
            Self::Vm => {
                // Programs of newer headers run with the C library of such a folder.
                let mut installs: Vec<Box<dyn Install>> = vec![Box::new(Rootfs::newest(project))];
                installs.push(Box::new(VmTools::new(project)));
                installs.extend(VmKernel::all(project).map(|kernel| Box::new(kernel) as Box<dyn Install>));
                installs
            }
        })
    }
}

/// Returns what makes a .deb.
pub fn cargo_deb(project: &Project) -> Tool {
    Tool::of(project, "cargo-deb", "3.8.0")
}

/// Returns what makes an .rpm.
pub fn cargo_generate_rpm(project: &Project) -> Tool {
    Tool::of(project, "cargo-generate-rpm", "0.21.1")
}

/// Returns what checks the licences of crates, and known attacks on them.
pub fn cargo_deny(project: &Project) -> Tool {
    Tool::of(project, "cargo-deny", "0.20.2")
}

/// Returns what lists the crates of a program.
pub fn cargo_cyclonedx(project: &Project) -> Tool {
    Tool::of(project, "cargo-cyclonedx", "0.5.9")
}

/// Returns what makes the book.
pub fn mdbook(project: &Project) -> Tool {
    Tool::of(project, "mdbook", "0.5.4")
}

/// One thing to install.
trait Install {
    /// Returns the name of the thing, for messages.
    fn name(&self) -> String;
    /// Returns whether it is installed; must be quick.
    fn is_ready(&self) -> bool;
    /// Installs it. The caller holds the cache's lock.
    fn install(&self, project: &Project) -> Result<()>;
}

/// Installs the parts that are missing. What cannot be installed for this machine or its compiler is refused before anything is.
pub fn run(project: &Project, parts: &[Part]) -> Result<()> {
    let parts: Vec<_> = parts.iter().map(|part| part.installs(project)).collect::<Result<_>>()?;
    for wanted in parts.into_iter().flatten().filter(|wanted| !wanted.is_ready()) {
        install(project, wanted.as_ref())?;
    }
    Ok(())
}

fn install(project: &Project, wanted: &dyn Install) -> Result<()> {
    let _lock = lock::acquire(project.cache())?;
    // The previous holder of the lock may have installed the same thing.
    if wanted.is_ready() {
        return Ok(());
    }
    let started = Instant::now();
    eprintln!("==> installing {}", wanted.name());
    wanted.install(project)?;
    eprintln!(
        "==> installed {} in {:.1} s",
        wanted.name(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Removes what [`run`] installed, from the cache and from the compiler's folder, and what `clients` downloaded.
pub fn clean(project: &Project) -> Result<()> {
    let _lock = lock::acquire(project.cache())?;
    RustSrc::new(project).unlink(project)?;
    for folder in [
        "apt",
        "browser",
        "clients",
        "containers",
        "engines",
        "monitors",
        "peers",
        "rootfs",
        "rust-src",
        "tools",
        "vm",
    ] {
        cmd::remove_all(&project.cache().join(folder))?;
    }
    eprintln!(
        "==> removed everything that setup installed in {}",
        project.cache().display()
    );
    Ok(())
}
