//! The runtime's exported functions, resolved at run time.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::Library;

use super::types::{
    AgentHandle, DispatchTime, ExecutableHandle, IsaHandle, PoolHandle, RawQueue, ReaderHandle, SignalHandle, Status,
    SymbolHandle,
};

/// Reports why a queue stopped. The arguments are the status, the queue, and the pointer given at creation.
pub type QueueCallback = unsafe extern "C" fn(Status, *mut RawQueue, *mut c_void);
/// Receives one object of an iteration and the pointer given to it.
pub type Visitor<T> = unsafe extern "C" fn(T, *mut c_void) -> Status;

/// Declares [`Api`]: one field per function, named as in the headers.
macro_rules! api {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// The functions of `libhsa-runtime64.so.1` that the program calls, by their names in `hsa.h` and `hsa_ext_amd.h`. Calls go
        /// through the exported symbols, as HIP's calls do.
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
                            // SAFETY: the type is the one that the header declares for this name.
                            let symbol = unsafe {
                                library.get::<unsafe extern "C" fn($($ty),*) $(-> $ret)?>(stringify!($name))
                            }?;
                            *symbol
                        },
                    )*
                    _library: library,
                })
            }
        }
    };
}

api! {
    fn hsa_init() -> Status;
    fn hsa_shut_down() -> Status;
    fn hsa_status_string(status: Status, text: *mut *const c_char) -> Status;
    fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status;
    fn hsa_iterate_agents(visitor: Visitor<AgentHandle>, data: *mut c_void) -> Status;
    fn hsa_agent_get_info(agent: AgentHandle, attribute: u32, value: *mut c_void) -> Status;
    fn hsa_agent_iterate_isas(agent: AgentHandle, visitor: Visitor<IsaHandle>, data: *mut c_void) -> Status;
    fn hsa_isa_get_info_alt(isa: IsaHandle, attribute: u32, value: *mut c_void) -> Status;

    fn hsa_queue_create(
        agent: AgentHandle, size: u32, kind: u32, callback: Option<QueueCallback>, data: *mut c_void,
        private_segment_size: u32, group_segment_size: u32, queue: *mut *mut RawQueue,
    ) -> Status;
    fn hsa_queue_destroy(queue: *mut RawQueue) -> Status;
    fn hsa_queue_add_write_index_screlease(queue: *const RawQueue, value: u64) -> u64;
    fn hsa_queue_load_write_index_relaxed(queue: *const RawQueue) -> u64;
    fn hsa_queue_load_read_index_scacquire(queue: *const RawQueue) -> u64;

    fn hsa_signal_create(value: i64, count: u32, consumers: *const AgentHandle, signal: *mut SignalHandle) -> Status;
    fn hsa_signal_destroy(signal: SignalHandle) -> Status;
    fn hsa_signal_load_scacquire(signal: SignalHandle) -> i64;
    fn hsa_signal_store_screlease(signal: SignalHandle, value: i64);
    fn hsa_signal_store_relaxed(signal: SignalHandle, value: i64);
    fn hsa_signal_wait_scacquire(
        signal: SignalHandle, condition: u32, compare: i64, timeout: u64, wait_state: u32,
    ) -> i64;

    fn hsa_code_object_reader_create_from_file(file: c_int, reader: *mut ReaderHandle) -> Status;
    fn hsa_code_object_reader_create_from_memory(
        bytes: *const c_void, size: usize, reader: *mut ReaderHandle,
    ) -> Status;
    fn hsa_code_object_reader_destroy(reader: ReaderHandle) -> Status;
    fn hsa_executable_create_alt(
        profile: u32, rounding: u32, options: *const c_char, executable: *mut ExecutableHandle,
    ) -> Status;
    fn hsa_executable_destroy(executable: ExecutableHandle) -> Status;
    fn hsa_executable_load_agent_code_object(
        executable: ExecutableHandle, agent: AgentHandle, reader: ReaderHandle, options: *const c_char,
        loaded: *mut c_void,
    ) -> Status;
    fn hsa_executable_freeze(executable: ExecutableHandle, options: *const c_char) -> Status;
    fn hsa_executable_get_symbol_by_name(
        executable: ExecutableHandle, name: *const c_char, agent: *const AgentHandle, symbol: *mut SymbolHandle,
    ) -> Status;
    fn hsa_executable_symbol_get_info(symbol: SymbolHandle, attribute: u32, value: *mut c_void) -> Status;

    fn hsa_amd_agent_iterate_memory_pools(
        agent: AgentHandle, visitor: Visitor<PoolHandle>, data: *mut c_void,
    ) -> Status;
    fn hsa_amd_memory_pool_get_info(pool: PoolHandle, attribute: u32, value: *mut c_void) -> Status;
    fn hsa_amd_memory_pool_allocate(pool: PoolHandle, size: usize, flags: u32, memory: *mut *mut c_void) -> Status;
    fn hsa_amd_memory_pool_free(memory: *mut c_void) -> Status;
    fn hsa_amd_agents_allow_access(
        count: u32, agents: *const AgentHandle, flags: *const u32, memory: *const c_void,
    ) -> Status;
    fn hsa_amd_ipc_memory_create(memory: *mut c_void, size: usize, handle: *mut [u32; 8]) -> Status;
    fn hsa_amd_ipc_memory_attach(
        handle: *const [u32; 8], size: usize, agents: u32, agent: *const AgentHandle, memory: *mut *mut c_void,
    ) -> Status;
    fn hsa_amd_ipc_memory_detach(memory: *mut c_void) -> Status;
    fn hsa_amd_profiling_set_profiler_enabled(queue: *mut RawQueue, enable: c_int) -> Status;
    fn hsa_amd_profiling_get_dispatch_time(
        agent: AgentHandle, signal: SignalHandle, time: *mut DispatchTime,
    ) -> Status;
    fn hsa_amd_memory_async_copy(
        to: *mut c_void, to_agent: AgentHandle, from: *const c_void, from_agent: AgentHandle, size: usize,
        dependency_count: u32, dependencies: *const SignalHandle, completion: SignalHandle,
    ) -> Status;
}
