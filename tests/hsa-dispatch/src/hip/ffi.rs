//! HIP's exported functions, resolved at run time.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::Library;

use super::types::{Dim3, Object, Status};

/// Declares [`Api`]: one field per function, named as in the headers. A function that some releases export under another name lists
/// all its names.
macro_rules! api {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $(, as $other:literal)?;)*) => {
        /// The functions of `libamdhip64` that the program calls, by their names in the headers.
        #[expect(non_snake_case, reason = "the names of the headers")]
        pub struct Api {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub $name: unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?,
            )*
            /// Keeps the functions mapped.
            _library: Library,
        }

        impl Api {
            /// Loads `library` and finds every function in it.
            ///
            /// # Errors
            /// Fails if the library cannot be loaded, or lacks a function.
            pub fn load(library: &Path) -> Result<Self, libloading::Error> {
                // SAFETY: the runtime's initialisers are meant to run in any process that loads it.
                let library = unsafe { Library::new(library) }?;
                Ok(Self {
                    $(
                        $name: {
                            let names = [stringify!($name), $($other)?];
                            // SAFETY: the type is the one that the header declares for these names.
                            let symbol = unsafe {
                                find::<unsafe extern "C" fn($($ty),*) $(-> $ret)?>(&library, &names)
                            }?;
                            symbol
                        },
                    )*
                    _library: library,
                })
            }
        }
    };
}

/// Returns the first of these functions that the library has.
///
/// # Safety
/// All of them must be of type `F`.
unsafe fn find<F: Copy>(library: &Library, names: &[&str]) -> Result<F, libloading::Error> {
    let mut found = Err(libloading::Error::DlSymUnknown);
    for name in names {
        // SAFETY: the caller guarantees the type.
        found = unsafe { library.get::<F>(*name) }.map(|symbol| *symbol);
        if found.is_ok() {
            break;
        }
    }
    found
}

api! {
    fn hipInit(flags: u32) -> Status;
    fn hipGetDeviceCount(count: *mut c_int) -> Status;
    fn hipSetDevice(device: c_int) -> Status;
    fn hipGetDeviceProperties(properties: *mut c_void, device: c_int) -> Status;
    fn hipRuntimeGetVersion(version: *mut c_int) -> Status;
    fn hipGetErrorString(status: Status) -> *const c_char;
    fn hipDeviceSynchronize() -> Status;

    fn hipMalloc(address: *mut Object, bytes: usize) -> Status;
    fn hipFree(address: Object) -> Status;
    fn hipHostMalloc(address: *mut Object, bytes: usize, flags: u32) -> Status;
    fn hipHostFree(address: Object) -> Status;
    fn hipMemcpy(to: Object, from: Object, bytes: usize, kind: u32) -> Status;
    fn hipMemcpyAsync(to: Object, from: Object, bytes: usize, kind: u32, stream: Object) -> Status;
    fn hipMemset(to: Object, value: c_int, bytes: usize) -> Status;
    fn hipMemsetAsync(to: Object, value: c_int, bytes: usize, stream: Object) -> Status;

    fn hipStreamCreateWithFlags(stream: *mut Object, flags: u32) -> Status;
    fn hipStreamDestroy(stream: Object) -> Status;
    fn hipStreamSynchronize(stream: Object) -> Status;
    fn hipStreamWaitEvent(stream: Object, event: Object, flags: u32) -> Status;
    fn hipStreamBeginCapture(stream: Object, mode: u32) -> Status;
    fn hipStreamEndCapture(stream: Object, graph: *mut Object) -> Status;
    fn hipEventCreate(event: *mut Object) -> Status;
    fn hipEventDestroy(event: Object) -> Status;
    fn hipEventRecord(event: Object, stream: Object) -> Status;
    fn hipEventSynchronize(event: Object) -> Status;
    fn hipEventElapsedTime(ms: *mut f32, start: Object, stop: Object) -> Status;

    fn hipGraphInstantiate(
        executable: *mut Object, graph: Object, error_node: *mut Object, log: *mut c_char, log_bytes: usize,
    ) -> Status;
    fn hipGraphLaunch(executable: Object, stream: Object) -> Status;
    fn hipGraphExecDestroy(executable: Object) -> Status;
    fn hipGraphDestroy(graph: Object) -> Status;

    fn hipModuleLoadData(module: *mut Object, image: *const c_void) -> Status;
    fn hipModuleUnload(module: Object) -> Status;
    fn hipModuleGetFunction(function: *mut Object, module: Object, name: *const c_char) -> Status;
    fn hipModuleLaunchKernel(
        function: Object, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: Object, arguments: *mut *mut c_void, extra: *mut *mut c_void,
    ) -> Status;
    // This is a C++ function before HIP 6.
    fn hipExtModuleLaunchKernel(
        function: Object, items_x: u32, items_y: u32, items_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: usize, stream: Object, arguments: *mut *mut c_void, extra: *mut *mut c_void, start: Object,
        stop: Object, flags: u32,
    ) -> Status,
        as "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j";
    fn hipLaunchKernel(
        stub: *const c_void, blocks: Dim3, block: Dim3, arguments: *mut *mut c_void, shared_bytes: usize, stream: Object,
    ) -> Status;
    fn hipExtLaunchKernel(
        stub: *const c_void, blocks: Dim3, block: Dim3, arguments: *mut *mut c_void, shared_bytes: usize, stream: Object,
        start: Object, stop: Object, flags: c_int,
    ) -> Status;
    fn hipLaunchCooperativeKernel(
        stub: *const c_void, blocks: Dim3, block: Dim3, arguments: *mut *mut c_void, shared_bytes: u32, stream: Object,
    ) -> Status;

    fn __hipRegisterFatBinary(binary: *const c_void) -> *mut Object;
    fn __hipRegisterFunction(
        binary: *mut Object, stub: *const c_void, device_function: *const c_char, device_name: *const c_char,
        thread_limit: u32, thread_id: *mut c_void, block_id: *mut c_void, block_dim: *mut c_void,
        grid_dim: *mut c_void, wave_size: *mut c_int,
    );
    fn __hipUnregisterFatBinary(binary: *mut Object);
}
