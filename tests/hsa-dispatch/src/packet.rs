//! Packets of the Architected Queuing Language (hsa.h; `hsa_ext_amd.h` for the vendor's): 64 bytes each.

use crate::hsa::executable::Kernel;
use crate::hsa::types::SignalHandle;

/// The size of a packet in bytes, and the alignment of a ring.
pub const PACKET_BYTES: usize = 64;

/// Packet types (`hsa_packet_type_t`), the low byte of the header.
const VENDOR_SPECIFIC: u8 = 0;
const INVALID: u8 = 1;
const KERNEL_DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const AGENT_DISPATCH: u8 = 4;
const BARRIER_OR: u8 = 5;

/// Header bits (`hsa_packet_header_t`): the barrier bit, then the two fence scopes.
const BARRIER_BIT: u32 = 1 << 8;
const SYSTEM_FENCES: u32 = 2 << 9 | 2 << 11;

/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE` and `HSA_AMD_PACKET_TYPE_EXT_KERNEL_DISPATCH`: the third byte of a vendor packet.
const FORMAT_BARRIER_VALUE: u32 = 2;
const FORMAT_EXT_KERNEL_DISPATCH: u32 = 3;

/// Offsets in 32-bit words.
mod word {
    /// Header (16 bits), then setup or vendor format.
    pub const HEADER: usize = 0;
    /// Kernel dispatch: sizes of a workgroup (x, y, z: 16 bits each).
    pub const WORKGROUP: usize = 1;
    /// Kernel dispatch: sizes of the grid (x, y, z).
    pub const GRID: usize = 3;
    /// Extended kernel dispatch: clusters (x: 32 bits; y, z: 16 bits each), then workgroups in a cluster (x, y, z: 8 bits each).
    pub const CLUSTERS: usize = 3;
    /// Kernel dispatch: private and group segment bytes.
    pub const SEGMENTS: usize = 6;
    /// Kernel dispatch: address of the kernel descriptor.
    pub const KERNEL_OBJECT: usize = 8;
    /// Kernel dispatch: address of the arguments.
    pub const KERNARG: usize = 10;
    /// Barrier: five signals. Barrier value: signal, value, mask, condition.
    pub const DEPENDENCIES: usize = 2;
    /// All kinds: signal to decrement on completion.
    pub const COMPLETION: usize = 14;
}

/// The operation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Runs a kernel.
    Dispatch,
    /// Runs a kernel on a grid of clusters of workgroups (AMD).
    ExtDispatch,
    /// Waits until all of up to five signals are zero.
    BarrierAnd,
    /// Waits until one of up to five signals is zero.
    BarrierOr,
    /// Waits until a signal's value fulfils a condition (AMD).
    BarrierValue,
    /// Anything else.
    Other,
}

impl Kind {
    /// Returns the name in summaries and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "kernel_dispatch",
            Self::ExtDispatch => "ext_kernel_dispatch",
            Self::BarrierAnd => "barrier_and",
            Self::BarrierOr => "barrier_or",
            Self::BarrierValue => "barrier_value",
            Self::Other => "unknown",
        }
    }
}

/// The size of a launch in its only dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Work-items in the grid; need not be a multiple of the workgroup.
    pub items: u32,
    /// Work-items in a workgroup.
    pub workgroup: u16,
}

/// The size of an extended launch in its only dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// Clusters in the grid.
    pub count: u32,
    /// Workgroups in a cluster.
    pub size: u8,
    /// Work-items in a workgroup.
    pub workgroup: u16,
}

impl Clusters {
    /// Returns the work-items of the grid.
    #[must_use]
    pub const fn items(self) -> u32 {
        self.count * self.size as u32 * self.workgroup as u32
    }
}

/// Condition of a barrier-value packet (`hsa_signal_condition_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `HSA_SIGNAL_CONDITION_EQ`.
    Equal = 0,
    /// `HSA_SIGNAL_CONDITION_GTE`.
    AtLeast = 3,
}

/// One packet, ready to be copied to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Packet {
    words: [u32; PACKET_BYTES / 4],
}

const _: () = assert!(size_of::<Packet>() == PACKET_BYTES);

impl Packet {
    /// Returns a packet of type `kind` with system-scope fences.
    const fn new(kind: u8) -> Self {
        let mut words = [0; PACKET_BYTES / 4];
        words[word::HEADER] = kind as u32 | SYSTEM_FENCES;
        Self { words }
    }

    /// Returns a packet that launches `kernel` with the arguments at `kernarg`.
    #[must_use]
    pub fn dispatch(kernel: &Kernel, grid: Grid, kernarg: u64) -> Self {
        let mut packet = Self::new(KERNEL_DISPATCH);
        let dimensions = 1;
        packet.words[word::HEADER] |= dimensions << 16;
        packet.words[word::WORKGROUP] = u32::from(grid.workgroup) | 1 << 16;
        packet.words[word::WORKGROUP + 1] = 1;
        packet.words[word::GRID] = grid.items;
        packet.words[word::GRID + 1] = 1;
        packet.words[word::GRID + 2] = 1;
        packet.words[word::SEGMENTS] = kernel.private_bytes;
        packet.words[word::SEGMENTS + 1] = kernel.group_bytes;
        packet.set(word::KERNEL_OBJECT, kernel.object);
        packet.set(word::KERNARG, kernarg);
        packet
    }

