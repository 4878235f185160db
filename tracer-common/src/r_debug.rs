//! Offsets of the fields of the runtime's list of code objects, `_amdgpu_r_debug`.
//!
//! Source: `struct r_debug` and `struct link_map` of the C library (link.h), whose layouts ROCr adopts
//! (`runtime/hsa-runtime/inc/amd_hsa_elf.h`, `loader/executable.cpp`); the same in 5.2.3, 6.1.2, 6.4.3 and 7.2.4.

/// `r_debug::r_map`: address of the first entry (u64).
pub const R_MAP: usize = 0x08;
/// `r_debug::r_brk`: address of the function that is called around each change (u64).
pub const R_BRK: usize = 0x10;
/// `r_debug::r_state`: the purpose of the call (u32).
pub const R_STATE: usize = 0x18;
/// Value of `r_state`: the change is complete.
pub const RT_CONSISTENT: u32 = 0;
/// Value of `r_state`: entries are about to be added.
pub const RT_ADD: u32 = 1;
/// Value of `r_state`: entries are about to be removed.
pub const RT_DELETE: u32 = 2;

/// `link_map::l_addr`: the value added to the code object's addresses (u64).
pub const L_ADDR: usize = 0;
/// `link_map::l_name`: address of the URI (u64).
pub const L_NAME: usize = 8;
/// `link_map::l_next`: address of the next entry, 0 if there is none (u64).
pub const L_NEXT: usize = 0x18;
/// Bytes of the public part of a `link_map`.
pub const LINK_MAP_LEN: usize = 0x28;
