//! Agents: the GPUs, and the CPU that owns host memory.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::Runtime;
use super::runtime::collect;
use super::types::{AgentHandle, IsaHandle, agent_info, device_type, isa_info};
use crate::error::{Error, Result};

/// The frequency of the constant clock where the runtime does not report it: the frequency of most GPUs.
const DEFAULT_CLOCK_HZ: u64 = 100_000_000;

/// A GPU.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The runtime's handle.
    pub handle: AgentHandle,
    /// The marketing name.
    pub name: String,
    /// The short name of its instruction set, such as gfx942.
    pub gfx: String,
    /// The instruction sets that it runs, without features, best first: gfx942, gfx9-4-generic.
    pub isas: Vec<String>,
    /// Ticks per second of the clock that the kernel `spin` counts.
    pub clock_hz: u64,
    /// The most packets of a queue.
    pub max_queue_size: u32,
}

/// The agents that a run uses.
pub struct Agents {
    /// The chosen GPU.
    pub gpu: Agent,
    /// The first CPU.
    pub cpu: AgentHandle,
}

impl Agents {
    /// Chooses GPU number `wanted` and the CPU.
    ///
    /// # Errors
    /// Fails if there is no such GPU, or if the runtime does not describe it.
    pub fn choose(runtime: &Arc<Runtime>, wanted: usize) -> Result<Self> {
        let (status, agents) = collect(|visitor, data| {
            // SAFETY: visitor and data belong together.
            unsafe { (runtime.api.hsa_iterate_agents)(visitor, data) }
        });
        runtime.check("hsa_iterate_agents", status)?;
        let mut gpus = Vec::new();
        let mut cpu = None;
        for agent in agents {
            match runtime.agent_info::<u32>(agent, agent_info::DEVICE)? {
                device_type::GPU => gpus.push(agent),
                device_type::CPU => cpu = cpu.or(Some(agent)),
                _ => {}
            }
        }
        let &gpu = gpus.get(wanted).ok_or(Error::NoGpu {
            wanted,
            found: gpus.len(),
        })?;
        let cpu = cpu.ok_or_else(|| Error::Unexpected("the runtime found no CPU agent".to_owned()))?;
        Ok(Self {
            gpu: Agent::describe(runtime, gpu)?,
            cpu,
        })
    }
}

impl Agent {
    fn describe(runtime: &Runtime, handle: AgentHandle) -> Result<Self> {
        let gfx = runtime.agent_name(handle, agent_info::NAME)?;
        let mut isas = vec![gfx.clone()];
        for isa in runtime.isa_names(handle)? {
            let short = short_isa(&isa).to_owned();
            if !isas.contains(&short) {
                isas.push(short);
            }
        }
        let clock_hz = runtime
            .agent_info::<u64>(handle, agent_info::TIMESTAMP_FREQUENCY)
            .unwrap_or(0);
        Ok(Self {
            handle,
            name: runtime.agent_name(handle, agent_info::PRODUCT_NAME)?,
            gfx,
            isas,
            clock_hz: if clock_hz == 0 { DEFAULT_CLOCK_HZ } else { clock_hz },
            max_queue_size: runtime.agent_info(handle, agent_info::QUEUE_MAX_SIZE)?,
        })
    }
}

impl Runtime {
    /// Returns the value of an agent's attribute, whose type is `T`.
    fn agent_info<T: Copy>(&self, agent: AgentHandle, attribute: u32) -> Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: `value` has the attribute's type.
        let status = unsafe { (self.api.hsa_agent_get_info)(agent, attribute, value.as_mut_ptr().cast()) };
        self.check("hsa_agent_get_info", status)?;
        // SAFETY: the runtime has initialised the value.
        Ok(unsafe { value.assume_init() })
    }

    /// Returns the value of an attribute of type char[64].
    fn agent_name(&self, agent: AgentHandle, attribute: u32) -> Result<String> {
        Ok(text(&self.agent_info::<[u8; 64]>(agent, attribute)?))
    }

    /// Returns the full names of the instruction sets that an agent runs, best first.
    fn isa_names(&self, agent: AgentHandle) -> Result<Vec<String>> {
        let (status, isas) = collect(|visitor, data| {
            // SAFETY: visitor and data belong together.
            unsafe { (self.api.hsa_agent_iterate_isas)(agent, visitor, data) }
        });
        self.check("hsa_agent_iterate_isas", status)?;
        isas.into_iter().map(|isa| self.isa_name(isa)).collect()
    }

    fn isa_name(&self, isa: IsaHandle) -> Result<String> {
        let mut length = 0_u32;
        // SAFETY: the attribute is a u32.
        let status = unsafe { (self.api.hsa_isa_get_info_alt)(isa, isa_info::NAME_LENGTH, (&raw mut length).cast()) };
        self.check("hsa_isa_get_info_alt", status)?;
        // One byte more, because releases differ in whether they count the final NUL.
        let mut name = vec![0_u8; length as usize + 1];
        // SAFETY: `name` is as long as the runtime reported.
        let status = unsafe { (self.api.hsa_isa_get_info_alt)(isa, isa_info::NAME, name.as_mut_ptr().cast()) };
        self.check("hsa_isa_get_info_alt", status)?;
        Ok(text(&name))
    }
}

/// Returns `gfx942` for `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`.
fn short_isa(full: &str) -> &str {
    let processor = full.rsplit_once("--").map_or(full, |(_, processor)| processor);
    processor.split(':').next().unwrap_or(processor)
}

/// Returns the C string in `bytes`.
fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map_or_else(
        |_| String::from_utf8_lossy(bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isa_names_are_shortened() {
        assert_eq!(short_isa("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"), "gfx942");
        assert_eq!(short_isa("amdgcn-amd-amdhsa--gfx9-4-generic"), "gfx9-4-generic");
        assert_eq!(short_isa("gfx1100"), "gfx1100");
    }

    #[test]
    fn names_end_at_their_nul() {
        assert_eq!(text(b"gfx90a\0\0junk"), "gfx90a");
        assert_eq!(text(b"full"), "full");
    }
}
