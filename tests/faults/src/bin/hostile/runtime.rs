//! AMD's runtime, with the functions that the traps need.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem, ptr,
    time::{Duration, Instant},
};

use tracer_common::{aql::PACKET_LEN, queue, r_debug::R_BRK};

use crate::memory::{keep, peek, poke};

/// `HSA_AGENT_INFO_DEVICE` and `HSA_DEVICE_TYPE_GPU` (hsa.h).
const INFO_DEVICE: u32 = 17;
const GPU: u32 = 1;
/// The number of packets of the queue.
const SIZE: u32 = 256;

/// The longest wait for the GPU.
const LONGEST: Duration = Duration::from_secs(2);

/// A function of the runtime that takes three words and returns one.
type Function = unsafe extern "C" fn(u64, u64, u64) -> u64;

/// The runtime, with a queue.
pub struct Runtime {
    /// The address of `_amdgpu_r_debug`.
    pub debug: u64,
    /// The address of the `amd_queue_t`.
    pub queue: u64,
    /// The address of the doorbell's `amd_signal_t`.
    pub doorbell: u64,
    /// The original address of the ring.
    ring: u64,
    store: Function,
    add_write_index: Function,
    library: *mut c_void,
    agent: u64,
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the library stays loaded, and the name is a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        Err(format!("no {}", name.to_string_lossy()))
    } else {
        Ok(found)
    }
}

fn function(library: *mut c_void, name: &CStr) -> Result<Function, String> {
    let address = symbol(library, name)?;
    // SAFETY: a function that takes at most three words in registers; it does not read the words that it does not take.
    Ok(unsafe { mem::transmute::<*mut c_void, Function>(address) })
}

/// Stores the first GPU.
unsafe extern "C" fn visit(agent: u64, found: *mut [u64; 2]) -> u32 {
    let mut kind = 0_u32;
    // SAFETY: `start` passed the array, with the address of `hsa_agent_get_info` in it.
    unsafe {
        let info = mem::transmute::<usize, Function>((*found)[1] as usize);
        info(
            agent,
            u64::from(INFO_DEVICE),
            (&raw mut kind).expose_provenance() as u64,
        );
        if kind == GPU && (*found)[0] == 0 {
            (*found)[0] = agent;
        }
    }
    0
}

impl Runtime {
    /// Loads the runtime, and creates a queue on the first GPU.
    pub fn start() -> Result<Self, String> {
        // SAFETY: the name is a C string; the library's initialisers may run in any process.
        let library = unsafe { libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), libc::RTLD_NOW as c_int) };
        if library.is_null() {
            return Err("no libhsa-runtime64.so.1".to_owned());
        }
        let call = |name: &CStr, arguments: [u64; 3]| {
            let function = function(library, name)?;
            let [a, b, c] = arguments;
            // SAFETY: the arguments are those that the header declares for this name.
            let status = unsafe { function(a, b, c) } as u32;
            if status == 0 {
                Ok(())
            } else {
                Err(format!("{}: {status:#x}", name.to_string_lossy()))
            }
        };
        call(c"hsa_init", [0; 3])?;
        let info = symbol(library, c"hsa_agent_get_info")?.expose_provenance() as u64;
        let mut found = [0, info];
        let visitor = (visit as *const c_void).expose_provenance() as u64;
        call(
            c"hsa_iterate_agents",
            [visitor, (&raw mut found).expose_provenance() as u64, 0],
        )?;
        let queue = Self::create_queue(library, found[0])?;
        Ok(Self {
            debug: symbol(library, c"_amdgpu_r_debug")?.expose_provenance() as u64,
            queue,
            doorbell: peek(queue + queue::DOORBELL_SIGNAL as u64),
            ring: peek(queue + queue::BASE_ADDRESS as u64),
            store: function(library, c"hsa_signal_store_screlease")?,
            add_write_index: function(library, c"hsa_queue_add_write_index_screlease")?,
            library,
            agent: found[0],
        })
    }

    /// Makes the recorder read this queue's memory at its next doorbell as at the first one: what it remembers of a queue is valid
    /// until a queue is created.
    pub fn be_forgotten(&self) {
        Self::create_queue(self.library, self.agent).expect("another queue");
    }

    fn create_queue(library: *mut c_void, agent: u64) -> Result<u64, String> {
        type Create = unsafe extern "C" fn(u64, u32, u32, *const c_char, *const c_void, u32, u32, *mut u64) -> u32;
        let address = symbol(library, c"hsa_queue_create")?;
        let mut queue = 0;
        // SAFETY: the type is the one that the header declares for this name; no callback is passed.
        let status = unsafe {
            let create = mem::transmute::<*mut c_void, Create>(address);
            create(
                agent,
                SIZE,
                0,
                ptr::null(),
                ptr::null(),
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        };
        if status == 0 {
            Ok(queue)
        } else {
            Err(format!("hsa_queue_create: {status:#x}"))
        }
    }

    /// Notifies debuggers that the list of code objects has changed.
    pub fn announce(&self) {
        let address: usize = peek(self.debug + R_BRK as u64);
        // SAFETY: the runtime's own function for this purpose, which takes no arguments and does nothing.
        unsafe { mem::transmute::<usize, unsafe extern "C" fn()>(address)() };
    }

    /// Reserves an index and writes a packet there. Returns the index.
    pub fn write(&self, packet: [u8; PACKET_LEN]) -> u64 {
        // SAFETY: the queue is alive, and the function is the one that the header declares.
        let index = unsafe { (self.add_write_index)(self.queue, 1, 0) };
        let slot = self.ring + (index % u64::from(SIZE)) * PACKET_LEN as u64;
        // The header comes last, because it makes the packet valid.
        for at in (0..PACKET_LEN).step_by(4).rev() {
            let word = u32::from_ne_bytes(std::array::from_fn(|i| packet[at + i]));
            poke(slot + at as u64, word);
        }
        index
    }

    /// Stores to the doorbell.
    pub fn ring(&self, value: u64) {
        // SAFETY: the doorbell lives as long as the queue.
        unsafe { (self.store)(self.doorbell, value, 0) };
    }

    /// Waits until the GPU has taken the packet with this index, but at most two seconds, because some traps prevent it.
    pub fn taken(&self, index: u64) {
        let began = Instant::now();
        while peek::<u64>(self.queue + queue::READ_DISPATCH_ID as u64) <= index && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Submits packets one by one, each with its doorbell, and waits until the GPU takes them.
    pub fn submit(&self, count: usize) {
        for _ in 0..count {
            let index = self.write(dispatch(keep([1_u64, 1, 0, 0, 0, 0, 0, 0, 0, 0])));
            self.ring(index);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Returns a dispatch of one work-item, of an unknown kernel, with this completion signal.
pub fn dispatch(signal: u64) -> [u8; PACKET_LEN] {
    let mut words = [0_u32; PACKET_LEN / 4];
    // Kernel dispatch, system-scope fences; one dimension.
    words[0] = 2 | 2 << 9 | 2 << 11 | 1 << 16;
    (words[1], words[2]) = (1 | 1 << 16, 1);
    (words[3], words[4], words[5]) = (1, 1, 1);
    let kernel = keep([0_u64; 8]);
    (words[8], words[9]) = (kernel as u32, (kernel >> 32) as u32);
    (words[14], words[15]) = (signal as u32, (signal >> 32) as u32);
    let mut packet = [0; PACKET_LEN];
    for (to, word) in packet.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    packet
}
