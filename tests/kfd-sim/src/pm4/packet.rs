//! PM4 packets of compute queues, as tinygrad and AMD's runtimes build them (`nvd.h` and `soc15d.h` of the driver).

/// Registers of the shader (SET_SH_REG) that a dispatch uses, as offsets from the first one.
pub mod sh {
    /// Threads of a work-group, in three dimensions.
    pub const NUM_THREAD_X: u32 = 0x207;
    /// Address of the code, in units of 256 bytes, in two words.
    pub const PGM_LO: u32 = 0x20c;
    /// One more than the last register.
    pub const END: u32 = 0x400;
}

/// Operation codes of packets of type 3.
mod op {
    pub const NOP: u8 = 0x10;
    pub const DISPATCH_DIRECT: u8 = 0x15;
    pub const ATOMIC_MEM: u8 = 0x1e;
    pub const PRED_EXEC: u8 = 0x23;
    pub const WRITE_DATA: u8 = 0x37;
    pub const WAIT_REG_MEM: u8 = 0x3c;
    pub const INDIRECT_BUFFER: u8 = 0x3f;
    pub const COPY_DATA: u8 = 0x40;
    pub const EVENT_WRITE: u8 = 0x46;
    pub const RELEASE_MEM: u8 = 0x49;
    pub const ACQUIRE_MEM: u8 = 0x58;
    pub const SET_SH_REG: u8 = 0x76;
    pub const SET_UCONFIG_REG: u8 = 0x79;
}

/// A decoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pm4 {
    /// Skips some words.
    Nop,
    /// Sets registers of the shader, from that one on.
    SetShReg { first: u32, values: Vec<u32> },
    /// Sets other registers, which have no meaning here.
    SetUconfigReg,
    /// Runs a kernel on that many work-groups.
    DispatchDirect { groups: [u32; 3] },
    /// When all before has ended: stores, and raises an interrupt.
    ReleaseMem {
        address: u64,
        store: Store,
        /// The event to raise, if any.
        interrupt: Option<u32>,
    },
    /// Stores words.
    WriteData {
        address: u64,
        values: Vec<u32>,
        to_memory: bool,
    },
    /// Waits for a word of memory.
    WaitMem {
        address: u64,
        function: u32,
        reference: u32,
        mask: u32,
    },
    /// Waits for a register, or writes one and waits for its answer. Registers answer at once here.
    WaitReg,
    /// Cache control.
    AcquireMem,
    /// Runs packets elsewhere, and returns.
    IndirectBuffer { address: u64, words: u32 },
    /// Executes the next words on some compute dies only.
    PredExec { dies: u32, words: u32 },
    /// Waits for earlier work, or marks it.
    EventWrite,
    /// Copies a register or a counter to memory.
    CopyData { address: u64, wide: bool },
}

/// What a RELEASE_MEM stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Nothing.
    None,
    /// A word.
    Low(u32),
    /// Two words.
    Both(u64),
    /// The GPU's clock.
    Clock,
}

/// Returns the number of words of the packet that begins with this word, with its header; `None` for a packet of another type than
/// 2 and 3, which compute queues do not know.
pub fn length(header: u32) -> Option<u32> {
    match header >> 30 {
        // A filler of one word.
        2 => Some(1),
        // A NOP whose count is all ones is one word long.
        3 if header >> 8 & 0xff == u32::from(op::NOP) && header >> 16 & 0x3fff == 0x3fff => Some(1),
        3 => Some((header >> 16 & 0x3fff) + 2),
        // Memory that was never written.
        0 if header == 0 => Some(1),
        _ => None,
    }
}

impl Pm4 {
    /// Decodes a whole packet, of as many words as [`length`] says, for a GPU of that major version of the instruction set. Returns
    /// `None` for one that is not known.
    pub fn decode(words: &[u32], gfx_major: u32) -> Option<Self> {
        let header = *words.first()?;
        let body = &words[1..];
        let word = |at: usize| body.get(at).copied();
        let wide = |at: usize| Some(u64::from(word(at)?) | u64::from(word(at + 1)?) << 32);
        if header >> 30 != 3 {
            return Some(Self::Nop);
        }
        Some(match (header >> 8) as u8 {
            op::NOP => Self::Nop,
            op::SET_SH_REG => Self::SetShReg {
                first: word(0)? & 0xffff,
                values: body[1..].to_vec(),
            },
            op::SET_UCONFIG_REG => Self::SetUconfigReg,
            op::DISPATCH_DIRECT => Self::DispatchDirect {
                groups: [word(0)?, word(1)?, word(2)?],
            },
            op::RELEASE_MEM => {
                let select = word(1)?;
                let (data, interrupt) = (wide(4)?, select >> 24 & 7);
                let context = word(6).unwrap_or(0);
                Self::ReleaseMem {
                    address: wide(2)?,
                    store: match select >> 29 {
                        0 => Store::None,
                        1 => Store::Low(data as u32),
                        2 => Store::Both(data),
                        3 => Store::Clock,
                        _ => return None,
                    },
                    // gfx9 sends the low word of the data, later GPUs the context.
                    interrupt: match (interrupt, gfx_major) {
                        (1 | 2, 9) => Some(data as u32),
                        (1 | 2, _) => Some(context),
                        _ => None,
                    },
                }
            }
            op::WRITE_DATA => Self::WriteData {
                address: wide(1)?,
                values: body[3..].to_vec(),
                to_memory: matches!(word(0)? >> 8 & 0xf, 1 | 2 | 4 | 5),
            },
            op::WAIT_REG_MEM => match word(0)? >> 4 & 3 {
                0 => Self::WaitReg,
                1 => Self::WaitMem {
                    address: wide(1)? & !3,
                    function: word(0)? & 7,
                    reference: word(3)?,
                    mask: word(4)?,
                },
                _ => return None,
            },
            op::ACQUIRE_MEM => Self::AcquireMem,
            op::INDIRECT_BUFFER => Self::IndirectBuffer {
                address: wide(0)? & !3,
                words: word(2)? & 0xf_ffff,
            },
            op::PRED_EXEC => Self::PredExec {
                dies: word(0)? >> 24,
                words: word(0)? & 0x3fff,
            },
            op::EVENT_WRITE => Self::EventWrite,
            op::COPY_DATA => Self::CopyData {
                address: wide(3)?,
                wide: word(0)? >> 16 & 1 != 0,
            },
            op::ATOMIC_MEM => return None,
            _ => return None,
        })
    }

