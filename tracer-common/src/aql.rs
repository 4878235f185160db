//! AQL packets: 64 bytes each, little endian.
//!
//! Source: HSA Platform System Architecture Specification 1.2, section 2.9; AMD's vendor packets: `amd_hsa_queue.h`,
//! `hsa_ven_amd_aqlprofile`, `amd_aql_queue.cpp` (PM4-IB) of ROCR-Runtime.

/// Size of one packet, in bytes.
pub const PACKET_LEN: usize = 64;
/// Offset of the handle of the completion signal in a packet of any kind (u64).
pub const COMPLETION_SIGNAL: usize = 0x38;

/// The type in the low 8 bits of a packet's header.
pub mod packet_type {
    /// Vendor specific: the AMD format follows in byte 2.
    pub const VENDOR: u8 = 0;
    /// The slot contains no packet: not written yet, or consumed.
    pub const INVALID: u8 = 1;
    /// Kernel dispatch.
    pub const KERNEL_DISPATCH: u8 = 2;
    /// Barrier-AND.
    pub const BARRIER_AND: u8 = 3;
    /// Agent dispatch.
    pub const AGENT_DISPATCH: u8 = 4;
    /// Barrier-OR.
    pub const BARRIER_OR: u8 = 5;
}

/// AMD's vendor packet formats (byte 2 of a vendor-specific packet).
pub mod amd_format {
    /// PM4 indirect buffer.
    pub const PM4_IB: u8 = 1;
    /// Barrier on a signal's value.
    pub const BARRIER_VALUE: u8 = 2;
}

/// One packet, as it was in the ring.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The 64 bytes, in memory order.
    pub bytes: [u8; PACKET_LEN],
}

/// The memory fence scopes of a header (2 bits each).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// No fence.
    None,
    /// This agent.
    Agent,
    /// The whole system.
    System,
    /// Value 3, which the specification reserves.
    Reserved,
}

/// Declares getters of a packet's fields: the name, type and offset of each.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $offset:expr,)*) => {
        impl Packet {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> $type {
                    <$type>::from_le_bytes(self.at($offset))
                }
            )*
        }
    };
}

fields! {
    /// Returns the 16-bit header.
    header: u16 = 0,
    /// Returns the packet type: one of [`packet_type`], or a value that the specification does not define.
    kind: u8 = 0,
    /// Returns the second 16-bit word: dimensions of a dispatch, type of an agent dispatch.
    setup: u16 = 2,
    /// Returns the format of an AMD vendor packet: one of [`amd_format`].
    amd_format: u8 = 2,
    /// Returns the private (scratch) segment of a dispatch, in bytes per work item.
    private_segment: u32 = 0x18,
    /// Returns the group (LDS) segment of a dispatch, in bytes per workgroup.
    group_segment: u32 = 0x1c,
    /// Returns the address of the kernel descriptor of a dispatch.
    kernel_object: u64 = 0x20,
    /// Returns the address of the kernel arguments of a dispatch.
    kernarg: u64 = 0x28,
    /// Returns `reserved2` of a dispatch. HIP stores a profiler's correlation id there.
    correlation: u64 = 0x30,
    /// Returns the handle of the completion signal (every kind), or 0.
    completion_signal: u64 = COMPLETION_SIGNAL,
}

