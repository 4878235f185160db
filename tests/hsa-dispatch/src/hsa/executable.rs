//! Code objects, loaded for an agent, and the kernels in them.

use std::ffi::{CString, c_void};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::types::{
    AgentHandle, ExecutableHandle, PROFILE_FULL, ROUNDING_DEFAULT, ReaderHandle, SymbolHandle, symbol_info,
};
use super::{Agent, Runtime};
use crate::error::{Error, Result};

/// The properties of a kernel that a dispatch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Device address of the kernel descriptor, the symbol `NAME.kd`.
    pub object: u64,
    /// Bytes of its arguments.
    pub kernarg_bytes: u32,
    /// Bytes of group memory (LDS).
    pub group_bytes: u32,
    /// Bytes of scratch per work-item.
    pub private_bytes: u32,
}

/// How a code object is passed to the runtime. This decides the URI under which tools find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LoadFrom {
    /// From the open file: `file://...`.
    #[default]
    File,
    /// From a copy in memory: `memory://...`, as HIP does with embedded kernels.
    Memory,
}

/// A code object, loaded and frozen.
pub struct Executable {
    runtime: Arc<Runtime>,
    agent: AgentHandle,
    handle: ExecutableHandle,
    reader: ReaderHandle,
    /// The source that the reader reads.
    _source: Source,
}

/// The source of a code object, which must outlive its reader.
enum Source {
    File(#[expect(dead_code, reason = "kept open for the reader")] File),
    Memory(#[expect(dead_code, reason = "kept for the reader")] Vec<u8>),
}

impl Executable {
    /// Loads the code object in file `path` for `agent`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if the runtime refuses it.
    pub fn load(runtime: &Arc<Runtime>, agent: &Agent, path: &Path, from: LoadFrom) -> Result<Self> {
        let failed = |source| Error::File {
            path: path.to_owned(),
            source,
        };
        match from {
            LoadFrom::File => {
                let file = File::open(path).map_err(failed)?;
                let mut reader = ReaderHandle::default();
                // SAFETY: the file is open, and `reader` is writable.
                let status =
                    unsafe { (runtime.api.hsa_code_object_reader_create_from_file)(file.as_raw_fd(), &raw mut reader) };
                runtime.check("hsa_code_object_reader_create_from_file", status)?;
                Self::load_from(runtime, agent, reader, Source::File(file))
            }
            LoadFrom::Memory => Self::load_bytes(runtime, agent, std::fs::read(path).map_err(failed)?),
        }
    }

    /// Loads the code object `bytes` for `agent`.
    ///
    /// # Errors
    /// Fails if the runtime refuses it.
    pub fn load_bytes(runtime: &Arc<Runtime>, agent: &Agent, bytes: Vec<u8>) -> Result<Self> {
        let mut reader = ReaderHandle::default();
        // SAFETY: the bytes live as long as the reader; `reader` is writable.
        let status = unsafe {
            (runtime.api.hsa_code_object_reader_create_from_memory)(bytes.as_ptr().cast(), bytes.len(), &raw mut reader)
        };
        runtime.check("hsa_code_object_reader_create_from_memory", status)?;
        Self::load_from(runtime, agent, reader, Source::Memory(bytes))
    }

    fn load_from(runtime: &Arc<Runtime>, agent: &Agent, reader: ReaderHandle, source: Source) -> Result<Self> {
        let mut handle = ExecutableHandle::default();
        // SAFETY: no options are passed; `handle` is writable.
        let status = unsafe {
            (runtime.api.hsa_executable_create_alt)(PROFILE_FULL, ROUNDING_DEFAULT, ptr::null(), &raw mut handle)
        };
        // From here on, dropping it releases reader and executable.
        let executable = Self {
            runtime: Arc::clone(runtime),
            agent: agent.handle,
            handle,
            reader,
            _source: source,
        };
        runtime.check("hsa_executable_create_alt", status)?;
        // SAFETY: executable and reader are alive; neither options nor the loaded object are requested.
        let status = unsafe {
            (runtime.api.hsa_executable_load_agent_code_object)(
                handle,
                agent.handle,
                reader,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        runtime.check("hsa_executable_load_agent_code_object", status)?;
        // SAFETY: the executable is alive; no options are passed.
        let status = unsafe { (runtime.api.hsa_executable_freeze)(handle, ptr::null()) };
        runtime.check("hsa_executable_freeze", status)?;
        Ok(executable)
    }

    /// Finds kernel `name` by its descriptor `NAME.kd`.
    ///
    /// # Errors
    /// Fails if there is no such kernel.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let symbol_name = CString::new(format!("{name}.kd"))
            .map_err(|_| Error::Unexpected(format!("{name:?} is no name for a kernel")))?;
        let mut symbol = SymbolHandle::default();
        // SAFETY: the executable is frozen, the name is a C string, and `symbol` is writable.
        let status = unsafe {
            (self.runtime.api.hsa_executable_get_symbol_by_name)(
                self.handle,
                symbol_name.as_ptr(),
                &raw const self.agent,
                &raw mut symbol,
            )
        };
        self.runtime.check("hsa_executable_get_symbol_by_name", status)?;
        Ok(Kernel {
            object: self.symbol_info(symbol, symbol_info::KERNEL_OBJECT)?,
            kernarg_bytes: self.symbol_info(symbol, symbol_info::KERNARG_SEGMENT_SIZE)?,
            group_bytes: self.symbol_info(symbol, symbol_info::GROUP_SEGMENT_SIZE)?,
            private_bytes: self.symbol_info(symbol, symbol_info::PRIVATE_SEGMENT_SIZE)?,
        })
    }

    /// Returns the value of a symbol's attribute, whose type is `T`.
    fn symbol_info<T: Copy>(&self, symbol: SymbolHandle, attribute: u32) -> Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: `value` has the attribute's type.
        let status = unsafe {
            (self.runtime.api.hsa_executable_symbol_get_info)(symbol, attribute, value.as_mut_ptr().cast::<c_void>())
        };
        self.runtime.check("hsa_executable_symbol_get_info", status)?;
        // SAFETY: the runtime has initialised the value.
        Ok(unsafe { value.assume_init() })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: both were created by the runtime and are released once, the executable first.
        unsafe {
            if self.handle.handle != 0 {
                (self.runtime.api.hsa_executable_destroy)(self.handle);
            }
            (self.runtime.api.hsa_code_object_reader_destroy)(self.reader);
        }
    }
}
