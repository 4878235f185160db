//! Memory of the GPU and pinned memory of the host, copies and fills.

use std::marker::PhantomData;
use std::sync::Arc;

use super::calls::About;
use super::runtime::Runtime;
use super::stream::Stream;
use super::types::{Direction, Object};
use crate::error::Result;
use crate::hsa::memory::Plain;

/// Where a block lies, and by which functions it comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    Host,
}

/// A block of memory with room for elements of type `T`.
struct Block<T> {
    runtime: Arc<Runtime>,
    memory: Object,
    len: usize,
    place: Place,
    element: PhantomData<T>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only reached through methods that copy.
unsafe impl<T> Send for Block<T> {}
// SAFETY: as above; writes need `&mut`.
unsafe impl<T> Sync for Block<T> {}

impl<T> Block<T> {
    fn new(runtime: &Arc<Runtime>, len: usize, place: Place) -> Result<Self> {
        let bytes = len * size_of::<T>();
        let memory = match place {
            Place::Device => runtime.create("hipMalloc", About::bytes(bytes), |api, memory| {
                // SAFETY: `memory` is writable.
                unsafe { (api.hipMalloc)(memory, bytes) }
            }),
            Place::Host => runtime.create("hipHostMalloc", About::bytes(bytes), |api, memory| {
                // SAFETY: `memory` is writable.
                unsafe { (api.hipHostMalloc)(memory, bytes, 0) }
            }),
        }?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            memory,
            len,
            place,
            element: PhantomData,
        })
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        let about = About::object(self.memory);
        let freed = match self.place {
            // SAFETY: allocated by that function's counterpart and freed once, here as below.
            Place::Device => self
                .runtime
                .call("hipFree", about, |api| unsafe { (api.hipFree)(self.memory) }),
            // SAFETY: as above.
            Place::Host => self
                .runtime
                .call("hipHostFree", about, |api| unsafe { (api.hipHostFree)(self.memory) }),
        };
        // A failure leaves nothing to do, and is in the log.
        drop(freed);
    }
}

/// Pinned host memory, which the GPU reaches at the same address.
pub struct HostBuffer<T>(Block<T>);

impl<T: Plain> HostBuffer<T> {
    /// Allocates it.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn new(runtime: &Arc<Runtime>, len: usize) -> Result<Self> {
        Block::new(runtime, len, Place::Host).map(Self)
    }

    /// Address, the same for host and GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.memory as u64
    }

    /// Replaces the contents.
    ///
    /// # Panics
    /// `elements` are not as many as the buffer has.
    pub fn write(&mut self, elements: &[T]) {
        assert_eq!(elements.len(), self.0.len, "the whole buffer is written");
        // SAFETY: the block holds that many elements, and no reference into it exists.
        unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr(), self.0.memory.cast(), elements.len()) };
    }

    /// A copy of the contents. Whoever calls has waited for the GPU's work on them.
    #[must_use]
    pub fn read(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.0.len);
        // SAFETY: the block holds that many elements of a type without invalid values, and the vector has room.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.memory.cast::<T>(), elements.as_mut_ptr(), self.0.len);
            elements.set_len(self.0.len);
        }
        elements
    }
}

/// Memory of the GPU.
pub struct DeviceBuffer<T>(Block<T>);

impl<T: Plain> DeviceBuffer<T> {
    /// Allocates it.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn new(runtime: &Arc<Runtime>, len: usize) -> Result<Self> {
        Block::new(runtime, len, Place::Device).map(Self)
    }

    /// Address on the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.memory as u64
    }

    /// Size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Replaces the contents by those of ordinary host memory, and waits for it.
    ///
    /// # Errors
    /// HIP refuses.
    ///
    /// # Panics
    /// The sizes differ.
    pub fn upload(&mut self, from: &[T]) -> Result<()> {
        assert_eq!(from.len(), self.0.len, "whole blocks are copied");
        self.copy_now(self.0.memory, from.as_ptr().cast_mut().cast(), Direction::HostToDevice)
    }

    /// Copies the contents to ordinary host memory, and waits for it.
    ///
    /// # Errors
    /// HIP refuses.
    ///
    /// # Panics
    /// The sizes differ.
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        assert_eq!(to.len(), self.0.len, "whole blocks are copied");
        self.copy_now(to.as_mut_ptr().cast(), self.0.memory, Direction::DeviceToHost)
    }

    /// Asks for a copy from pinned host memory.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn upload_on(&mut self, stream: &Stream, from: &HostBuffer<T>) -> Result<()> {
        self.copy_on(stream, &self.0, &from.0, Direction::HostToDevice)
    }

    /// Asks for a copy to pinned host memory.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn download_on(&self, stream: &Stream, to: &mut HostBuffer<T>) -> Result<()> {
        self.copy_on(stream, &to.0, &self.0, Direction::DeviceToHost)
    }

    /// Asks for a copy from other memory of the GPU.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn copy_from_on(&mut self, stream: &Stream, from: &Self) -> Result<()> {
        self.copy_on(stream, &self.0, &from.0, Direction::DeviceToDevice)
    }

    /// Sets every byte, and returns when that is asked for or done, as HIP likes.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let (memory, bytes) = (self.0.memory, self.bytes());
        let runtime = &self.0.runtime;
        runtime.call("hipMemset", About::fill(memory, bytes), |api| {
            // SAFETY: the block has that many bytes.
            unsafe { (api.hipMemset)(memory, value.into(), bytes) }
        })
    }

    /// Asks for every byte to be set.
    ///
    /// # Errors
    /// HIP refuses.
    pub fn fill_on(&mut self, stream: &Stream, value: u8) -> Result<()> {
        let (memory, bytes) = (self.0.memory, self.bytes());
        let about = About::fill(memory, bytes).on(stream.handle());
        self.0.runtime.call("hipMemsetAsync", about, |api| {
            // SAFETY: the block has that many bytes; whoever drops it has waited for the stream.
            unsafe { (api.hipMemsetAsync)(memory, value.into(), bytes, stream.handle()) }
        })
    }

    fn copy_now(&self, to: Object, from: Object, direction: Direction) -> Result<()> {
        let bytes = self.bytes();
        let about = About::copy(to, from, bytes, direction);
        self.0.runtime.call("hipMemcpy", about, |api| {
            // SAFETY: both sides have that many bytes, and it returns when they are copied.
            unsafe { (api.hipMemcpy)(to, from, bytes, direction as u32) }
        })
    }

    fn copy_on(&self, stream: &Stream, to: &Block<T>, from: &Block<T>, direction: Direction) -> Result<()> {
        assert_eq!(to.len, from.len, "whole blocks are copied");
        let (to, from, bytes) = (to.memory, from.memory, self.bytes());
        let about = About::copy(to, from, bytes, direction).on(stream.handle());
        self.0.runtime.call("hipMemcpyAsync", about, |api| {
            // SAFETY: both sides have that many bytes; whoever drops them has waited for the stream.
            unsafe { (api.hipMemcpyAsync)(to, from, bytes, direction as u32, stream.handle()) }
        })
    }
}
