//! AQL packets: 64 bytes each, little endian.
//!
//! Source: HSA Platform System Architecture Specification 1.2, section 2.9; AMD's vendor packets: `amd_hsa_queue.h`,
//! `hsa_ext_amd.h` (`hsa_amd_ext_kernel_dispatch_packet_t`, API table step 0x0d), `hsa_ven_amd_aqlprofile`, `amd_aql_queue.cpp`
//! (PM4-IB) of ROCR-Runtime.

/// Size of one packet, in bytes.
pub const PACKET_LEN: usize = 64;
/// Signals that a barrier packet has room for.
pub const SIGNALS: usize = 5;
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
    /// Extended kernel dispatch: a grid of clusters of workgroups.
    pub const EXT_KERNEL_DISPATCH: u8 = 3;
}

/// What is fixed in the body of a PM4-IB packet: `amd_aql_pm4_ib_packet_t` of ROCR-Runtime.
mod pm4_ib {
    /// The command, of 4 words: jump to a buffer of commands.
    pub const INDIRECT_BUFFER: u32 = 0xc002_3f00;
    /// Bits of the buffer's address that are 0.
    pub const UNALIGNED: u32 = 3;
    /// The buffer's size, in words.
    pub const WORDS: u32 = 0xf_ffff;
    /// The bit that says that the buffer is valid.
    pub const VALID: u32 = 1 << 23;
    /// The number of words that follow in the packet.
    pub const REMAINING: u32 = 10;
}

/// One packet, as it was in the ring.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The 64 bytes, in memory order.
    pub bytes: [u8; PACKET_LEN],
}

/// The form of a kernel dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchForm {
    /// The specification's packet.
    Kernel,
    /// AMD's packet for a grid of clusters of workgroups. On some GPUs every launch has this form.
    ExtKernel,
}

/// The memory fence scopes of a header (2 bits each), from the narrowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Returns `reserved2` of a dispatch. HIP stores a profiler's correlation id there. An extended dispatch has another signal
    /// there.
    correlation: u64 = 0x30,
    /// Returns the handle of the completion signal (every kind), or 0.
    completion_signal: u64 = COMPLETION_SIGNAL,
}

impl Packet {
    /// A packet of zeros: a vendor packet of no known format. The content of a buffer before it is filled.
    pub const ZERO: Self = Self { bytes: [0; PACKET_LEN] };