    /// Returns a packet that launches `kernel` on clusters of workgroups, with the arguments at `kernarg` (AMD's vendor packet).
    #[must_use]
    pub fn ext_dispatch(kernel: &Kernel, clusters: Clusters, kernarg: u64) -> Self {
        let grid = Grid {
            items: clusters.count,
            workgroup: clusters.workgroup,
        };
        let mut packet = Self::dispatch(kernel, grid, kernarg);
        // The format takes the place of the dimensions, which are in the byte after it.
        packet.words[word::HEADER] = SYSTEM_FENCES | FORMAT_EXT_KERNEL_DISPATCH << 16 | 1 << 24;
        packet.words[word::CLUSTERS + 1] = 1 | 1 << 16;
        packet.words[word::CLUSTERS + 2] = u32::from(clusters.size) | 1 << 8 | 1 << 16;
        packet
    }

    /// Returns a packet that waits until all of `signals` are zero.
    #[must_use]
    pub fn barrier_and(signals: &[SignalHandle]) -> Self {
        Self::barrier(BARRIER_AND, signals)
    }

    /// Returns a packet that waits until one of `signals` is zero.
    #[must_use]
    pub fn barrier_or(signals: &[SignalHandle]) -> Self {
        Self::barrier(BARRIER_OR, signals)
    }

    fn barrier(kind: u8, signals: &[SignalHandle]) -> Self {
        assert!(signals.len() <= 5, "a barrier packet has room for five signals");
        let mut packet = Self::new(kind);
        for (i, signal) in signals.iter().enumerate() {
            packet.set(word::DEPENDENCIES + 2 * i, signal.handle);
        }
        packet
    }

    /// Returns a packet that waits until `signal & mask` fulfils `condition` with `value` (AMD's vendor packet).
    #[must_use]
    pub fn barrier_value(signal: SignalHandle, mask: i64, condition: Condition, value: i64) -> Self {
        let mut packet = Self::new(VENDOR_SPECIFIC);
        packet.words[word::HEADER] |= FORMAT_BARRIER_VALUE << 16;
        packet.set(word::DEPENDENCIES, signal.handle);
        packet.set(word::DEPENDENCIES + 2, value.cast_unsigned());
        packet.set(word::DEPENDENCIES + 4, mask.cast_unsigned());
        packet.words[word::DEPENDENCIES + 6] = condition as u32;
        packet
    }

    /// Returns a packet of a type that does not exist. The GPU must refuse it.
    #[must_use]
    pub fn of_no_type() -> Self {
        Self::new(u8::MAX)
    }

    /// Returns the packet, changed to decrement `signal` on completion.
    #[must_use]
    pub fn completing(mut self, signal: SignalHandle) -> Self {
        self.set(word::COMPLETION, signal.handle);
        self
    }

    /// Returns the packet, changed to start only when all packets before it in its queue are complete.
    #[must_use]
    pub fn after_all(mut self) -> Self {
        self.words[word::HEADER] |= BARRIER_BIT;
        self
    }

    /// Returns header and setup, the word that makes a packet valid. It must be stored last.
    #[must_use]
    pub const fn header(&self) -> u32 {
        self.words[word::HEADER]
    }

    /// Returns everything after [`Self::header`].
    #[must_use]
    pub fn body(&self) -> &[u32] {
        &self.words[1..]
    }

