//! AQL packets: the 64 bytes of the HSA specification, and AMD's vendor formats.

/// The bytes of a packet in the ring.
pub type RawPacket = [u8; 64];

/// The size of a packet.
pub const PACKET_BYTES: u64 = 64;

/// The header of a slot that holds no packet. The processor writes it when it has taken a packet.
pub const INVALID_HEADER: u16 = 1;

const VENDOR_SPECIFIC: u8 = 0;
const INVALID: u8 = 1;
const KERNEL_DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const AGENT_DISPATCH: u8 = 4;
const BARRIER_OR: u8 = 5;

/// Formats of AMD's vendor-specific packets (byte 2).
const AMD_PM4_IB: u8 = 1;
const AMD_BARRIER_VALUE: u8 = 2;
const AMD_EXT_KERNEL_DISPATCH: u8 = 3;

/// A decoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The slot is not filled.
    Invalid,
    /// Runs a kernel.
    KernelDispatch(KernelDispatch),
    /// AMD: waits until a signal is 0, then runs a kernel on a grid of clusters of work-groups.
    ExtKernelDispatch {
        /// The kernel; its grid is count x size x work-group.
        dispatch: KernelDispatch,
        /// Signal to wait for; 0 for none.
        dependency: u64,
    },
    /// Waits until all signals are 0.
    BarrierAnd(Barrier),
    /// Waits until one signal is 0.
    BarrierOr(Barrier),
    /// Calls a function of the agent; completed without effect.
    AgentDispatch {
        /// Signal to complete.
        completion_signal: u64,
    },
    /// AMD: runs an indirect buffer of PM4 commands.
    Pm4Ib {
        /// Address of the commands.
        address: u64,
        /// Number of words.
        words: u32,
        /// Signal to complete.
        completion_signal: u64,
    },
    /// AMD: waits until a signal's value satisfies a condition.
    BarrierValue(BarrierValue),
    /// AMD: a vendor format this processor does not know.
    UnknownVendor {
        /// The format byte.
        format: u8,
    },
    /// A packet type that the specification does not define.
    Unknown {
        /// The type byte.
        kind: u8,
    },
}

/// Fields of a kernel dispatch packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDispatch {
    /// Dimensions of the grid, from the setup field.
    pub dimensions: u16,
    /// Work-items in a work-group.
    pub workgroup: [u16; 3],
    /// Work-items in the grid.
    pub grid: [u32; 3],
    /// Bytes of scratch memory per work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS per work-group.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the arguments.
    pub kernarg_address: u64,
    /// Signal to complete.
    pub completion_signal: u64,
}

/// Fields of the barrier packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Signals to wait for; 0 for none.
    pub dependencies: [u64; 5],
    /// Signal to complete.
    pub completion_signal: u64,
}

/// Fields of AMD's barrier-value packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierValue {
    /// Signal to read.
    pub signal: u64,
    /// Value to compare with.
    pub value: i64,
    /// Bits of the signal's value that are compared.
    pub mask: i64,
    /// hsa_signal_condition_t: 0 eq, 1 ne, 2 lt, 3 gte.
    pub condition: u32,
    /// Signal to complete.
    pub completion_signal: u64,
}

impl BarrierValue {
    /// Returns whether the signal's value lets the packet pass; `None` for a condition that does not exist.
    pub fn passes(&self, signal: i64) -> Option<bool> {
        let masked = signal & self.mask;
        match self.condition {
            0 => Some(masked == self.value),
            1 => Some(masked != self.value),
            2 => Some(masked < self.value),
            3 => Some(masked >= self.value),
            _ => None,
        }
    }
}

