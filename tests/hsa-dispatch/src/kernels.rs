//! The kernels of tests/gpu-kernels: the location of their code objects, and the layout of their arguments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::arguments::{ARGUMENT_STRIDE, Arguments};
pub use crate::arguments::{Fill, Reduce, Saxpy, Spin, VectorAdd};
use crate::error::{Error, Result};
use crate::hsa::executable::{Executable, Kernel, LoadFrom};
use crate::hsa::{Agent, Buffer, Pools, Runtime};

/// The environment variable that names the folder of code objects.
pub const DIRECTORY_VARIABLE: &str = "HSA_DISPATCH_KERNELS";

/// The kernels, loaded for one agent.
pub struct Kernels {
    /// The file that they were loaded from.
    pub path: PathBuf,
    /// [`VectorAdd`].
    pub vector_add: Kernel,
    /// [`Fill`].
    pub fill: Kernel,
    /// [`Saxpy`].
    pub saxpy: Kernel,
    /// [`Spin`].
    pub spin: Kernel,
    /// [`Reduce`].
    pub reduce: Kernel,
    /// The executable, which keeps the kernels loaded.
    executable: Executable,
}

impl Kernels {
    /// Loads the best code object for `agent` in `directory`.
    ///
    /// # Errors
    /// Fails if there is none, or if the runtime refuses all candidates.
    pub fn load(runtime: &Arc<Runtime>, agent: &Agent, directory: &Path, from: LoadFrom) -> Result<Self> {
        let mut refused = None;
        for path in listed(&agent.isas, directory) {
            match Executable::load(runtime, agent, &path, from) {
                Ok(executable) => return Self::find(executable, path),
                Err(error) => refused = refused.or(Some(error.with_code_object(path))),
            }
        }
        // Not every runtime that runs generic code lists it among the GPU's instruction sets, but it refuses code that does not
        // fit.
        for path in generic(directory) {
            if let Ok(executable) = Executable::load(runtime, agent, &path, from) {
                return Self::find(executable, path);
            }
        }
        let names = agent.isas.iter().map(|isa| format!("{isa}.co")).collect();
        Err(refused.unwrap_or(Error::NoKernels {
            directory: directory.to_owned(),
            names,
        }))
    }

    fn find(executable: Executable, path: PathBuf) -> Result<Self> {
        Ok(Self {
            path,
            vector_add: find::<VectorAdd>(&executable)?,
            fill: find::<Fill>(&executable)?,
            saxpy: find::<Saxpy>(&executable)?,
            spin: find::<Spin>(&executable)?,
            reduce: find::<Reduce>(&executable)?,
            executable,
        })
    }

    /// Looks up a kernel by name.
    ///
    /// # Errors
    /// Fails if there is no such kernel.
    pub fn by_name(&self, name: &str) -> Result<Kernel> {
        self.executable.kernel(name)
    }

    /// Returns the name of the kernel whose descriptor is at `object`.
    #[must_use]
    pub fn name_of(&self, object: u64) -> Option<&'static str> {
        let kernels = [
            (self.vector_add, VectorAdd::KERNEL),
            (self.fill, Fill::KERNEL),
            (self.saxpy, Saxpy::KERNEL),
            (self.spin, Spin::KERNEL),
            (self.reduce, Reduce::KERNEL),
        ];
        kernels
            .iter()
            .find(|(kernel, _)| kernel.object == object)
            .map(|&(_, name)| name)
    }
}

fn find<A: Arguments>(executable: &Executable) -> Result<Kernel> {
    let kernel = executable.kernel(A::KERNEL)?;
    let found = kernel.kernarg_bytes as usize;
    // Releases differ in whether they round the declared size up.
    if found.next_multiple_of(8) != A::BYTES.next_multiple_of(8) {
        return Err(Error::KernelArguments {
            kernel: A::KERNEL,
            expected: A::BYTES,
            found,
        });
    }
    Ok(kernel)
}

/// The arguments of one or more launches, in memory from which the GPU reads them.
pub struct ArgumentBuffer(Buffer<u8>);

impl ArgumentBuffer {
    /// Stores the arguments of `launches` one after the other.
    ///
    /// # Errors
    /// Fails if the runtime refuses the memory.
    pub fn new<A: Arguments>(pools: &Pools, launches: &[A]) -> Result<Self> {
        let mut bytes = vec![0; launches.len() * ARGUMENT_STRIDE];
        for (slot, launch) in bytes.chunks_exact_mut(ARGUMENT_STRIDE).zip(launches) {
            launch.write(slot);
        }
        let mut buffer = pools.kernarg(bytes.len())?;
        buffer.write(&bytes);
        Ok(Self(buffer))
    }

    /// Returns the address of launch number `launch`.
    #[must_use]
    pub fn address(&self, launch: usize) -> u64 {
        debug_assert!((launch + 1) * ARGUMENT_STRIDE <= self.0.bytes());
        self.0.address() + (launch * ARGUMENT_STRIDE) as u64
    }
}

/// Returns the code objects in `directory` for a GPU that runs `isas`, best first.
pub(crate) fn listed(isas: &[String], directory: &Path) -> Vec<PathBuf> {
    isas.iter()
        .map(|isa| directory.join(format!("{isa}.co")))
        .filter(|path| path.exists())
        .collect()
}

/// Returns the code objects in `directory` for families of GPUs.
pub(crate) fn generic(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut generic: Vec<PathBuf> = files
        .filter(|path| path.to_string_lossy().ends_with("-generic.co"))
        .collect();
    generic.sort();
    generic
}

/// Returns the folder of code objects: `named`, else the environment's, else the one installed beside this program.
#[must_use]
pub fn directory(named: Option<&Path>) -> PathBuf {
    if let Some(directory) = named {
        return directory.to_owned();
    }
    if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) {
        return directory.into();
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(Path::to_owned));
    let beside = beside.unwrap_or_default();
    let candidates = ["gpu-kernels", "../gpu-kernels", "../lib/tracer/gpu-kernels"].map(|folder| beside.join(folder));
    let [first, ..] = &candidates;
    candidates
        .iter()
        .find(|directory| directory.is_dir())
        .unwrap_or(first)
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_written_where_they_lie() {
        let mut slot = [0; ARGUMENT_STRIDE];
        Saxpy {
            a: 1.0,
            x: 0x1122,
            y: 0x33,
            n: 0x44,
        }
        .write(&mut slot);
        assert_eq!(slot[..4], 1.0_f32.to_le_bytes());
        assert_eq!((slot[8], slot[9], slot[16], slot[24]), (0x22, 0x11, 0x33, 0x44));
        assert!(slot[Saxpy::BYTES..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn code_objects_are_found_by_name() {
        let directory = std::env::temp_dir().join(format!("hsa-dispatch-kernels-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        for name in [
            "gfx11-generic.co",
            "gfx90a.co",
            "gfx942.co",
            "gfx9-4-generic.co",
            "notes.txt",
        ] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        let exact = listed(&["gfx942".to_owned(), "gfx950".to_owned()], &directory);
        let family = generic(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(exact, [directory.join("gfx942.co")]);
        assert_eq!(
            family,
            [directory.join("gfx11-generic.co"), directory.join("gfx9-4-generic.co")]
        );
    }

    #[test]
    fn a_named_directory_wins() {
        assert_eq!(directory(Some(Path::new("/k"))), Path::new("/k"));
    }
}
