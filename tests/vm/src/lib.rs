//! Debian's kernels in virtual machines. One boot serves many commands, which are programs of the host.
//!
//! ```no_run
//! use tracer_vm::{Command, Config, Kernel, Vm};
//!
//! let kernel = Kernel::find("6.12")?;
//! let mut vm = Vm::boot(&Config::new(kernel)?)?;
//! let output = vm.run(&Command::new("uname").arg("-r"))?;
//! assert_eq!(output.code, 0);
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! A machine's root is the host's root with a layer in memory on top. Programs, libraries and caches are where they are on the
//! host, and what a command writes is lost with the machine, except in folders that are shared on purpose ([`Config::shared`]).
//! Nothing else of a machine is in the host's file system: it communicates through a socket pair, and QEMU is killed with its
//! handle, or by the kernel when the process that started it dies.
//!
//! `cargo xtask setup --only vm` creates the files that [`Kernel::find`] searches for.

mod command;
mod config;
mod kernel;
mod machine;
pub mod protocol;
mod qemu;
mod terminal;

pub use command::{Command, Output, Stream};
pub use config::Config;
pub use kernel::{Kernel, Module};
pub use machine::Vm;
pub use terminal::RestoreTerminal;
