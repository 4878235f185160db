//! Maps, settings and counters that the programs share with user space.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::map,
    maps::{Array, HashMap, RingBuf},
};
use tracer_common::record::{Header, LossSource, gate};

use crate::atomic;

/// Every record except pauses. The reader polls: programs do not wake it for each record.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(32 << 20, 0);

/// Paused processes. They are rare and each one waits, so every record wakes the reader.
#[map]
pub static HOLDS: RingBuf = RingBuf::with_byte_size(256 << 10, 0);

/// Traced thread-group ids with their generations. User space inserts the first ones; forks add to them.
#[map]
pub static TRACED: HashMap<u32, u32> = HashMap::with_max_entries(16 << 10, 0);

/// Ring buffer flag: do not wake the reader, because it looks from time to time.
pub const NO_WAKEUP: u64 = 1;

/// Ring buffer flag (BPF_RB_FORCE_WAKEUP): wake the reader, because it must read memory before the process changes it, or a process
/// waits for it.
pub const WAKEUP: u64 = 2;

/// BPF_NOEXIST of include/uapi/linux/bpf.h: an insertion fails if the key has an entry.
pub const NO_EXIST: u64 = 1;

/// BPF_F_MMAPABLE of include/uapi/linux/bpf.h.
pub const MMAPABLE: u32 = 1 << 10;

/// Events that a source dropped, by processor and `LossSource`. User space maps the counters, because a system call for a map would
/// keep the kernel from running programs on that processor during the call.
#[map]
pub static LOSSES: Array<u64> = Array::with_max_entries(LossSource::PROCESSORS * LossSource::STRIDE, MMAPABLE);

/// The word of [`gate`]. One bit says whether submissions of traced processes count. If processes existed before the recording, they do
/// not count until all probes are attached: a queue whose doorbells are seen by some of its functions only would have undetected
/// gaps. Another bit says whether processes become traced by themselves. Mapped, as [`LOSSES`].
#[map]
pub static COUNTING: Array<u64> = Array::with_max_entries(1, MMAPABLE);

/// The process and thread that run the program.
#[derive(Clone, Copy)]
pub struct Current {
    pub tgid: u32,
    pub tid: u32,
    /// Distinguishes processes and programs that have the same id one after the other.
    pub generation: u32,
}

impl Current {
    /// Returns the current thread, if its process is traced.
    #[inline(always)]
    pub fn traced() -> Option<Self> {
        Self::traced_of(bpf_get_current_pid_tgid())
    }

    /// Returns the current thread, if its process is traced; `both` is what `bpf_get_current_pid_tgid` returned.
    #[inline(always)]
    pub fn traced_of(both: u64) -> Option<Self> {
        let tgid = (both >> 32) as u32;
        // SAFETY: an entry is one word, and each of its states is valid.
        let generation = *unsafe { TRACED.get(tgid) }?;
        Some(Self {
            tgid,
            tid: both as u32,
            generation,
        })
    }

    /// Returns the current thread, if its process is traced and its submissions count.
    #[inline(always)]
    pub fn counted() -> Option<Self> {
        Self::traced()?.if_counted()
    }

    /// Returns the same thread, if its submissions count.
    #[inline(always)]
    pub fn if_counted(self) -> Option<Self> {
        is_open(gate::COUNTS).then_some(self)
    }

    /// Returns the key for maps that have one entry per thread.
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

/// Returns whether user space has set this bit of [`gate`].
#[inline(always)]
pub fn is_open(bit: u64) -> bool {
    gate_word() & bit != 0
}

/// Returns the word of [`gate`].
#[inline(always)]
pub fn gate_word() -> u64 {
    // SAFETY: a word of the map, which other programs change, so each call reads it.
    COUNTING.get_ptr(0).map_or(0, |word| unsafe { word.read_volatile() })
}

/// Begins a new epoch: see [`gate::EPOCH`].
#[inline(always)]
pub fn begin_epoch() {
    if let Some(word) = COUNTING.get_ptr_mut(0) {
        // SAFETY: a word of the map, which programs change only here, and user space atomically.
        unsafe { atomic::add(word, gate::EPOCH) };
    }
}

/// Returns a generation that differs from those of earlier processes: time in units of 2^20 ns (1 ms).
#[inline(always)]
pub fn generation() -> u32 {
    // SAFETY: a helper without preconditions.
    (unsafe { bpf_ktime_get_ns() } >> 20) as u32
}

/// Counts `n` events that `source` dropped.
#[inline(always)]
pub fn lose(source: LossSource, n: u64) {
    // SAFETY: a helper without preconditions.
    let processor = unsafe { bpf_get_smp_processor_id() } % LossSource::PROCESSORS;
    if let Some(count) = LOSSES.get_ptr_mut(processor * LossSource::STRIDE + source as u32) {
        // The program of an interrupt may count between the read and the write of a plain addition. So may a sleepable program that
        // moved to another processor.
        // SAFETY: a slot of the map, which programs change only by this function.
        unsafe { atomic::add(count, n) };
    }
}
