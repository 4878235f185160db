//! The requirements of the virtual machines of `cargo xtask vm`: QEMU, and Debian's kernels with their modules and headers.
//!
//! The cache gets a folder `vm` with one folder for the tools and one for each kernel. The contents of a kernel's folder are the
//! interface to `tests/vm`, which boots it:
//!
//! | file | what |
//! |---|---|
//! | `release` | the kernel's release, one line |
//! | `vmlinux` | the uncompressed kernel, which QEMU boots without a boot loader |
//! | `initrd.cpio` | what mounts the host's root file system |
//! | `modules/NAME.ko` | decompressed modules |
//! | `modules/NAME.list` | file names in the order in which they must be loaded, for `gpu-sched` and for `amdgpu` |
//! | `headers/` | Debian's headers, to build a module with |

mod cpio;
mod headers;
mod kernel;
mod modules;
mod tools;
mod vmlinux;

pub use kernel::{Series, VmKernel};
pub use tools::VmTools;

/// The marker. It is written last into each folder, and names the recipe that created the folder.
const MARKER: &str = ".complete";