    /// Returns the packet's name in the truth log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::SetShReg { .. } => "set_sh_reg",
            Self::SetUconfigReg => "set_uconfig_reg",
            Self::DispatchDirect { .. } => "dispatch_direct",
            Self::ReleaseMem { .. } => "release_mem",
            Self::WriteData { .. } => "write_data",
            Self::WaitMem { .. } => "wait_mem",
            Self::WaitReg => "wait_reg",
            Self::AcquireMem => "acquire_mem",
            Self::IndirectBuffer { .. } => "indirect_buffer",
            Self::PredExec { .. } => "pred_exec",
            Self::EventWrite => "event_write",
            Self::CopyData { .. } => "copy_data",
        }
    }

    /// Returns the memory address of the packet, for the truth log; 0 if it has none.
    pub fn address(&self) -> u64 {
        match self {
            Self::ReleaseMem { address, .. }
            | Self::WriteData { address, .. }
            | Self::WaitMem { address, .. }
            | Self::IndirectBuffer { address, .. }
            | Self::CopyData { address, .. } => *address,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a packet with its header.
    fn packet(op: u8, body: &[u32]) -> Vec<u32> {
        let mut words = vec![3 << 30 | (body.len() as u32 - 1) << 16 | u32::from(op) << 8];
        words.extend(body);
        assert_eq!(length(words[0]), Some(words.len() as u32));
        words
    }

    #[test]
    fn release_mem_of_both_generations() {
        let body = [0x514, 1 << 29 | 2 << 24, 0x1000, 0x7f, 5, 0, 9];
        let release = |interrupt| Pm4::ReleaseMem {
            address: 0x7f_0000_1000,
            store: Store::Low(5),
            interrupt: Some(interrupt),
        };
        assert_eq!(Pm4::decode(&packet(0x49, &body), 11), Some(release(9)));
        assert_eq!(Pm4::decode(&packet(0x49, &body), 9), Some(release(5)));
        let clock = Pm4::decode(&packet(0x49, &[0x514, 3 << 29, 0x1000, 0, 0, 0, 0]), 11);
        assert!(matches!(
            clock,
            Some(Pm4::ReleaseMem {
                store: Store::Clock,
                interrupt: None,
                ..
            })
        ));
    }

    #[test]
    fn waits_for_memory_and_for_registers() {
        let memory = packet(0x3c, &[5 | 1 << 4, 0x1002, 1, 7, u32::MAX, 4]);
        let wait = Pm4::WaitMem {
            address: 0x1_0000_1000,
            function: 5,
            reference: 7,
            mask: u32::MAX,
        };
        assert_eq!(Pm4::decode(&memory, 11), Some(wait));
        assert_eq!(
            Pm4::decode(&packet(0x3c, &[3 | 1 << 6, 1, 2, 3, 4, 5]), 11),
            Some(Pm4::WaitReg)
        );
    }

    #[test]
    fn a_dispatch_and_its_registers() {
        let set = Pm4::decode(&packet(0x76, &[sh::PGM_LO, 0x1234, 0x7f]), 11);
        let expected = Pm4::SetShReg {
            first: sh::PGM_LO,
            values: vec![0x1234, 0x7f],
        };
        assert_eq!(set, Some(expected));
        let dispatch = Pm4::decode(&packet(0x15, &[4, 2, 1, 5]), 11);
        assert_eq!(dispatch, Some(Pm4::DispatchDirect { groups: [4, 2, 1] }));
    }

    #[test]
    fn buffers_elsewhere_and_conditions() {
        let indirect = Pm4::decode(&packet(0x3f, &[0x1000, 2, 0x80_0000 | 33]), 9);
        let expected = Pm4::IndirectBuffer {
            address: 0x2_0000_1000,
            words: 33,
        };
        assert_eq!(indirect, Some(expected));
        let exec = Pm4::decode(&packet(0x23, &[1 << 24 | 8]), 9);
        assert_eq!(exec, Some(Pm4::PredExec { dies: 1, words: 8 }));
        let write = Pm4::decode(&packet(0x37, &[5 << 8, 0x1000, 0, 1, 2]), 11);
        let expected = Pm4::WriteData {
            address: 0x1000,
            values: vec![1, 2],
            to_memory: true,
        };
        assert_eq!(write, Some(expected));
    }

    #[test]
    fn what_is_no_packet() {
        assert_eq!(length(1 << 30), None);
        assert_eq!(length(5), None);
        assert_eq!(length(2 << 30), Some(1));
        assert_eq!(length(3 << 30 | 0x3fff << 16 | 0x10 << 8), Some(1));
        assert_eq!(length(0), Some(1));
        assert_eq!(Pm4::decode(&packet(0xee, &[0]), 11), None);
        assert_eq!(Pm4::decode(&[3 << 30 | 5 << 16 | 0x49 << 8, 1], 11), None, "torn");
        assert_eq!(Pm4::decode(&[3 << 30 | 0x76 << 8], 11), None, "torn");
    }
}
