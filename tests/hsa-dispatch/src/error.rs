//! What can go wrong, and what the user can do about it.

use std::path::PathBuf;

use crate::hsa::types::Status;

/// Shorthand for results of this program.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every way in which a run can fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HSA runtime is not there, or is not one.
    #[error(
        "cannot load the HSA runtime {}: {}\n\
         fix: install it (Debian and Ubuntu: apt install libhsa-runtime64-1; ROCm: package hsa-rocr), \
         or name the file with --library PATH",
        library.display(), reason(source)
    )]
    Library {
        /// What was loaded.
        library: PathBuf,
        /// The dynamic linker's words.
        source: libloading::Error,
    },
    /// HIP is not there, or is not one.
    #[error(
        "cannot load HIP as {}: {}\n\
         fix: install it (Debian: apt install libamdhip64-5, or the number of your release; ROCm: package hip-runtime-amd), \
         or name the file with --library PATH",
        library.display(), reason(source)
    )]
    HipLibrary {
        /// What was loaded.
        library: PathBuf,
        /// The dynamic linker's words.
        source: libloading::Error,
    },
    /// A call of HIP was refused.
    #[error("{call} failed: {text} ({status}){}", hint(call))]
    Hip {
        /// Name of the function.
        call: &'static str,
        /// What it returned.
        status: u32,
        /// HIP's description of that.
        text: String,
    },
    /// The workload needs the other interface.
    #[error("workload {workload} is not one of this interface: add --api {api}")]
    OtherApi {
        /// Its name.
        workload: &'static str,
        /// The interface that has it.
        api: &'static str,
    },
    /// A call of the runtime was refused.
    #[error("{call} failed: {text} ({status:#x}){}", hint(call))]
    Hsa {
        /// Name of the function.
        call: &'static str,
        /// What it returned.
        status: Status,
        /// The runtime's description of that.
        text: String,
    },
    /// No such GPU.
    #[error(
        "there is no GPU agent {wanted}: the runtime found {found} (numbers start at 0)\n\
         fix: see that /dev/kfd and /dev/dri/renderD* are there and accessible (groups render, video), \
         or choose another --agent"
    )]
    NoGpu {
        /// Number asked for.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// The agent has no memory pool of a kind that every GPU system has.
    #[error("the runtime offers no {0} memory pool")]
    NoPool(&'static str),
    /// No code object for the GPU.
    #[error(
        "no kernels for this GPU in {}: looked for {} and *-generic.co\n\
         fix: build them (tests/gpu-kernels/README.md) and name their folder with --kernels DIR \
         or HSA_DISPATCH_KERNELS",
        directory.display(), names.join(", ")
    )]
    NoKernels {
        /// Where they should be.
        directory: PathBuf,
        /// File names that would do.
        names: Vec<String>,
    },
    /// The runtime does not take a code object that has the GPU's name.
    #[error(
        "the runtime refuses the code object {}: {source}\n\
         fix: rebuild it as tests/gpu-kernels/README.md says (runtimes before ROCr 6.3 need version 5)", path.display()
    )]
    CodeObject {
        /// Its file.
        path: PathBuf,
        /// What the runtime said.
        source: Box<Error>,
    },
    /// A code object was built from other sources than this program expects.
    #[error(
        "kernel {kernel} takes {found} bytes of arguments, not {expected}: rebuild the kernels (tests/gpu-kernels)"
    )]
    KernelArguments {
        /// Kernel's name.
        kernel: &'static str,
        /// Bytes that this program passes.
        expected: usize,
        /// Bytes that the code object declares.
        found: usize,
    },
    /// Something did not happen in time.
    #[error("timed out after {seconds} s waiting for {what}; {state}")]
    Timeout {
        /// What should have happened.
        what: String,
        /// How long it was waited for.
        seconds: u64,
        /// Indexes of the queues concerned.
        state: String,
    },
    /// The GPU stopped a queue.
    #[error("the GPU stopped {queue}: {text} ({status:#x})")]
    QueueFault {
        /// The queue and its indexes.
        queue: String,
        /// What the runtime's callback got.
        status: Status,
        /// The runtime's description of that.
        text: String,
    },
    /// The queue is gone.
    #[error("{0} was destroyed: nothing can be submitted to it")]
    QueueDestroyed(String),
    /// Memory does not hold what the work should have left there.
    #[error(
        "wrong result: {what}[{index}] is {found}, expected {expected} ({wrong} of {total} elements differ): \
         the kernels or copies did not run, ran more than once, or ran on other data"
    )]
    Mismatch {
        /// Name of the buffer.
        what: String,
        /// First element that differs.
        index: usize,
        /// Its value.
        found: String,
        /// The right value.
        expected: String,
        /// How many differ.
        wrong: usize,
        /// How many there are.
        total: usize,
    },
    /// A workload's own expectation was not met, or it was asked for something impossible.
    #[error("{0}")]
    Unexpected(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
}

impl Error {
    /// The error as the reason why the code object `path` cannot be used.
    #[must_use]
    pub fn with_code_object(self, path: PathBuf) -> Self {
        Self::CodeObject {
            path,
            source: Box::new(self),
        }
    }

    /// Exit code: 3 if the machine lacks what the program needs (so that tests can skip), 2 for wrong usage, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OtherApi { .. } => 2,
            Self::Library { .. }
            | Self::HipLibrary { .. }
            | Self::NoGpu { .. }
            | Self::NoPool(_)
            | Self::NoKernels { .. }
            | Self::CodeObject { .. } => 3,
            Self::Hsa { call: "hsa_init", .. }
            | Self::Hip {
                call: "hipInit" | "hipGetDeviceCount",
                ..
            } => 3,
            _ => 1,
        }
    }
}

/// An error of the dynamic linker with the linker's own words, which its `Display` leaves out.
fn reason(error: &libloading::Error) -> String {
    let words = std::error::Error::source(error);
    words.map_or_else(|| error.to_string(), |words| words.to_string())
}

/// What to do about a refused call, where that is known.
fn hint(call: &str) -> &'static str {
    match call {
        "hsa_init" | "hipInit" | "hipGetDeviceCount" => {
            "\nfix: see that /dev/kfd and /dev/dri/renderD* are there and accessible (groups render, video); \
             without a GPU, run under the simulator (tests/kfd-sim)"
        }
        _ => "",
    }
}