    /// Returns a packet of which only the header is known.
    #[must_use]
    pub fn with_header(header: u16) -> Self {
        let mut packet = Self::ZERO;
        packet.bytes[..2].copy_from_slice(&header.to_le_bytes());
        packet
    }

    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[offset..offset + N]);
        out
    }

    /// Returns the signals that a barrier packet waits for, and 0 in unused places. AMD's barrier-value packet has one, where the
    /// others have their first.
    ///
    /// From `hsa_barrier_and_packet_t` (`hsa.h`) and `hsa_amd_barrier_value_packet_t` (`hsa_ext_amd.h`).
    #[must_use]
    pub fn waits_for(&self) -> Option<[u64; SIGNALS]> {
        let used = match (self.kind(), self.amd_format()) {
            (packet_type::BARRIER_AND | packet_type::BARRIER_OR, _) => SIGNALS,
            (packet_type::VENDOR, amd_format::BARRIER_VALUE) => 1,
            _ => return None,
        };
        let mut signals = [0; SIGNALS];
        for (place, signal) in signals.iter_mut().enumerate().take(used) {
            *signal = u64::from_le_bytes(self.at(8 + 8 * place));
        }
        Some(signals)
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
    /// Returns the grid size of a dispatch of this form, in work items (not in workgroups).
    #[must_use]
    pub fn grid(&self, form: DispatchForm) -> [u32; 3] {
        match form {
            DispatchForm::Kernel => [0x0c, 0x10, 0x14].map(|offset| u32::from_le_bytes(self.at(offset))),
            DispatchForm::ExtKernel => {
                let (workgroup, counts, sizes) = (self.workgroup(), self.cluster_count(), self.cluster_size());
                core::array::from_fn(|d| {
                    let groups = counts[d].saturating_mul(sizes[d].into());
                    groups.saturating_mul(workgroup[d].into())
                })
            }
        }
    }
    /// Returns the number of clusters of an extended dispatch.
    #[must_use]
    pub fn cluster_count(&self) -> [u32; 3] {
        let [y, z] = [0x10, 0x12].map(|offset| u16::from_le_bytes(self.at(offset)).into());
        [u32::from_le_bytes(self.at(0x0c)), y, z]
    }
    /// Returns the number of workgroups in a cluster of an extended dispatch.
    #[must_use]
    pub fn cluster_size(&self) -> [u8; 3] {
        self.at(0x14)
    }
    /// Returns the number of dimensions of a dispatch of this form.
    #[must_use]
    pub fn dimensions(&self, form: DispatchForm) -> u16 {
        match form {
            DispatchForm::Kernel => self.setup() & 3,
            // The format has the place of the lower byte.
            DispatchForm::ExtKernel => self.setup() >> 8 & 3,
        }
    }

    /// Returns the form of a dispatch by the header; `None` for a packet of another kind.
    #[must_use]
    pub fn dispatch_form(&self) -> Option<DispatchForm> {
        match (self.kind(), self.amd_format()) {
            (packet_type::KERNEL_DISPATCH, _) => Some(DispatchForm::Kernel),
            (packet_type::VENDOR, amd_format::EXT_KERNEL_DISPATCH) => Some(DispatchForm::ExtKernel),
            _ => None,
        }
    }

    /// Returns the form of a dispatch if the body alone, without a header, can only be a dispatch of that form.
    ///
    /// This is for a slot whose header the GPU has already set back to INVALID. Enough of a dispatch is fixed to distinguish it from
    /// the other kinds: 1 to 3 dimensions with the other bits zero, unused dimensions of size 1, a workgroup of at most 1024 work
    /// items, no empty grid, and an aligned kernel descriptor. An extended dispatch has its format beside the dimensions, where the
    /// other form has zero, so that no body has both forms.
    #[must_use]
    pub fn body_form(&self) -> Option<DispatchForm> {
        let (form, dimensions) = match self.at(2) {
            [dimensions @ 1..=3, 0] => (DispatchForm::Kernel, dimensions),
            [amd_format::EXT_KERNEL_DISPATCH, dimensions @ 1..=3] => (DispatchForm::ExtKernel, dimensions),
            _ => return None,
        };
        let (wg, grid) = (self.workgroup(), self.grid(form));
        let items: u64 = wg.map(u64::from).iter().product();
        let unused_are_one = (1..3).all(|d| d < usize::from(dimensions) || (wg[d] == 1 && grid[d] == 1));
        let is_dispatch = (1..=1024).contains(&items)
            && grid.iter().all(|&g| g > 0)
            && unused_are_one
            // The specification reserves it; AMD's form leaves it empty.
            && self.at::<2>(0x0a) == [0, 0]
            && self.kernel_object() != 0
            && self.kernel_object().is_multiple_of(64);
        is_dispatch.then_some(form)
    }

    /// Returns whether the body alone, without a header, can only be a PM4-IB packet.
    ///
    /// Everything but the buffer and the completion signal is fixed: the format, where an agent dispatch has its type; the command
    /// INDIRECT_BUFFER, where a dispatch has its workgroup, and where barriers and agent dispatches have zeros; the words that remain
    /// in the packet; and zeros behind them. No other kind has such a body, and no body has this and [`Self::body_form`].
    #[must_use]
    pub fn body_is_pm4_ib(&self) -> bool {
        let word = |offset| u32::from_le_bytes(self.at(offset));
        let (command, address, size, remaining) = (word(4), word(8), word(0x10), word(0x14));
        self.at(2) == [amd_format::PM4_IB, 0]
            && command == pm4_ib::INDIRECT_BUFFER
            && address & pm4_ib::UNALIGNED == 0
            && size & pm4_ib::VALID != 0
            && size & pm4_ib::WORDS != 0
            && remaining == pm4_ib::REMAINING
            && self.at::<32>(0x18) == [0; 32]
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
        assert_eq!(p.dispatch_form(), Some(DispatchForm::Kernel));
        assert_eq!(
            (p.workgroup(), p.grid(DispatchForm::Kernel)),
            ([64, 1, 1], [1024, 1, 1])
        );
        assert_eq!((p.kernel_object(), p.completion_signal()), (0x7000_1240, 0xabc0));
    }

    #[test]
    fn a_consumed_dispatch_is_known_by_its_body_and_other_kinds_are_not() {
        let mut p = dispatch();
        p.bytes[0] = packet_type::INVALID;
        assert_eq!(p.body_form(), Some(DispatchForm::Kernel));
        let mut value = Packet::ZERO;
        value.bytes[2] = amd_format::BARRIER_VALUE;
        value.bytes[8..16].copy_from_slice(&0x7f00_0000_1000_u64.to_le_bytes());
        assert_eq!(value.body_form(), None);
        assert_eq!(Packet::ZERO.body_form(), None);
    }

    #[test]
    fn the_signals_of_barriers_lie_where_the_headers_say() {
        let mut p = Packet::ZERO;
        p.bytes[0] = packet_type::BARRIER_AND;
        for (place, byte) in (8..48).step_by(8).enumerate() {
            p.bytes[byte] = place as u8 + 1;
        }
        p.bytes[48] = 0xff;
        assert_eq!(p.waits_for(), Some([1, 2, 3, 4, 5]));
        p.bytes[0] = packet_type::BARRIER_OR;
        assert_eq!(p.waits_for(), Some([1, 2, 3, 4, 5]));
        // The value and the mask follow the only signal.
        p.bytes[0] = packet_type::VENDOR;
        p.bytes[2] = amd_format::BARRIER_VALUE;
        assert_eq!(p.waits_for(), Some([1, 0, 0, 0, 0]));
        assert_eq!((dispatch().waits_for(), pm4_ib().waits_for()), (None, None));
    }

    /// As AqlQueue::ExecutePM4 writes it, after the GPU took it.
    fn pm4_ib() -> Packet {
        let mut p = Packet::ZERO;
        let words = [0x0001_0001, 0xc002_3f00, 0x1000_0008, 0x7f00, 0x0080_0015, 10_u32];
        for (place, word) in p.bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        p.bytes[COMPLETION_SIGNAL..].copy_from_slice(&0xabc0_u64.to_le_bytes());
        p
    }

    #[test]
    fn a_consumed_pm4_ib_is_known_by_its_body_and_other_kinds_are_not() {
        let p = pm4_ib();
        assert_eq!((p.body_is_pm4_ib(), p.body_form()), (true, None));
        assert_eq!(p.completion_signal(), 0xabc0);
        // Each of these is fixed: format, command, alignment, validity, words that remain, zeros.
        for (byte, value) in [
            (2, 2),
            (3, 1),
            (5, 0x40),
            (7, 0),
            (8, 1),
            (0x12, 0),
            (0x14, 9),
            (0x37, 1),
        ] {
            let mut other = p;
            other.bytes[byte] = value;
            assert!(!other.body_is_pm4_ib(), "byte {byte}: {other:?}");
        }
        let mut empty = p;
        empty.bytes[0x10] = 0;
        assert!(!empty.body_is_pm4_ib(), "no words");
        for other in [dispatch(), extended(), Packet::ZERO] {
            assert!(!other.body_is_pm4_ib(), "{other:?}");
        }
    }

    /// An extended dispatch of 5 x 3 x 2 clusters of 2 x 1 x 4 workgroups.
    fn extended() -> Packet {
        let mut p = dispatch();
        p.bytes[..4].copy_from_slice(&[packet_type::VENDOR, 0x15, amd_format::EXT_KERNEL_DISPATCH, 3]);
        p.bytes[4..0x0a].copy_from_slice(&[64, 0, 2, 0, 1, 0]);
        p.bytes[0x0c..0x18].copy_from_slice(&[5, 0, 0, 0, 3, 0, 2, 0, 2, 1, 4, 0]);
        p
    }

    #[test]
    fn the_grid_of_an_extended_dispatch_is_count_times_size_times_workgroup() {
        let p = extended();
        assert_eq!(p.dispatch_form(), Some(DispatchForm::ExtKernel));
        assert_eq!((p.cluster_count(), p.cluster_size()), ([5, 3, 2], [2, 1, 4]));
        assert_eq!(p.grid(DispatchForm::ExtKernel), [5 * 2 * 64, 3 * 2, 2 * 4]);
        assert_eq!(p.dimensions(DispatchForm::ExtKernel), 3);
        assert_eq!((p.kernel_object(), p.completion_signal()), (0x7000_1240, 0xabc0));
    }

    #[test]
    fn a_consumed_body_has_one_form() {
        let mut p = extended();
        p.bytes[0] = packet_type::INVALID;
        assert_eq!(p.body_form(), Some(DispatchForm::ExtKernel));
        for dimensions in 1..=3 {
            let mut plain = dispatch();
            plain.bytes[..4].copy_from_slice(&[packet_type::INVALID, 0x15, dimensions, 0]);
            assert_eq!(plain.body_form(), Some(DispatchForm::Kernel));
            // The bytes of the other form's grid are in the same place.
            plain.bytes[3] = dimensions;
            let other = plain.body_form();
            assert!(other != Some(DispatchForm::Kernel), "{other:?}");
        }
        // A format that is not known.
        p.bytes[2] = 4;
        assert_eq!((p.body_form(), p.dispatch_form()), (None, None));
    }
}
