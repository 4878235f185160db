//! A tool that does to a program's HSA queues what a profiler does: it replaces each with a proxy in memory, from which the runtime
//! passes packets to a function of the tool, which passes them on to the real queue.
//!
//! With `HSA_INTERCEPT=barriers` it publishes each packet behind a barrier of its own, as profilers do. With `HSA_INTERCEPT=stores`
//! queues stay as they are, and the tool intercepts `hsa_signal_store_*` instead, as tracers of the API do.
//!
//! `HSA_TOOLS_LIB=libhsa_intercept.so` makes the runtime load it (`Runtime::LoadTools`, runtime.cpp of ROCR-Runtime).

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `hsa_status_t`.
type Status = u32;
const SUCCESS: Status = 0;
const ERROR: Status = 0x1000;

/// `hsa_queue_create` (hsa.h), and `hsa_amd_queue_intercept_create` (`hsa_api_trace.h`), which creates a queue and its proxy.
/// [`create`] names the arguments.
type Create = unsafe extern "C" fn(u64, u32, u32, *const c_void, *mut c_void, u32, u32, *mut *mut c_void) -> Status;

/// `hsa_amd_queue_intercept_packet_writer`.
type Writer = unsafe extern "C" fn(packets: *const c_void, count: u64);

/// `hsa_amd_queue_intercept_handler`.
type Handler =
    unsafe extern "C" fn(packets: *const c_void, count: u64, user_index: u64, data: *mut c_void, writer: Writer);

/// `hsa_amd_queue_intercept_register`.
type Register = unsafe extern "C" fn(queue: *mut c_void, handler: Handler, data: *mut c_void) -> Status;

/// `ApiTableVersion` (`hsa_api_trace.h`).
#[repr(C)]
pub struct Version {
    major: u32,
    /// For the function tables, their size in bytes.
    minor: u32,
    step: u32,
    reserved: u32,
}

/// `HsaApiTable`: its start, which is the same in all versions.
#[repr(C)]
pub struct Tables {
    version: Version,
    core: *mut c_void,
    amd_ext: *mut c_void,
}

/// Returns the offset of a function in its table: behind the version, one pointer per function.
const fn slot(number: usize) -> usize {
    size_of::<Version>() + number * size_of::<*const c_void>()
}

/// The function's offset in `CoreApiTable`.
const QUEUE_CREATE: usize = slot(7);
/// The offset of `hsa_signal_store_relaxed` in the same table; `_screlease` follows it.
const SIGNAL_STORE: usize = slot(41);
/// The function's offset in `AmdExtTable` up to ROCr 5.5. Then two functions for copies were inserted before it.
const INTERCEPT_CREATE_OLD: usize = slot(35);
/// The function's offset in the same table since then.
const INTERCEPT_CREATE: usize = slot(37);
/// The number of functions in the last table without these two.
const OLD_FUNCTIONS: usize = 51;

/// The runtime's functions: `hsa_amd_queue_intercept_create`, and `_register`, which follows it.
static INTERCEPT: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// `hsa_signal_store_*`.
type Store = unsafe extern "C" fn(signal: u64, value: i64);

/// The runtime's functions of that type.
static STORES: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// Replaces one of them, and only calls it.
unsafe extern "C" fn store<const NUMBER: usize>(signal: u64, value: i64) {
    let function = STORES[NUMBER].load(Ordering::Acquire);
    // SAFETY: the runtime's function, stored before this one was installed; the arguments are the program's.
    unsafe {
        let function: Store = std::mem::transmute(function);
        function(signal, value);
    }
}

/// Returns whether the tool is to use that mode.
fn is_mode(word: &str) -> bool {
    std::env::var_os("HSA_INTERCEPT").is_some_and(|mode| mode == word)
}

/// Receives the tables of the runtime, which has initialised itself.
///
/// # Safety
/// `tables` must be the runtime's `HsaApiTable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    tables: *mut Tables,
    _runtime_version: u64,
    _failed_count: u64,
    _failed_names: *const *const c_char,
) -> bool {
    // SAFETY: the runtime's tables begin with their versions and are as large as the versions say.
    unsafe {
        let (core, amd_ext) = ((*tables).core, (*tables).amd_ext);
        if is_mode("stores") {
            let functions = core.byte_add(SIGNAL_STORE).cast::<*mut c_void>();
            let own: [Store; 2] = [store::<0>, store::<1>];
            for (number, (place, own)) in STORES.iter().zip(own).enumerate() {
                place.store(functions.add(number).read(), Ordering::Release);
                functions.add(number).cast::<Store>().write(own);
            }
            return true;
        }
        let bytes = (*amd_ext.cast::<Version>()).minor as usize;
        let at = if bytes <= slot(OLD_FUNCTIONS) {
            INTERCEPT_CREATE_OLD
        } else {
            INTERCEPT_CREATE
        };
        let functions = amd_ext.byte_add(at).cast::<*mut c_void>();
        for (place, number) in INTERCEPT.iter().zip(0..) {
            place.store(functions.add(number).read(), Ordering::Release);
        }
        let function: Create = create;
        core.byte_add(QUEUE_CREATE).cast::<Create>().write(function);
    }
    true
}

/// Called when the runtime shuts down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {}

/// Replaces the runtime's `hsa_queue_create`, and adds a proxy.
unsafe extern "C" fn create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: *const c_void,
    data: *mut c_void,
    private_segment: u32,
    group_segment: u32,
    queue: *mut *mut c_void,
) -> Status {
    let [create, register] = [&INTERCEPT[0], &INTERCEPT[1]].map(|place| place.load(Ordering::Acquire));
    if create.is_null() || register.is_null() {
        return ERROR;
    }
    // SAFETY: the runtime's functions, of these types; the arguments are the program's.
    unsafe {
        let create: Create = std::mem::transmute(create);
        let register: Register = std::mem::transmute(register);
        let made = create(agent, size, kind, callback, data, private_segment, group_segment, queue);
        if made != SUCCESS {
            return made;
        }
        register(*queue, hand_on, ptr::null_mut())
    }
}

/// An AQL packet.
#[repr(C, align(64))]
struct Packet([u8; 64]);

/// A barrier-AND packet (type 3) without dependencies, ordered behind the packets before it.
const BARRIER: Packet = {
    let mut bytes = [0; 64];
    // Header: type, barrier bit; system scope for acquire and release.
    (bytes[0], bytes[1]) = (3, 0b1_0101);
    Packet(bytes)
};

/// Passes on packets that the program has published on its proxy. With `HSA_INTERCEPT=barriers` each is published behind a barrier
/// of the tool's own, as profilers do.
unsafe extern "C" fn hand_on(packets: *const c_void, count: u64, _index: u64, _data: *mut c_void, writer: Writer) {
    if !is_mode("barriers") {
        // SAFETY: packets and function are the runtime's own.
        return unsafe { writer(packets, count) };
    }
    for at in 0..count as usize {
        // SAFETY: there are `count` packets at this address, and as many are written.
        unsafe {
            let pair = [BARRIER, packets.cast::<Packet>().add(at).read_unaligned()];
            writer(pair.as_ptr().cast(), 2);
        }
    }
}
