//! A queue's ring, read from the memory of its process.

use tracer_common::{
    aql::{PACKET_LEN, packet_type},
    queue,
};

use crate::user;

/// Words of an `amd_queue_t` from the address of the ring to its size, including both. One read takes both.
const RING: usize = (queue::SIZE - queue::BASE_ADDRESS) / 8 + 1;

/// The facts about a queue that one walk needs.
pub struct Ring {
    /// Address of the `amd_queue_t`.
    pub queue: u64,
    /// Address of the ring.
    pub base: u64,
    /// Number of packets, a power of two.
    pub size: u32,
    /// Read index when the ring was read.
    pub read_index: u64,
    /// Write index a moment later.
    pub write_index: u64,
}

/// The way to find a queue's signal.
#[derive(Clone, Copy)]
pub enum At {
    /// The address of the signal is at this address.
    Pointer(u64),
    /// The signal is at this address.
    Signal(u64),
    /// The queue is at this address, and is a proxy.
    Proxy(u64),
}

impl Ring {
    /// A ring that was not read yet.
    pub const EMPTY: Self = Self {
        queue: 0,
        base: 0,
        size: 0,
        read_index: 0,
        write_index: 0,
    };

    /// Reads the ring of the queue whose signal is found at `at`. Returns whether the read succeeded.
    #[inline(always)]
    pub fn read(&mut self, at: At) -> bool {
        let of = |signal: u64| user::read(signal.wrapping_add(queue::SIGNAL_QUEUE_PTR as u64));
        let queue = match at {
            At::Proxy(queue) => Some(queue),
            At::Signal(signal) => of(signal),
            At::Pointer(pointer) => user::read(pointer).and_then(of),
        };
        queue.is_some_and(|queue| self.read_of(queue))
    }

    /// Reads the ring of a queue.
    ///
    /// A function of its own: if it were inlined, its data would be on the stack below the walk's callback, and kernels allow a
    /// chain of calls only 512 bytes.
    #[inline(never)]
    fn read_of(&mut self, queue: u64) -> bool {
        self.try_read(queue).is_some()
    }

    #[inline(always)]
    fn try_read(&mut self, queue: u64) -> Option<()> {
        let word = |offset: usize| queue.wrapping_add(offset as u64);
        let ring: [u64; RING] = user::read(word(queue::BASE_ADDRESS))?;
        let size = ring[RING - 1] as u32;
        if size == 0 || size > queue::MAX_PACKETS || size & (size - 1) != 0 {
            return None;
        }
        // One by one, because there is no stack for what lies between them. The read index is never above a write index that is
        // read later.
        self.read_index = user::read(word(queue::READ_DISPATCH_ID))?;
        self.write_index = user::read(word(queue::WRITE_DISPATCH_ID))?;
        self.queue = queue;
        self.base = ring[0];
        self.size = size;
        Some(())
    }

    /// Returns the address of the slot of packet `index`.
    #[inline(always)]
    pub fn slot(&self, index: u64) -> u64 {
        self.base
            .wrapping_add((index & u64::from(self.size - 1)) * PACKET_LEN as u64)
    }

    /// Returns one past the highest index whose producer may write now: see `Packets::limit`.
    #[inline(always)]
    pub fn limit_now(&self) -> Option<u64> {
        // Two reads: see `try_read`.
        let write_index: u64 = user::read(self.queue.wrapping_add(queue::WRITE_DISPATCH_ID as u64))?;
        let read_index: u64 = user::read(self.queue.wrapping_add(queue::READ_DISPATCH_ID as u64))?;
        let reach = read_index.wrapping_add(u64::from(self.size));
        Some(if write_index < reach { write_index } else { reach })
    }

    /// Returns whether a slot's content is final for packet `index`: a valid header, a consumed packet, or a slot that already
    /// belongs to a later packet.
    #[inline(always)]
    pub fn is_final(&self, index: u64, first_byte: u8, write_index: u64) -> bool {
        slot_is_final(
            index,
            u64::from(first_byte),
            write_index,
            self.read_index,
            u64::from(self.size),
        ) != 0
    }
}

/// [`Ring::is_final`] as a global function, which the verifier checks once. If it were inlined, the verifier would follow every
/// combination of outcomes over the packets of a walk.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn slot_is_final(index: u64, first_byte: u64, limit: u64, read_index: u64, size: u64) -> u64 {
    let invalid = first_byte == u64::from(packet_type::INVALID);
    let reused = limit > index.wrapping_add(size);
    let own = read_index.wrapping_add(size) > index;
    u64::from(reused || (own && !invalid) || (invalid && index < read_index))
}