    /// Returns the operation of the packet.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.words[word::HEADER].to_le_bytes() {
            [KERNEL_DISPATCH, ..] => Kind::Dispatch,
            [BARRIER_AND, ..] => Kind::BarrierAnd,
            [BARRIER_OR, ..] => Kind::BarrierOr,
            [VENDOR_SPECIFIC, _, format, _] if u32::from(format) == FORMAT_BARRIER_VALUE => Kind::BarrierValue,
            [VENDOR_SPECIFIC, _, format, _] if u32::from(format) == FORMAT_EXT_KERNEL_DISPATCH => Kind::ExtDispatch,
            [VENDOR_SPECIFIC | INVALID | AGENT_DISPATCH, ..] => Kind::Other,
            _ => Kind::Other,
        }
    }

    /// Returns the address of a dispatch's kernel descriptor.
    #[must_use]
    pub fn kernel_object(&self) -> u64 {
        self.get(word::KERNEL_OBJECT)
    }

    /// Returns the address of a dispatch's arguments.
    #[must_use]
    pub fn kernarg(&self) -> u64 {
        self.get(word::KERNARG)
    }

    /// Returns the work-items of a dispatch: x, y, z.
    #[must_use]
    pub fn grid(&self) -> [u32; 3] {
        let [x, y, z] = std::array::from_fn(|at| self.words[word::GRID + at]);
        if self.kind() != Kind::ExtDispatch {
            return [x, y, z];
        }
        let (counts, workgroup) = ([x, y & 0xffff, y >> 16], self.workgroup());
        std::array::from_fn(|d| counts[d] * u32::from(z.to_le_bytes()[d]) * workgroup[d])
    }

    /// Returns the work-items of a dispatch's workgroup: x, y, z.
    #[must_use]
    pub fn workgroup(&self) -> [u32; 3] {
        let xy = self.words[word::WORKGROUP];
        [xy & 0xffff, xy >> 16, self.words[word::WORKGROUP + 1] & 0xffff]
    }

    /// Returns the signal that the packet decrements on completion; 0 is none.
    #[must_use]
    pub fn completion(&self) -> u64 {
        self.get(word::COMPLETION)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the value is split into its halves")]
    fn set(&mut self, at: usize, value: u64) {
        self.words[at] = value as u32;
        self.words[at + 1] = (value >> 32) as u32;
    }

    fn get(&self, at: usize) -> u64 {
        u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(packet: &Packet) -> Vec<u8> {
        std::iter::once(&packet.header())
            .chain(packet.body())
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    #[test]
    fn a_dispatch_lies_as_in_hsa_h() {
        let kernel = Kernel {
            object: 0x1122_3344_5566_7788,
            kernarg_bytes: 28,
            group_bytes: 0x40,
            private_bytes: 0x20,
        };
        let packet = Packet::dispatch(
            &kernel,
            Grid {
                items: 1000,
                workgroup: 96,
            },
            0xaabb_ccdd_eeff_0011,
        )
        .completing(SignalHandle { handle: 0x99 })
        .after_all();
        let raw = bytes(&packet);
        assert_eq!(
            raw[..4],
            [2, 0b1_0101, 1, 0],
            "type 2, barrier bit, system scopes, one dimension"
        );
        assert_eq!(raw[4..10], [96, 0, 1, 0, 1, 0]);
        assert_eq!(raw[0x0c..0x10], 1000_u32.to_le_bytes());
        assert_eq!(raw[0x18..0x20], [0x20, 0, 0, 0, 0x40, 0, 0, 0]);
        assert_eq!(raw[0x20..0x28], kernel.object.to_le_bytes());
        assert_eq!(raw[0x28..0x30], 0xaabb_ccdd_eeff_0011_u64.to_le_bytes());
        assert_eq!(raw[0x38..0x40], 0x99_u64.to_le_bytes());
        assert_eq!(packet.kind(), Kind::Dispatch);
        assert_eq!((packet.grid(), packet.workgroup()), ([1000, 1, 1], [96, 1, 1]));
        assert_eq!((packet.kernel_object(), packet.completion()), (kernel.object, 0x99));
    }

    #[test]
    fn barriers_hold_their_signals() {
        let signals = [SignalHandle { handle: 7 }, SignalHandle { handle: 8 }];
        let raw = bytes(&Packet::barrier_or(&signals));
        assert_eq!(raw[0], 5);
        assert_eq!((raw[8], raw[16], raw[24]), (7, 8, 0));
        assert_eq!(Packet::barrier_and(&signals).kind(), Kind::BarrierAnd);
    }

    #[test]
    fn a_barrier_value_lies_as_in_hsa_ext_amd_h() {
        let packet = Packet::barrier_value(SignalHandle { handle: 7 }, 0xff, Condition::AtLeast, 3);
        let raw = bytes(&packet);
        assert_eq!((raw[0], raw[2]), (0, 2));
        assert_eq!((raw[0x08], raw[0x10], raw[0x18], raw[0x20]), (7, 3, 0xff, 3));
        assert_eq!(packet.kind(), Kind::BarrierValue);
    }

    #[test]
    fn an_extended_dispatch_lies_as_in_hsa_ext_amd_h() {
        let kernel = Kernel {
            object: 0x1122_3344_5566_7788,
            kernarg_bytes: 28,
            group_bytes: 0x40,
            private_bytes: 0x20,
        };
        let clusters = Clusters {
            count: 5,
            size: 2,
            workgroup: 64,
        };
        let packet = Packet::ext_dispatch(&kernel, clusters, 0x77).completing(SignalHandle { handle: 0x99 });
        let raw = bytes(&packet);
        assert_eq!((raw[0], raw[2], raw[3]), (0, 3, 1));
        assert_eq!(
            raw[4..0x18],
            [64, 0, 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 1, 0, 2, 1, 1, 0]
        );
        assert_eq!(raw[0x18..0x20], [0x20, 0, 0, 0, 0x40, 0, 0, 0]);
        assert_eq!((raw[0x28], raw[0x38]), (0x77, 0x99));
        assert_eq!(
            (packet.kind(), packet.grid()),
            (Kind::ExtDispatch, [clusters.items(), 1, 1])
        );
    }

    #[test]
    fn an_unknown_type_is_other() {
        assert_eq!(Packet::of_no_type().kind(), Kind::Other);
    }
}
