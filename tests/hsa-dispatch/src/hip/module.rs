//! The kernels as a module, and launches of its functions.

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use super::calls::About;
use super::runtime::Runtime;
use super::stream::{Event, Stream};
use super::types::Object;
use crate::arguments::{Arguments, Fill, Reduce, Saxpy, Spin, VectorAdd};
use crate::error::{Error, Result};
use crate::kernels::{generic, listed};
use crate::packet::Grid;

/// The kernels that are looked up.
pub const KERNELS: [&str; 5] = [
    VectorAdd::KERNEL,
    Fill::KERNEL,
    Saxpy::KERNEL,
    Spin::KERNEL,
    Reduce::KERNEL,
];

/// A loaded code object.
pub struct Module {
    runtime: Arc<Runtime>,
    handle: Object,
    functions: Vec<(&'static str, Object)>,
    path: PathBuf,
    /// The code object that HIP loaded. HIP may read it again for another GPU.
    image: Vec<u8>,
}

// SAFETY: HIP's functions on modules may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the code object for the GPU from `directory`.
    ///
    /// # Errors
    /// Fails if there is none, or if HIP refuses it.
    pub fn load(runtime: &Arc<Runtime>, directory: &Path) -> Result<Self> {
        let exact = listed(std::slice::from_ref(&runtime.gfx), directory);
        let path = exact.into_iter().chain(generic(directory)).next();
        let path = path.ok_or_else(|| Error::NoKernels {
            directory: directory.to_owned(),
            names: vec![format!("{}.co", runtime.gfx)],
        })?;
        let image = std::fs::read(&path).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        let loaded = runtime.create("hipModuleLoadData", About::default(), |api, module| {
            // SAFETY: the image is a whole code object, which is kept; `module` is writable.
            unsafe { (api.hipModuleLoadData)(module, image.as_ptr().cast()) }
        });
        let mut module = Self {
            runtime: Arc::clone(runtime),
            handle: loaded.map_err(|error| error.with_code_object(path.clone()))?,
            functions: Vec::new(),
            path,
            image,
        };
        for name in KERNELS {
            let function = module.find(name)?;
            module.functions.push((name, function));
        }
        Ok(module)
    }

    /// Returns the file that the module was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the code object.
    #[must_use]
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Launches a kernel by `hipModuleLaunchKernel`.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn launch<A: Arguments>(&self, stream: &Stream, grid: Grid, arguments: &A) -> Result<()> {
        let (function, mut arguments) = (self.function::<A>()?, arguments.addresses());
        let (blocks, block) = blocks(grid);
        let about = About::launch(A::KERNEL, blocks, block).on(stream.handle());
        self.runtime.call("hipModuleLaunchKernel", about, |api| {
            let (stream, arguments) = (stream.handle(), arguments.as_mut_ptr());
            // SAFETY: function and stream are alive; there is an address for each argument, which HIP copies. The memory that the
            // arguments refer to outlives the wait for the stream.
            unsafe {
                (api.hipModuleLaunchKernel)(
                    function,
                    blocks,
                    1,
                    1,
                    block,
                    1,
                    1,
                    0,
                    stream,
                    arguments,
                    ptr::null_mut::<*mut c_void>(),
                )
            }
        })
    }

    /// Launches a kernel by `hipExtModuleLaunchKernel`, with events for its start and end.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn launch_timed<A: Arguments>(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &A,
        (start, stop): (&Event, &Event),
    ) -> Result<()> {
        let (function, mut arguments) = (self.function::<A>()?, arguments.addresses());
        let (blocks, block) = blocks(grid);
        let about = About::launch(A::KERNEL, blocks, block).on(stream.handle());
        self.runtime.call("hipExtModuleLaunchKernel", about, |api| {
            let (stream, arguments) = (stream.handle(), arguments.as_mut_ptr());
            // SAFETY: as in `launch`; this function counts work-items, not blocks.
            unsafe {
                (api.hipExtModuleLaunchKernel)(
                    function,
                    blocks * block,
                    1,
                    1,
                    block,
                    1,
                    1,
                    0,
                    stream,
                    arguments,
                    ptr::null_mut::<*mut c_void>(),
                    start.handle(),
                    stop.handle(),
                    0,
                )
            }
        })
    }

    fn find(&self, name: &'static str) -> Result<Object> {
        let symbol = CString::new(name).map_err(|_| Error::Unexpected(format!("{name:?} is no name for a kernel")))?;
        self.runtime
            .create("hipModuleGetFunction", About::object(self.handle), |api, function| {
                // SAFETY: the module is alive, the name is a C string, `function` is writable.
                unsafe { (api.hipModuleGetFunction)(function, self.handle, symbol.as_ptr()) }
            })
    }

    fn function<A: Arguments>(&self) -> Result<Object> {
        let found = self.functions.iter().find(|(name, _)| *name == A::KERNEL);
        let missing = || Error::Unexpected(format!("the module has no {}", A::KERNEL));
        found.map(|&(_, function)| function).ok_or_else(missing)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded by HIP and unloaded once. If this fails, there is nothing left to do, and the failure is in the log.
        let _ = self
            .runtime
            .call("hipModuleUnload", About::object(self.handle), |api| unsafe {
                (api.hipModuleUnload)(self.handle)
            });
    }
}

/// Returns the workgroups of a launch, and the work-items of each.
pub fn blocks(grid: Grid) -> (u32, u32) {
    let block = u32::from(grid.workgroup);
    (grid.items.div_ceil(block), block)
}
