//! Memory pools and buffers.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use super::agent::Agents;
use super::runtime::collect;
use super::types::{AgentHandle, PoolHandle, pool_info};
use super::{Runtime, Signal};
use crate::error::{Error, Result};

/// Plain numbers, for which every bit pattern is a value.
///
/// # Safety
/// The type must have no padding and no invalid bit patterns.
pub unsafe trait Plain: Copy {}
// SAFETY: a plain number.
unsafe impl Plain for u8 {}
// SAFETY: a plain number.
unsafe impl Plain for u32 {}
// SAFETY: a plain number.
unsafe impl Plain for f32 {}

/// The pools that a dispatcher needs.
pub struct Pools {
    runtime: Arc<Runtime>,
    gpu: AgentHandle,
    cpu: AgentHandle,
    host: PoolHandle,
    kernarg: PoolHandle,
    device: PoolHandle,
}

impl Pools {
    /// Finds the pools of `agents`.
    ///
    /// # Errors
    /// Fails if a kind of pool is missing.
    pub fn find(runtime: &Arc<Runtime>, agents: &Agents) -> Result<Self> {
        let fine = |flags: u32| flags & pool_info::FLAG_FINE_GRAINED != 0;
        let kernarg = |flags: u32| flags & pool_info::FLAG_KERNARG != 0;
        let coarse = |flags: u32| flags & pool_info::FLAG_COARSE_GRAINED != 0;
        let of_cpu = runtime.global_pools(agents.cpu)?;
        let of_gpu = runtime.global_pools(agents.gpu.handle)?;
        let first = |pools: &[(PoolHandle, u32)], fits: &dyn Fn(u32) -> bool| {
            pools.iter().find(|&&(_, flags)| fits(flags)).map(|&(pool, _)| pool)
        };
        let kernarg = first(&of_cpu, &kernarg).ok_or(Error::NoPool("kernel argument"))?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            gpu: agents.gpu.handle,
            cpu: agents.cpu,
            // Some systems have only one fine-grained host pool, and it is the kernarg pool.
            host: first(&of_cpu, &|flags| fine(flags) && flags & pool_info::FLAG_KERNARG == 0).unwrap_or(kernarg),
            kernarg,
            device: first(&of_gpu, &coarse).ok_or(Error::NoPool("coarse-grained GPU"))?,
        })
    }

    /// Allocates fine-grained host memory that the GPU may access.
    ///
    /// # Errors
    /// Fails if the runtime refuses the allocation.
    pub fn host<T: Plain>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.allocate(self.host, self.cpu, len * size_of::<T>())?;
        buffer.allow(self.gpu)?;
        Ok(buffer)
    }

    /// Allocates memory for the arguments of kernels.
    ///
    /// # Errors
    /// Fails if the runtime refuses the allocation.
    pub fn kernarg(&self, bytes: usize) -> Result<Buffer<u8>> {
        let buffer = self.allocate(self.kernarg, self.cpu, bytes)?;
        buffer.allow(self.gpu)?;
        Ok(buffer)
    }

    /// Allocates GPU memory, which the host cannot access.
    ///
    /// # Errors
    /// Fails if the runtime refuses the allocation.
    pub fn device<T: Plain>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        Ok(DeviceBuffer(self.allocate(
            self.device,
            self.gpu,
            len * size_of::<T>(),
        )?))
    }

    fn allocate<T>(&self, pool: PoolHandle, owner: AgentHandle, bytes: usize) -> Result<Buffer<T>> {
        let mut memory = ptr::null_mut();
        // SAFETY: the pool belongs to the runtime; `memory` is writable.
        let status = unsafe { (self.runtime.api.hsa_amd_memory_pool_allocate)(pool, bytes, 0, &raw mut memory) };
        self.runtime.check("hsa_amd_memory_pool_allocate", status)?;
        Ok(Buffer {
            runtime: Arc::clone(&self.runtime),
            owner,
            memory,
            bytes,
            element: PhantomData,
        })
    }
}

/// A block of host memory that the GPU may access too, as elements of type `T`.
///
/// Contents are copied in and out, never borrowed, because the GPU may write at any time.
pub struct Buffer<T> {
    runtime: Arc<Runtime>,
    owner: AgentHandle,
    memory: *mut c_void,
    bytes: usize,
    element: PhantomData<T>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only accessed through methods that copy.
unsafe impl<T> Send for Buffer<T> {}
// SAFETY: as above; no method writes through `&self`.
unsafe impl<T> Sync for Buffer<T> {}

impl<T> Buffer<T> {
    /// Returns the address, which is the same for host and GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory as u64
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes / size_of::<T>()
    }

