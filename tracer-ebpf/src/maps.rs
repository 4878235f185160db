//! Maps, settings and counters that the programs share with user space.

use aya_ebpf::{
    helpers::bpf_get_current_pid_tgid,
    macros::map,
    maps::{HashMap, PerCpuArray, RingBuf},
};
use tracer_common::record::{Header, LossSource};

/// Everything but holds. Read by polling: programs do not wake the reader for each record.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(32 << 20, 0);

/// Held processes: rare, and each is waited for, so every record wakes the reader.
#[map]
pub static HOLDS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// Thread-group ids that are traced. User space puts the first ones in; forks add to them.
#[map]
pub static TRACED: HashMap<u32, u8> = HashMap::with_max_entries(16 << 10, 0);

/// Events that a source dropped, by `LossSource`.
#[map]
pub static LOSSES: PerCpuArray<u64> = PerCpuArray::with_max_entries(LossSource::ALL.len() as u32, 0);

/// The process and thread that run the program.
#[derive(Clone, Copy)]
pub struct Current {
    pub tgid: u32,
    pub tid: u32,
}

impl Current {
    /// The current thread, if its process is traced.
    #[inline(always)]
    pub fn traced() -> Option<Self> {
        let both = bpf_get_current_pid_tgid();
        let current = Self {
            tgid: (both >> 32) as u32,
            tid: both as u32,
        };
        // SAFETY: the value is not used; whether the key is there is all that is asked.
        unsafe { TRACED.get(current.tgid) }.map(|_| current)
    }

    /// Key of maps that hold one entry a thread.
    #[inline(always)]
    pub fn key(self) -> u64 {
        u64::from(self.tgid) << 32 | u64::from(self.tid)
    }

    #[inline(always)]
    pub fn header(self, kind: u16, flags: u16, site: u32, time_ns: u64) -> Header {
        Header {
            kind,
            flags,
            site,
            time_ns,
            tgid: self.tgid,
            tid: self.tid,
        }
    }
}

/// Counts `n` events that `source` dropped.
#[inline(always)]
pub fn lose(source: LossSource, n: u64) {
    if let Some(count) = LOSSES.get_ptr_mut(source as u32) {
        // SAFETY: a per-CPU slot that only programs on this CPU write. One that interrupts another may lose an
        // increment; none of the probes here runs inside another.
        unsafe { *count += n };
    }
}
