//! Launches HIP's kernel that fills memory from functions with known names: `main` calls `outer`, which calls `inner`, which calls
//! `launch`, once per round. The build has no frame pointers, as most programs.

use std::{
    ffi::{CString, c_int, c_void},
    hint::black_box,
    process::ExitCode,
    ptr::null_mut,
    time::Duration,
};

/// Bytes to fill.
const BYTES: usize = 1 << 20;

type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
type Memset = unsafe extern "C" fn(*mut c_void, c_int, usize, *mut c_void) -> c_int;
type Synchronize = unsafe extern "C" fn() -> c_int;

/// Returns a function of the library. `F` must be its type.
fn get<F: Copy>(library: *mut c_void, name: &str) -> F {
    let name = CString::new(name).expect("a name");
    // SAFETY: the library stays loaded, and the name is a C string.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!function.is_null(), "{name:?} is not in the library");
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the caller names the function's type, which is a function pointer.
    unsafe { std::mem::transmute_copy(&function) }
}

#[inline(never)]
fn launch(fill: Memset, memory: *mut c_void) -> c_int {
    // SAFETY: `memory` has that many bytes, on the GPU.
    // The result is used after the call, so that no call is a jump.
    black_box(unsafe { fill(memory, 0, BYTES, null_mut()) })
}

#[inline(never)]
fn inner(fill: Memset, memory: *mut c_void) -> c_int {
    let mut local = [7_u64; 40];
    black_box(&mut local);
    black_box(launch(fill, memory))
}

#[inline(never)]
fn outer(fill: Memset, memory: *mut c_void) -> c_int {
    black_box(inner(fill, memory))
}

fn main() -> ExitCode {
    let rounds: u32 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let names = [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"];
    // SAFETY: C strings; the library's initialization has no preconditions.
    let mut libraries = names
        .iter()
        .map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) });
    let Some(library) = libraries.find(|library| !library.is_null()) else {
        eprintln!("no libamdhip64");
        return ExitCode::from(3);
    };
    let (allocate, fill): (Malloc, Memset) = (get(library, "hipMalloc"), get(library, "hipMemsetAsync"));
    let synchronize: Synchronize = get(library, "hipDeviceSynchronize");
    let mut memory = null_mut();
    // SAFETY: the functions have the types that HIP declares.
    assert_eq!(unsafe { allocate(&raw mut memory, BYTES) }, 0, "hipMalloc");
    for _ in 0..rounds {
        assert_eq!(outer(fill, memory), 0, "hipMemsetAsync");
    }
    // SAFETY: as above.
    assert_eq!(unsafe { synchronize() }, 0, "hipDeviceSynchronize");
    // tracer reads what a process has mapped while it lives: docs/stacks.md.
    std::thread::sleep(Duration::from_secs(2));
    ExitCode::SUCCESS
}