    /// Starts a copy between blocks of the same size.
    fn copy(&self, from: &Self, to: &Self, done: &Signal) -> Result<()> {
        assert_eq!(from.bytes, to.bytes, "whole blocks are copied");
        // SAFETY: both are blocks of the runtime of that size; the code that drops them has waited for `done`, or exits the
        // program, which makes the runtime wait.
        let status = unsafe {
            (self.runtime.api.hsa_amd_memory_async_copy)(
                to.memory,
                to.owner,
                from.memory,
                from.owner,
                from.bytes,
                0,
                ptr::null(),
                done.handle(),
            )
        };
        self.runtime.check("hsa_amd_memory_async_copy", status)
    }

    /// Allows `agent` to access the block.
    fn allow(&self, agent: AgentHandle) -> Result<()> {
        // SAFETY: one agent is passed, and the block belongs to the runtime.
        let status =
            unsafe { (self.runtime.api.hsa_amd_agents_allow_access)(1, &raw const agent, ptr::null(), self.memory) };
        self.runtime.check("hsa_amd_agents_allow_access", status)
    }
}

impl<T: Plain> Buffer<T> {
    /// Replaces the contents.
    ///
    /// # Panics
    /// Panics if `elements` does not have as many elements as the buffer.
    pub fn write(&mut self, elements: &[T]) {
        assert_eq!(elements.len(), self.len(), "the whole buffer is written");
        // SAFETY: the block holds that many elements, and no reference into it exists.
        unsafe { ptr::copy_nonoverlapping(elements.as_ptr(), self.memory.cast(), elements.len()) };
    }

    /// Returns a copy of the contents. The caller has waited for the GPU's work on them.
    #[must_use]
    pub fn read(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.len());
        // SAFETY: the block holds that many elements of a type without invalid values, and the vector has room for them.
        unsafe {
            ptr::copy_nonoverlapping(self.memory.cast::<T>(), elements.as_mut_ptr(), self.len());
            elements.set_len(self.len());
        }
        elements
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by the runtime and freed once.
        unsafe { (self.runtime.api.hsa_amd_memory_pool_free)(self.memory) };
    }
}

/// A block of GPU memory, as elements of type `T`. Only kernels and copies can access it.
pub struct DeviceBuffer<T>(Buffer<T>);

impl<T> DeviceBuffer<T> {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Returns the runtime that the block belongs to.
    pub(super) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// Returns the address on the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Starts a copy of `from` into the block. The copy decrements `done` when it is complete.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    ///
    /// # Panics
    /// Panics if the blocks differ in size.
    pub fn copy_from(&self, from: &Buffer<T>, done: &Signal) -> Result<()> {
        self.0.copy(from, &self.0, done)
    }

    /// Starts a copy of the block into `to`. The copy decrements `done` when it is complete.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    ///
    /// # Panics
    /// Panics if the blocks differ in size.
    pub fn copy_to(&self, to: &mut Buffer<T>, done: &Signal) -> Result<()> {
        self.0.copy(&self.0, to, done)
    }
}

impl Runtime {
    /// Returns the pools of global memory of `agent` that programs may allocate from, with their flags.
    fn global_pools(&self, agent: AgentHandle) -> Result<Vec<(PoolHandle, u32)>> {
        let (found, pools) = collect(|visitor, data| {
            // SAFETY: visitor and data belong together.
            unsafe { (self.api.hsa_amd_agent_iterate_memory_pools)(agent, visitor, data) }
        });
        self.check("hsa_amd_agent_iterate_memory_pools", found)?;
        let mut usable = Vec::new();
        for pool in pools {
            if self.pool_info(pool, pool_info::SEGMENT)? == pool_info::SEGMENT_GLOBAL
                && self.pool_info(pool, pool_info::ALLOC_ALLOWED)? != 0
            {
                usable.push((pool, self.pool_info(pool, pool_info::GLOBAL_FLAGS)?));
            }
        }
        Ok(usable)
    }

    /// Returns the value of a pool's attribute of at most 32 bits.
    fn pool_info(&self, pool: PoolHandle, attribute: u32) -> Result<u32> {
        let mut value = 0_u32;
        // SAFETY: the attributes that this module queries are u32 or bool.
        let status = unsafe { (self.api.hsa_amd_memory_pool_get_info)(pool, attribute, (&raw mut value).cast()) };
        self.check("hsa_amd_memory_pool_get_info", status)?;
        Ok(value)
    }
}
