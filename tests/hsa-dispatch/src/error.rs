//! The errors of this program, and what the user can do about them.

use std::path::PathBuf;

use crate::hsa::types::Status;

/// The result type of this program.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HSA runtime is missing, or the library is not an HSA runtime.
    #[error(
        "cannot load the HSA runtime {}: {}\n\
         fix: install it (Debian and Ubuntu: apt install libhsa-runtime64-1; ROCm: package hsa-rocr), \
         or name the file with --library PATH",
        library.display(), reason(source)
    )]
    Library {
        /// The library that was to be loaded.
        library: PathBuf,
        /// The dynamic linker's message.
        source: libloading::Error,
    },
    /// HIP is missing, or the library is not HIP.
    #[error(
        "cannot load HIP as {}: {}\n\
         fix: install it (Debian: apt install libamdhip64-5, or the number of your release; ROCm: package hip-runtime-amd), \
         or name the file with --library PATH",
        library.display(), reason(source)
    )]
    HipLibrary {
        /// The library that was to be loaded.
        library: PathBuf,
        /// The dynamic linker's message.
        source: libloading::Error,
    },
    /// HIP refused a call.
    #[error("{call} failed: {text} ({status}){}", hint(call))]
    Hip {
        /// The name of the function.
        call: &'static str,
        /// The status that it returned.
        status: u32,
        /// HIP's description of the status.
        text: String,
    },
    /// The workload needs the other interface.
    #[error("workload {workload} is not one of this interface: add --api {api}")]
    OtherApi {
        /// The workload's name.
        workload: &'static str,
        /// The interface that has it.
        api: &'static str,
    },
    /// The runtime refused a call.
    #[error("{call} failed: {text} ({status:#x}){}", hint(call))]
    Hsa {
        /// The name of the function.
        call: &'static str,
        /// The status that it returned.
        status: Status,
        /// The runtime's description of the status.
        text: String,
    },
    /// There is no such GPU.
    #[error(
        "there is no GPU agent {wanted}: the runtime found {found} (numbers start at 0)\n\
         fix: see that /dev/kfd and /dev/dri/renderD* are there and accessible (groups render, video), \
         or choose another --agent"
    )]
    NoGpu {
        /// The number requested.
        wanted: usize,
        /// The number of GPUs.
        found: usize,
    },
    /// The agent has no memory pool of a kind that every GPU system has.
    #[error("the runtime offers no {0} memory pool")]
    NoPool(&'static str),
    /// There is no code object for the GPU.
    #[error(
        "no kernels for this GPU in {}: looked for {} and *-generic.co\n\
         fix: build them (tests/gpu-kernels/README.md) and name their folder with --kernels DIR \
         or HSA_DISPATCH_KERNELS",
        directory.display(), names.join(", ")
    )]
    NoKernels {
        /// The folder where it should be.
        directory: PathBuf,
        /// The file names that would fit.
        names: Vec<String>,
    },
    /// The runtime refuses a code object that has the GPU's name.
    #[error(
        "the runtime refuses the code object {}: {source}\n\
         fix: rebuild it as tests/gpu-kernels/README.md says (runtimes before ROCr 6.3 need version 5)", path.display()
    )]
    CodeObject {
        /// Its file.
        path: PathBuf,
        /// The runtime's error.
        source: Box<Error>,
    },
    /// A code object was built from other sources than this program expects.
    #[error(
        "kernel {kernel} takes {found} bytes of arguments, not {expected}: rebuild the kernels (tests/gpu-kernels)"
    )]
    KernelArguments {
        /// The kernel's name.
        kernel: &'static str,
        /// The bytes that this program passes.
        expected: usize,
        /// The bytes that the code object declares.
        found: usize,
    },
    /// Something did not happen in time.
    #[error("timed out after {seconds} s waiting for {what}; {state}")]
    Timeout {
        /// The event that was waited for.
        what: String,
        /// How long the program waited for it.
        seconds: u64,
        /// The indexes of the queues concerned.
        state: String,
    },
    /// The GPU stopped a queue.
    #[error("the GPU stopped {queue}: {text} ({status:#x})")]
    QueueFault {
        /// The queue and its indexes.
        queue: String,
        /// The status that the runtime's callback received.
        status: Status,
        /// The runtime's description of the status.
        text: String,
    },
    /// The queue was destroyed.
    #[error("{0} was destroyed: nothing can be submitted to it")]
    QueueDestroyed(String),
    /// Memory does not hold the expected result of the work.
    #[error(
        "wrong result: {what}[{index}] is {found}, expected {expected} ({wrong} of {total} elements differ): \
         the kernels or copies did not run, ran more than once, or ran on other data"
    )]
    Mismatch {
        /// The name of the buffer.
        what: String,
        /// The first element that differs.
        index: usize,
        /// Its value.
        found: String,
        /// The right value.
        expected: String,
        /// The number of elements that differ.
        wrong: usize,
        /// The number of elements.
        total: usize,
    },
    /// A workload's own expectation was not met, or the request was impossible.
    #[error("{0}")]
    Unexpected(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the error as the reason why the code object `path` cannot be used.
    #[must_use]
    pub fn with_code_object(self, path: PathBuf) -> Self {
        Self::CodeObject {
            path,
            source: Box::new(self),
        }
    }

    /// Returns the exit code: 3 if the machine lacks what the program needs (so that tests can skip), 2 for wrong usage, else 1.
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

/// Returns an error of the dynamic linker with the linker's own message, which its `Display` omits.
fn reason(error: &libloading::Error) -> String {
    let words = std::error::Error::source(error);
    words.map_or_else(|| error.to_string(), |words| words.to_string())
}

/// Returns advice about a refused call, if there is any.
fn hint(call: &str) -> &'static str {
    match call {
        "hsa_init" | "hipInit" | "hipGetDeviceCount" => {
            "\nfix: see that /dev/kfd and /dev/dri/renderD* are there and accessible (groups render, video); \
             without a GPU, run under the simulator (tests/kfd-sim)"
        }
        _ => "",
    }
}
