//! GPU memory of another process.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::str::FromStr;
use std::sync::Arc;

use super::memory::DeviceBuffer;
use super::{Agent, Runtime};
use crate::error::Result;

/// `hsa_amd_ipc_memory_t`: the name of a block of memory among all processes. As text, 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle(pub [u32; 8]);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:08x}"))
    }
}

impl FromStr for Handle {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let refused = || format!("{text} is no handle: 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(refused());
        }
        let mut words = [0; 8];
        for (at, word) in words.iter_mut().enumerate() {
            *word = u32::from_str_radix(&text[8 * at..8 * at + 8], 16).map_err(|_| refused())?;
        }
        Ok(Self(words))
    }
}

impl<T> DeviceBuffer<T> {
    /// Returns the handle by which other processes can attach the block.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn handle(&self) -> Result<Handle> {
        let mut handle = Handle::default();
        let runtime = self.runtime();
        // SAFETY: the block belongs to the runtime and has that size; `handle` is writable.
        let status = unsafe {
            (runtime.api.hsa_amd_ipc_memory_create)(self.address() as *mut c_void, self.bytes(), &raw mut handle.0)
        };
        runtime.check("hsa_amd_ipc_memory_create", status)?;
        Ok(handle)
    }
}

/// A block of another process's GPU memory. Only kernels can access it.
pub struct Attached {
    runtime: Arc<Runtime>,
    memory: *mut c_void,
}

impl Attached {
    /// Attaches a block of that many bytes, for one GPU.
    ///
    /// # Errors
    /// Fails if there is no such block, or the runtime refuses the call.
    pub fn new(runtime: &Arc<Runtime>, gpu: &Agent, handle: &Handle, bytes: usize) -> Result<Self> {
        let mut memory = ptr::null_mut();
        // SAFETY: one agent is passed, and `memory` is writable.
        let status = unsafe {
            (runtime.api.hsa_amd_ipc_memory_attach)(
                &raw const handle.0,
                bytes,
                1,
                &raw const gpu.handle,
                &raw mut memory,
            )
        };
        runtime.check("hsa_amd_ipc_memory_attach", status)?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            memory,
        })
    }

    /// Returns the address on the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory as u64
    }

    /// Detaches the block.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn detach(self) -> Result<()> {
        // SAFETY: attached once, and not used afterwards.
        let status = unsafe { (self.runtime.api.hsa_amd_ipc_memory_detach)(self.memory) };
        self.runtime.check("hsa_amd_ipc_memory_detach", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_a_command_line() {
        let handle = Handle([1, 2, 0xffff_ffff, 4, 5, 6, 7, 0x8000_0000]);
        assert_eq!(handle.to_string().parse(), Ok(handle));
        for text in ["", "12", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<Handle>().is_err(), "{text}");
        }
    }
}