impl Packet {
    /// A packet of zeros: a vendor packet of no known format. The content of a buffer before it is filled.
    pub const ZERO: Self = Self { bytes: [0; PACKET_LEN] };

    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[offset..offset + N]);
        out
    }

    /// Returns whether the barrier bit is set.
    #[must_use]
    pub fn barrier(&self) -> bool {
        self.header() & 1 << 8 != 0
    }
    /// Returns the acquire fence scope.
    #[must_use]
    pub fn acquire(&self) -> Scope {
        scope(self.header() >> 9)
    }
    /// Returns the release fence scope.
    #[must_use]
    pub fn release(&self) -> Scope {
        scope(self.header() >> 11)
    }
    /// Returns the workgroup size of a dispatch, in work items.
    #[must_use]
    pub fn workgroup(&self) -> [u16; 3] {
        [4, 6, 8].map(|offset| u16::from_le_bytes(self.at(offset)))
    }
    /// Returns the grid size of a dispatch, in work items (not in workgroups).
    #[must_use]
    pub fn grid(&self) -> [u32; 3] {
        [0x0c, 0x10, 0x14].map(|offset| u32::from_le_bytes(self.at(offset)))
    }

    /// Returns whether the body alone, without a header, can only be a kernel dispatch.
    ///
    /// This is for a slot whose header the GPU has already set back to INVALID. The specification fixes enough of a dispatch to
    /// distinguish it from the other kinds: 1 to 3 dimensions with the other bits zero, unused dimensions of size 1, a workgroup of
    /// at most 1024 work items, no larger than the grid allows, and an aligned kernel descriptor.
    #[must_use]
    pub fn body_is_dispatch(&self) -> bool {
        let setup = self.setup();
        let (wg, grid) = (self.workgroup(), self.grid());
        let items: u64 = wg.map(u64::from).iter().product();
        let unused_are_one = (1..3).all(|d| d < usize::from(setup) || (wg[d] == 1 && grid[d] == 1));
        (1..=3).contains(&setup)
            && (1..=1024).contains(&items)
            && grid.iter().all(|&g| g > 0)
            && unused_are_one
            && self.at::<2>(0x0a) == [0, 0]
            && self.kernel_object() != 0
            && self.kernel_object().is_multiple_of(64)
    }
}

impl core::fmt::Debug for Packet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Packet(")?;
        for word in self.bytes.chunks_exact(4) {
            write!(f, " {:08x}", u32::from_le_bytes([word[0], word[1], word[2], word[3]]))?;
        }
        write!(f, " )")
    }
}

fn scope(bits: u16) -> Scope {
    [Scope::None, Scope::Agent, Scope::System, Scope::Reserved][usize::from(bits & 3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch() -> Packet {
        let mut p = Packet::ZERO;
        p.bytes[..4].copy_from_slice(&[0x02, 0x15, 1, 0]);
        p.bytes[4..0x0a].copy_from_slice(&[64, 0, 1, 0, 1, 0]);
        p.bytes[0x0c..0x18].copy_from_slice(&[0, 4, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        p.bytes[0x20..0x28].copy_from_slice(&0x7000_1240_u64.to_le_bytes());
        p.bytes[0x38..].copy_from_slice(&0xabc0_u64.to_le_bytes());
        p
    }

    #[test]
    fn fields_of_a_dispatch_lie_where_the_specification_says() {
        let p = dispatch();
        assert_eq!((p.kind(), p.barrier()), (packet_type::KERNEL_DISPATCH, true));
        assert_eq!((p.acquire(), p.release()), (Scope::System, Scope::System));
        assert_eq!((p.workgroup(), p.grid()), ([64, 1, 1], [1024, 1, 1]));
        assert_eq!((p.kernel_object(), p.completion_signal()), (0x7000_1240, 0xabc0));
    }

    #[test]
    fn a_consumed_dispatch_is_known_by_its_body_and_other_kinds_are_not() {
        let mut p = dispatch();
        p.bytes[0] = packet_type::INVALID;
        assert!(p.body_is_dispatch());
        let mut pm4 = Packet::ZERO;
        pm4.bytes[2] = amd_format::PM4_IB;
        // IT_INDIRECT_BUFFER with its address, as AqlQueue::ExecutePM4 writes it.
        pm4.bytes[4..8].copy_from_slice(&0xc002_3f00_u32.to_le_bytes());
        pm4.bytes[8..12].copy_from_slice(&0x0010_0001_u32.to_le_bytes());
        assert!(!pm4.body_is_dispatch());
        let mut value = Packet::ZERO;
        value.bytes[2] = amd_format::BARRIER_VALUE;
        value.bytes[8..16].copy_from_slice(&0x7f00_0000_1000_u64.to_le_bytes());
        assert!(!value.body_is_dispatch());
        assert!(!Packet::ZERO.body_is_dispatch());
    }
}
