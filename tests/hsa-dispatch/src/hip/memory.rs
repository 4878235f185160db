//! GPU memory and pinned host memory, copies and fills.

use std::marker::PhantomData;
use std::sync::Arc;

use super::calls::About;
use super::runtime::Runtime;
use super::stream::Stream;
use super::types::{Direction, Object};
use crate::error::Result;
use crate::hsa::memory::Plain;

/// The location of a block, which decides the functions that allocate and free it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    Host,
}

/// A block of memory for elements of type `T`.
struct Block<T> {
    runtime: Arc<Runtime>,
    memory: Object,
    len: usize,
    place: Place,
    element: PhantomData<T>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only accessed through methods that copy.
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
        // If this fails, there is nothing left to do, and the failure is in the log.
        drop(freed);
    }
}

/// Pinned host memory, which the GPU accesses at the same address.
pub struct HostBuffer<T>(Block<T>);

impl<T: Plain> HostBuffer<T> {
    /// Allocates the memory.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn new(runtime: &Arc<Runtime>, len: usize) -> Result<Self> {
        Block::new(runtime, len, Place::Host).map(Self)
    }

    /// Returns the address, which is the same for host and GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.memory as u64
    }

    /// Replaces the contents.
    ///
    /// # Panics
    /// Panics if `elements` does not have as many elements as the buffer.
    pub fn write(&mut self, elements: &[T]) {
        assert_eq!(elements.len(), self.0.len, "the whole buffer is written");
        // SAFETY: the block holds that many elements, and no reference into it exists.
        unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr(), self.0.memory.cast(), elements.len()) };
    }

    /// Returns a copy of the contents. The caller has waited for the GPU's work on them.
    #[must_use]
    pub fn read(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.0.len);
        // SAFETY: the block holds that many elements of a type without invalid values, and the vector has room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.memory.cast::<T>(), elements.as_mut_ptr(), self.0.len);
            elements.set_len(self.0.len);
        }
        elements
    }
}

/// GPU memory.
pub struct DeviceBuffer<T>(Block<T>);

impl<T: Plain> DeviceBuffer<T> {
    /// Allocates the memory.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn new(runtime: &Arc<Runtime>, len: usize) -> Result<Self> {
        Block::new(runtime, len, Place::Device).map(Self)
    }

    /// Returns the address on the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.memory as u64
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Replaces the contents with those of ordinary host memory, and waits for the copy.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    ///
    /// # Panics
    /// Panics if the sizes differ.
    pub fn upload(&mut self, from: &[T]) -> Result<()> {
        assert_eq!(from.len(), self.0.len, "whole blocks are copied");
        self.copy_now(self.0.memory, from.as_ptr().cast_mut().cast(), Direction::HostToDevice)
    }

    /// Copies the contents to ordinary host memory, and waits for the copy.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    ///
    /// # Panics
    /// Panics if the sizes differ.
    pub fn download(&self, to: &mut [T]) -> Result<()> {
        assert_eq!(to.len(), self.0.len, "whole blocks are copied");
        self.copy_now(to.as_mut_ptr().cast(), self.0.memory, Direction::DeviceToHost)
    }

    /// Submits a copy from pinned host memory.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn upload_on(&mut self, stream: &Stream, from: &HostBuffer<T>) -> Result<()> {
        self.copy_on(stream, &self.0, &from.0, Direction::HostToDevice)
    }

    /// Submits a copy to pinned host memory.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn download_on(&self, stream: &Stream, to: &mut HostBuffer<T>) -> Result<()> {
        self.copy_on(stream, &to.0, &self.0, Direction::DeviceToHost)
    }

    /// Submits a copy from other GPU memory.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn copy_from_on(&mut self, stream: &Stream, from: &Self) -> Result<()> {
        self.copy_on(stream, &self.0, &from.0, Direction::DeviceToDevice)
    }

    /// Sets every byte. HIP decides whether the call returns when the fill is submitted or when it is complete.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn fill(&mut self, value: u8) -> Result<()> {
        let (memory, bytes) = (self.0.memory, self.bytes());
        let runtime = &self.0.runtime;
        runtime.call("hipMemset", About::fill(memory, bytes), |api| {
            // SAFETY: the block has that many bytes.
            unsafe { (api.hipMemset)(memory, value.into(), bytes) }
        })
    }

    /// Submits a fill of every byte.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn fill_on(&mut self, stream: &Stream, value: u8) -> Result<()> {
        let (memory, bytes) = (self.0.memory, self.bytes());
        let about = About::fill(memory, bytes).on(stream.handle());
        self.0.runtime.call("hipMemsetAsync", about, |api| {
            // SAFETY: the block has that many bytes; the code that drops it has waited for the stream.
            unsafe { (api.hipMemsetAsync)(memory, value.into(), bytes, stream.handle()) }
        })
    }

    fn copy_now(&self, to: Object, from: Object, direction: Direction) -> Result<()> {
        let bytes = self.bytes();
        let about = About::copy(to, from, bytes, direction);
        self.0.runtime.call("hipMemcpy", about, |api| {
            // SAFETY: both sides have that many bytes, and the call returns when they are copied.
            unsafe { (api.hipMemcpy)(to, from, bytes, direction as u32) }
        })
    }

    fn copy_on(&self, stream: &Stream, to: &Block<T>, from: &Block<T>, direction: Direction) -> Result<()> {
        assert_eq!(to.len, from.len, "whole blocks are copied");
        let (to, from, bytes) = (to.memory, from.memory, self.bytes());
        let about = About::copy(to, from, bytes, direction).on(stream.handle());
        self.0.runtime.call("hipMemcpyAsync", about, |api| {
            // SAFETY: both sides have that many bytes; the code that drops them has waited for the stream.
            unsafe { (api.hipMemcpyAsync)(to, from, bytes, direction as u32, stream.handle()) }
        })
    }
}