fn u16_at(bytes: &RawPacket, at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u32_at(bytes: &RawPacket, at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &RawPacket, at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Returns whether a producer has filled this slot.
pub fn is_filled(bytes: &RawPacket) -> bool {
    bytes[0] != INVALID
}

impl Packet {
    /// Decodes the bytes of a slot.
    pub fn decode(bytes: &RawPacket) -> Self {
        let completion_signal = u64_at(bytes, 0x38);
        let barrier = || Barrier {
            dependencies: std::array::from_fn(|i| u64_at(bytes, 8 + 8 * i)),
            completion_signal,
        };
        let dispatch = |dimensions: u16, grid: [u32; 3]| KernelDispatch {
            dimensions: dimensions & 3,
            workgroup: std::array::from_fn(|i| u16_at(bytes, 4 + 2 * i)),
            grid,
            private_segment_size: u32_at(bytes, 0x18),
            group_segment_size: u32_at(bytes, 0x1c),
            kernel_object: u64_at(bytes, 0x20),
            kernarg_address: u64_at(bytes, 0x28),
            completion_signal,
        };
        match bytes[0] {
            INVALID => Self::Invalid,
            KERNEL_DISPATCH => {
                let grid = std::array::from_fn(|i| u32_at(bytes, 0xc + 4 * i));
                Self::KernelDispatch(dispatch(u16_at(bytes, 2), grid))
            }
            BARRIER_AND => Self::BarrierAnd(barrier()),
            BARRIER_OR => Self::BarrierOr(barrier()),
            AGENT_DISPATCH => Self::AgentDispatch { completion_signal },
            VENDOR_SPECIFIC => match bytes[2] {
                AMD_PM4_IB => Self::Pm4Ib {
                    // An INDIRECT_BUFFER command follows the header.
                    address: u64_at(bytes, 8) & !3,
                    words: u32_at(bytes, 0x10) & 0xf_ffff,
                    completion_signal,
                },
                AMD_BARRIER_VALUE => Self::BarrierValue(BarrierValue {
                    signal: u64_at(bytes, 8),
                    value: u64_at(bytes, 0x10) as i64,
                    mask: u64_at(bytes, 0x18) as i64,
                    condition: u32_at(bytes, 0x20),
                    completion_signal,
                }),
                AMD_EXT_KERNEL_DISPATCH => {
                    let counts = [
                        u32_at(bytes, 0xc),
                        u16_at(bytes, 0x10).into(),
                        u16_at(bytes, 0x12).into(),
                    ];
                    let grid = std::array::from_fn(|i| {
                        let groups = counts[i].saturating_mul(bytes[0x14 + i].into());
                        groups.saturating_mul(u16_at(bytes, 4 + 2 * i).into())
                    });
                    Self::ExtKernelDispatch {
                        dispatch: dispatch(bytes[3].into(), grid),
                        dependency: u64_at(bytes, 0x30),
                    }
                }
                format => Self::UnknownVendor { format },
            },
            kind => Self::Unknown { kind },
        }
    }

    /// Returns the packet's name in the truth log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::KernelDispatch(_) => "kernel_dispatch",
            Self::ExtKernelDispatch { .. } => "ext_kernel_dispatch",
            Self::BarrierAnd(_) => "barrier_and",
            Self::BarrierOr(_) => "barrier_or",
            Self::AgentDispatch { .. } => "agent_dispatch",
            Self::Pm4Ib { .. } => "pm4_ib",
            Self::BarrierValue(_) => "barrier_value",
            Self::UnknownVendor { .. } => "unknown_vendor",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Returns the signal that the packet completes, if the packet has that field.
    pub fn completion_signal(&self) -> Option<u64> {
        match self {
            Self::Invalid | Self::UnknownVendor { .. } | Self::Unknown { .. } => None,
            Self::KernelDispatch(dispatch) | Self::ExtKernelDispatch { dispatch, .. } => {
                Some(dispatch.completion_signal)
            }
            Self::BarrierAnd(barrier) | Self::BarrierOr(barrier) => Some(barrier.completion_signal),
            Self::AgentDispatch { completion_signal } | Self::Pm4Ib { completion_signal, .. } => {
                Some(*completion_signal)
            }
            Self::BarrierValue(barrier) => Some(barrier.completion_signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(fields: &[(usize, &[u8])]) -> RawPacket {
        let mut bytes = [0; 64];
        for (at, value) in fields {
            bytes[*at..at + value.len()].copy_from_slice(value);
        }
        bytes
    }

    #[test]
    fn kernel_dispatch() {
        let bytes = raw(&[
            (0, &0x0b02u16.to_le_bytes()),
            (2, &3u16.to_le_bytes()),
            (4, &256u16.to_le_bytes()),
            (6, &2u16.to_le_bytes()),
            (8, &1u16.to_le_bytes()),
            (0xc, &1024u32.to_le_bytes()),
            (0x10, &4u32.to_le_bytes()),
            (0x14, &1u32.to_le_bytes()),
            (0x18, &16u32.to_le_bytes()),
            (0x1c, &32u32.to_le_bytes()),
            (0x20, &0x1000_0000u64.to_le_bytes()),
            (0x28, &0x2000_0000u64.to_le_bytes()),
            (0x38, &0x3000_0000u64.to_le_bytes()),
        ]);
        let packet = Packet::decode(&bytes);
        let expected = KernelDispatch {
            dimensions: 3,
            workgroup: [256, 2, 1],
            grid: [1024, 4, 1],
            private_segment_size: 16,
            group_segment_size: 32,
            kernel_object: 0x1000_0000,
            kernarg_address: 0x2000_0000,
            completion_signal: 0x3000_0000,
        };
        assert_eq!(packet, Packet::KernelDispatch(expected));
        assert!(is_filled(&bytes));
    }

    #[test]
    fn barriers() {
        let bytes = raw(&[
            (0, &[3]),
            (8, &1u64.to_le_bytes()),
            (0x28, &5u64.to_le_bytes()),
            (0x38, &9u64.to_le_bytes()),
        ]);
        let expected = Barrier {
            dependencies: [1, 0, 0, 0, 5],
            completion_signal: 9,
        };
        assert_eq!(Packet::decode(&bytes), Packet::BarrierAnd(expected.clone()));
        let bytes = raw(&[
            (0, &[5]),
            (8, &1u64.to_le_bytes()),
            (0x28, &5u64.to_le_bytes()),
            (0x38, &9u64.to_le_bytes()),
        ]);
        assert_eq!(Packet::decode(&bytes), Packet::BarrierOr(expected));
    }

    #[test]
    fn vendor_formats() {
        let bytes = raw(&[
            (2, &[1]),
            (8, &0x7f00_1000u64.to_le_bytes()),
            (0x10, &0x80_0021u32.to_le_bytes()),
            (0x38, &[9]),
        ]);
        let commands = Packet::Pm4Ib {
            address: 0x7f00_1000,
            words: 33,
            completion_signal: 9,
        };
        assert_eq!(Packet::decode(&bytes), commands);
        assert_eq!(Packet::decode(&raw(&[(2, &[9])])), Packet::UnknownVendor { format: 9 });
        let bytes = raw(&[(2, &[2]), (8, &[1]), (0x10, &[7]), (0x18, &[0xff]), (0x20, &[3])]);
        let Packet::BarrierValue(barrier) = Packet::decode(&bytes) else {
            panic!("not a barrier-value packet")
        };
        assert_eq!(barrier.passes(0x107), Some(true));
        assert_eq!(barrier.passes(0x106), Some(false));
        assert_eq!(
            BarrierValue {
                condition: 4,
                ..barrier
            }
            .passes(0),
            None
        );
    }

    #[test]
    fn ext_kernel_dispatch() {
        let bytes = raw(&[
            (2, &[3, 2]),
            (4, &64u16.to_le_bytes()),
            (6, &2u16.to_le_bytes()),
            (8, &1u16.to_le_bytes()),
            (0xc, &5u32.to_le_bytes()),
            (0x10, &3u16.to_le_bytes()),
            (0x12, &1u16.to_le_bytes()),
            (0x14, &[2, 4, 1]),
            (0x20, &0x1000_0000u64.to_le_bytes()),
            (0x30, &0x4000_0000u64.to_le_bytes()),
            (0x38, &0x3000_0000u64.to_le_bytes()),
        ]);
        let Packet::ExtKernelDispatch { dispatch, dependency } = Packet::decode(&bytes) else {
            panic!("not an extended dispatch")
        };
        assert_eq!((dispatch.dimensions, dispatch.grid), (2, [5 * 2 * 64, 3 * 4 * 2, 1]));
        assert_eq!((dependency, dispatch.completion_signal), (0x4000_0000, 0x3000_0000));
    }

    #[test]
    fn what_is_no_packet() {
        assert_eq!(Packet::decode(&raw(&[(0, &[1])])), Packet::Invalid);
        assert!(!is_filled(&raw(&[(0, &[1])])));
        assert_eq!(Packet::decode(&raw(&[(0, &[77])])), Packet::Unknown { kind: 77 });
        assert_eq!(Packet::decode(&raw(&[(0, &[77])])).completion_signal(), None);
    }
}
