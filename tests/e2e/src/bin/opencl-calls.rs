//! Makes OpenCL calls and prints each of them, in order: name, bytes, and status. The library is the loader's, as programs use it.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    process::ExitCode,
    ptr::{null, null_mut},
};

/// Copies of each kind, and kernels.
const ROUNDS: usize = 5;
/// Bytes of a buffer.
const BYTES: usize = 1 << 20;
/// `CL_DEVICE_TYPE_GPU`.
const GPU: u64 = 4;
const SOURCE: &str = "__kernel void add_one(__global uint *to) { to[get_global_id(0)] += 1; }";

type Handle = *mut c_void;

struct Library(Handle);

impl Library {
    /// Returns a function of the library. `F` must be its type.
    fn get<F: Copy>(&self, name: &str) -> F {
        let name = CString::new(name).expect("a name");
        // SAFETY: the library stays loaded, and the name is a C string.
        let function = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!function.is_null(), "{name:?} is not in the loader");
        assert_eq!(size_of::<F>(), size_of::<Handle>());
        // SAFETY: the caller names the function's type, which is a function pointer.
        unsafe { std::mem::transmute_copy(&function) }
    }
}

/// Prints a call.
fn made(name: &str, bytes: Option<usize>, status: i32) {
    let bytes = bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    println!("{name} {bytes} {status}");
    assert_eq!(status, 0, "{name}");
}

/// Prints a call that returned an object.
fn object(name: &str, bytes: Option<usize>, object: Handle, status: i32) -> Handle {
    made(name, bytes, status);
    assert!(!object.is_null(), "{name}");
    object
}

type OfOne = unsafe extern "C" fn(Handle) -> c_int;
type Enqueue =
    unsafe extern "C" fn(Handle, Handle, u32, usize, usize, Handle, u32, *const Handle, *mut Handle) -> c_int;
type EnqueueCopy =
    unsafe extern "C" fn(Handle, Handle, Handle, usize, usize, usize, u32, *const Handle, *mut Handle) -> c_int;
type EnqueueKernel = unsafe extern "C" fn(
    Handle,
    Handle,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const Handle,
    *mut Handle,
) -> c_int;

fn main() -> ExitCode {
    // SAFETY: a C string; the loader's initialization has no preconditions.
    let library = Library(unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_NOW) });
    if library.0.is_null() {
        eprintln!("no libOpenCL.so.1");
        return ExitCode::from(3);
    }
    let (mut platform, mut device, mut status) = (null_mut(), null_mut(), 0);
    let platforms: unsafe extern "C" fn(u32, *mut Handle, *mut u32) -> c_int = library.get("clGetPlatformIDs");
    let devices: unsafe extern "C" fn(Handle, u64, u32, *mut Handle, *mut u32) -> c_int = library.get("clGetDeviceIDs");
    // SAFETY: here and below, the functions have the types that cl.h declares, and pointers are to places of those types.
    unsafe {
        assert_eq!(platforms(1, &raw mut platform, null_mut()), 0, "no platform");
        made(
            "clGetDeviceIDs",
            None,
            devices(platform, GPU, 1, &raw mut device, null_mut()),
        );
    }
    let create: unsafe extern "C" fn(*const isize, u32, *const Handle, Handle, Handle, *mut c_int) -> Handle =
        library.get("clCreateContext");
    // SAFETY: as above.
    let context = unsafe { create(null(), 1, &raw const device, null_mut(), null_mut(), &raw mut status) };
    let context = object("clCreateContext", None, context, status);
    let create: unsafe extern "C" fn(Handle, Handle, u64, *mut c_int) -> Handle = library.get("clCreateCommandQueue");
    // SAFETY: as above.
    let queue = unsafe { create(context, device, 0, &raw mut status) };
    let queue = object("clCreateCommandQueue", None, queue, status);
    let create: unsafe extern "C" fn(Handle, u64, usize, Handle, *mut c_int) -> Handle = library.get("clCreateBuffer");
    let buffers = [(); 2].map(|()| {
        // SAFETY: as above.
        let buffer = unsafe { create(context, 0, BYTES, null_mut(), &raw mut status) };
        object("clCreateBuffer", Some(BYTES), buffer, status)
    });
    let kernel = kernel(&library, context, device);
    let argument: unsafe extern "C" fn(Handle, u32, usize, *const Handle) -> c_int = library.get("clSetKernelArg");
    let (write, read): (Enqueue, Enqueue) = (library.get("clEnqueueWriteBuffer"), library.get("clEnqueueReadBuffer"));
    let copy: EnqueueCopy = library.get("clEnqueueCopyBuffer");
    let launch: EnqueueKernel = library.get("clEnqueueNDRangeKernel");
    let mut host = vec![0_u8; BYTES];
    for round in 1..=ROUNDS {
        let bytes = BYTES / round;
        let memory = host.as_mut_ptr().cast();
        // SAFETY: as above. Writes and reads block, and are within the buffers.
        unsafe {
            let status = write(queue, buffers[0], 1, 0, bytes, memory, 0, null(), null_mut());
            made("clEnqueueWriteBuffer", Some(bytes), status);
            let status = argument(kernel, 0, size_of::<Handle>(), &raw const buffers[0]);
            made("clSetKernelArg", None, status);
            let size = [64 * round];
            let status = launch(queue, kernel, 1, null(), size.as_ptr(), null(), 0, null(), null_mut());
            made("clEnqueueNDRangeKernel", None, status);
            let status = copy(queue, buffers[0], buffers[1], 0, 0, bytes, 0, null(), null_mut());
            made("clEnqueueCopyBuffer", Some(bytes), status);
            let status = read(queue, buffers[1], 1, 0, bytes, memory, 0, null(), null_mut());
            made("clEnqueueReadBuffer", Some(bytes), status);
        }
    }
    let of_one = |name: &str, of: Handle| {
        let function: OfOne = library.get(name);
        // SAFETY: as above.
        made(name, None, unsafe { function(of) });
    };
    of_one("clFinish", queue);
    of_one("clReleaseKernel", kernel);
    for buffer in buffers {
        of_one("clReleaseMemObject", buffer);
    }
    of_one("clReleaseCommandQueue", queue);
    of_one("clReleaseContext", context);
    ExitCode::SUCCESS
}

/// Builds the kernel.
fn kernel(library: &Library, context: Handle, device: Handle) -> Handle {
    let mut status = 0;
    let create: unsafe extern "C" fn(Handle, u32, *const *const c_char, *const usize, *mut c_int) -> Handle =
        library.get("clCreateProgramWithSource");
    let build: unsafe extern "C" fn(Handle, u32, *const Handle, *const c_char, Handle, Handle) -> c_int =
        library.get("clBuildProgram");
    let of_name: unsafe extern "C" fn(Handle, *const c_char, *mut c_int) -> Handle = library.get("clCreateKernel");
    let (source, len) = (SOURCE.as_ptr().cast::<c_char>(), SOURCE.len());
    // SAFETY: the functions have the types that cl.h declares, and pointers are to places of those types.
    unsafe {
        let program = create(context, 1, &raw const source, &raw const len, &raw mut status);
        let program = object("clCreateProgramWithSource", None, program, status);
        let status_of_build = build(program, 1, &raw const device, null(), null_mut(), null_mut());
        made("clBuildProgram", None, status_of_build);
        let kernel = of_name(program, c"add_one".as_ptr(), &raw mut status);
        object("clCreateKernel", None, kernel, status)
    }
}
