//! The kernels as the compiler registers them: launches by the address of a host function, with `hipLaunchKernel` and similar
//! functions.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use super::calls::About;
use super::module::{KERNELS, Module, blocks};
use super::runtime::Runtime;
use super::stream::{Event, Stream};
use super::types::{Dim3, FAT_BINARY_MAGIC, FatBinary, Object};
use crate::arguments::Arguments;
use crate::error::{Error, Result};
use crate::packet::Grid;

/// Placeholders for the host functions, of which only the addresses matter.
static STUBS: [u8; KERNELS.len()] = [0; KERNELS.len()];

/// The start of an offload bundle (clang-offload-bundler).
const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// The offset of the code object in the bundle. Code objects are aligned to pages.
const CODE_OFFSET: usize = 4096;

/// A registered fat binary.
pub struct Registered {
    runtime: Arc<Runtime>,
    handle: *mut Object,
    _names: Vec<CString>,
    _wrapper: Box<FatBinary>,
    _bundle: Vec<u8>,
}

impl Registered {
    /// Registers the module's code object, as the start-up code of a program compiled by clang does.
    ///
    /// # Errors
    /// Fails if HIP returns no handle.
    pub fn new(runtime: &Arc<Runtime>, module: &Module) -> Result<Self> {
        let bundle = bundle(&runtime.gfx, module.image());
        let wrapper = Box::new(FatBinary {
            magic: FAT_BINARY_MAGIC,
            version: 1,
            binary: bundle.as_ptr(),
            unused: ptr::null(),
        });
        // SAFETY: wrapper and bundle live as long as the registration.
        let handle = unsafe { (runtime.api.__hipRegisterFatBinary)((&raw const *wrapper).cast()) };
        if handle.is_null() {
            return Err(Error::Unexpected("HIP registers no fat binary".to_owned()));
        }
        let mut names = Vec::new();
        for (name, stub) in KERNELS.iter().zip(&STUBS) {
            let name =
                CString::new(*name).map_err(|_| Error::Unexpected(format!("{name:?} is no name for a kernel")))?;
            let none = ptr::null_mut();
            // SAFETY: the names live as long as the registration; no sizes are known at compile time.
            unsafe {
                (runtime.api.__hipRegisterFunction)(
                    handle,
                    (&raw const *stub).cast(),
                    name.as_ptr(),
                    name.as_ptr(),
                    u32::MAX,
                    none,
                    none,
                    none,
                    none,
                    ptr::null_mut(),
                );
            }
            names.push(name);
        }
        Ok(Self {
            runtime: Arc::clone(runtime),
            handle,
            _names: names,
            _wrapper: wrapper,
            _bundle: bundle,
        })
    }

    /// Launches a kernel by `hipLaunchKernel`, to which `kernel<<<...>>>` compiles.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn launch<A: Arguments>(&self, stream: &Stream, grid: Grid, arguments: &A) -> Result<()> {
        let (stub, mut arguments) = (stub::<A>()?, arguments.addresses());
        let (blocks, block) = blocks(grid);
        let about = About::launch(A::KERNEL, blocks, block).on(stream.handle());
        self.runtime.call("hipLaunchKernel", about, |api| {
            let (blocks, block, arguments) = (Dim3::line(blocks), Dim3::line(block), arguments.as_mut_ptr());
            // SAFETY: as in `Module::launch`.
            unsafe { (api.hipLaunchKernel)(stub.cast(), blocks, block, arguments, 0, stream.handle()) }
        })
    }

    /// Launches a kernel by `hipExtLaunchKernel`, with events for its start and end.
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
        let (stub, mut arguments) = (stub::<A>()?, arguments.addresses());
        let (blocks, block) = blocks(grid);
        let about = About::launch(A::KERNEL, blocks, block).on(stream.handle());
        self.runtime.call("hipExtLaunchKernel", about, |api| {
            let (blocks, block, arguments) = (Dim3::line(blocks), Dim3::line(block), arguments.as_mut_ptr());
            let (start, stop) = (start.handle(), stop.handle());
            // SAFETY: as in `Module::launch`; the events live until they are waited for.
            unsafe {
                (api.hipExtLaunchKernel)(
                    stub.cast(),
                    blocks,
                    block,
                    arguments,
                    0,
                    stream.handle(),
                    start,
                    stop,
                    0,
                )
            }
        })
    }

    /// Launches a kernel by `hipLaunchCooperativeKernel`, on the queue of cooperative launches.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn launch_cooperative<A: Arguments>(&self, stream: &Stream, grid: Grid, arguments: &A) -> Result<()> {
        let (stub, mut arguments) = (stub::<A>()?, arguments.addresses());
        let (blocks, block) = blocks(grid);
        let about = About::launch(A::KERNEL, blocks, block).on(stream.handle());
        self.runtime.call("hipLaunchCooperativeKernel", about, |api| {
            let (blocks, block, arguments) = (Dim3::line(blocks), Dim3::line(block), arguments.as_mut_ptr());
            // SAFETY: as in `Module::launch`.
            unsafe { (api.hipLaunchCooperativeKernel)(stub.cast(), blocks, block, arguments, 0, stream.handle()) }
        })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: registered once and unregistered once.
        unsafe { (self.runtime.api.__hipUnregisterFatBinary)(self.handle) };
    }
}

/// Returns the placeholder for the host function of the kernel that takes `A`.
fn stub<A: Arguments>() -> Result<*const u8> {
    let at = KERNELS.iter().position(|name| *name == A::KERNEL);
    let stub = at.and_then(|at| STUBS.get(at));
    stub.map(|stub| &raw const *stub)
        .ok_or_else(|| Error::Unexpected(format!("{} is not registered", A::KERNEL)))
}

/// Returns an offload bundle with an empty host part and one code object, for any setting of the GPU's features.
fn bundle(gfx: &str, code: &[u8]) -> Vec<u8> {
    let device = format!("hipv4-amdgcn-amd-amdhsa--{gfx}");
    let parts = [
        ("host-x86_64-unknown-linux-gnu-", CODE_OFFSET, 0),
        (device.as_str(), CODE_OFFSET, code.len()),
    ];
    let mut bundle = BUNDLE_MAGIC.to_vec();
    bundle.extend((parts.len() as u64).to_le_bytes());
    for (target, offset, bytes) in parts {
        for number in [offset, bytes, target.len()] {
            bundle.extend((number as u64).to_le_bytes());
        }
        bundle.extend(target.as_bytes());
    }
    bundle.resize(CODE_OFFSET, 0);
    bundle.extend(code);
    bundle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_lies_as_clang_makes_it() {
        let bundle = bundle("gfx942", b"code");
        let number = |at: usize| u64::from_le_bytes(bundle[at..at + 8].try_into().unwrap());
        assert_eq!(&bundle[..24], BUNDLE_MAGIC);
        assert_eq!(number(24), 2);
        let host = number(48) as usize;
        let second = 56 + host;
        assert_eq!((number(second), number(second + 8)), (4096, 4));
        let name = number(second + 16) as usize;
        assert_eq!(&bundle[second + 24..][..name], b"hipv4-amdgcn-amd-amdhsa--gfx942");
        assert_eq!(&bundle[4096..], b"code");
    }
}
