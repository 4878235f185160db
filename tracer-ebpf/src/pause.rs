//! Pauses: a process stops until the recorder has attached its probes.
//!
//! First an entry says which thread is paused and where (`tracer_common::pause`), then a record announces it, then SIGSTOP is sent.
//! Whichever process dies afterwards, the entry names the thread to resume. A recorder whose heartbeat is missing pauses no
//! process.

use core::ptr::addr_of_mut;

use aya_ebpf::{
    Global,
    helpers::{bpf_get_current_task, bpf_ktime_get_ns, generated::bpf_send_signal},
    macros::map,
    maps::Array,
};
use tracer_common::{
    pause::{ENTRIES, Entry, FileKey, STALE_NS, TRIES, TaskLayout, WORDS, header, place, slot, token, word},
    record::{Hold, LossSource, kind},
};

use crate::{
    atomic, kernel,
    maps::{Current, HOLDS, MMAPABLE, WAKEUP, lose},
};

/// Whether processes are paused at all.
#[unsafe(no_mangle)]
static HOLD: Global<u8> = Global::new(1);

/// Offsets of the fields in the kernel's structures that this module reads.
#[unsafe(no_mangle)]
static TASK: Global<TaskLayout> = Global::new(TaskLayout::NONE);

/// The entries: see `tracer_common::pause`.
#[map]
pub static PAUSES: Array<[u64; WORDS]> = Array::with_max_entries(ENTRIES, MMAPABLE);

/// SIGSTOP on x86-64.
pub const SIGSTOP: u32 = 19;

/// The reason and the place of a pause.
pub struct Pause {
    /// One of `record::hold_reason`.
    pub reason: u16,
    /// The probe's site.
    pub site: u32,
    /// `Hold::address`.
    pub address: u64,
    /// The file that was mapped, if it is known.
    pub file: FileKey,
    /// Where the thread is: one of `pause::place`.
    pub place: u64,
    /// The loss to count if there is no room for the record.
    pub loss: LossSource,
}

impl Pause {
    /// Describes a pause at a probe in user space. `stack` is the stack pointer there.
    #[inline(always)]
    pub fn at_probe(reason: u16, site: u32, stack: u64) -> Self {
        Self {
            reason,
            site,
            address: 0,
            file: FileKey::default(),
            place: place::stack(stack),
            loss: LossSource::HoldRing,
        }
    }

    /// Describes a pause at the end of a system call.
    #[inline(always)]
    pub fn at_syscall(reason: u16, number: u32) -> Self {
        Self {
            reason,
            site: 0,
            address: 0,
            file: FileKey::default(),
            place: place::syscall(number),
            loss: LossSource::HoldRing,
        }
    }
}

/// Returns the layouts, for programs that also read files.
#[inline(always)]
pub fn layout() -> TaskLayout {
    TASK.load()
}

/// Stops the process and announces it to the recorder, which resumes it. A process that cannot be announced is not stopped, and
/// `loss` counts it. `HoldFailed` counts a process that the recorder could not resume, which is not stopped either.
#[inline(always)]
pub fn pause(current: Current, wanted: Pause) {
    if HOLD.load() == 0 {
        return;
    }
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    if !recorder_lives(time_ns) {
        lose(LossSource::HoldFailed, 1);
        return;
    }
    let Some(mut record) = HOLDS.reserve::<Hold>(0) else {
        lose(wanted.loss, 1);
        return;
    };
    let token = token(current.tid, time_ns);
    let taken = take(current.tid, token);
    let stopped = if taken == 0 {
        // ENOSPC.
        -28
    } else {
        write(taken, current, time_ns, token, &wanted);
        // SAFETY: a helper without preconditions.
        let result = unsafe { bpf_send_signal(SIGSTOP) };
        note_sent(taken, token);
        result
    };
    if stopped != 0 {
        lose(LossSource::HoldFailed, 1);
        free(taken);
    }
    diagnose!(
        "process {} is paused, reason {}, result of its stop {}",
        current.tgid,
        wanted.reason,
        stopped
    );
    record.write(Hold {
        header: current.header(kind::HOLD, wanted.reason, wanted.site, time_ns),
        address: wanted.address,
        stopped,
        generation: current.generation,
        slot: taken,
        token,
        file: wanted.file,
    });
    record.submit(WAKEUP);
}

/// Returns whether the recorder's last heartbeat is recent.
#[inline(always)]
fn recorder_lives(now_ns: u64) -> bool {
    let Some(first) = PAUSES.get(0) else { return false };
    // SAFETY: a word that user space stores as a whole.
    let beat = unsafe { core::ptr::read_volatile(&raw const first[header::HEARTBEAT_NS]) };
    // A heartbeat may be later than `now_ns`, which was read before it.
    beat != 0 && now_ns < beat.saturating_add(STALE_NS)
}

/// Takes a free entry. Returns 0 if all entries that it tries are taken.
#[inline(always)]
fn take(tid: u32, token: u64) -> u32 {
    for attempt in 0..TRIES {
        let at = slot(tid, attempt);
        if let Some(entry) = PAUSES.get_ptr_mut(at)
            // SAFETY: the entry's first word, which is changed only by compare-and-swap.
            && unsafe { atomic::swap(entry.cast::<u64>(), 0, token) } == 0
        {
            return at;
        }
    }
    0
}

/// Writes every word except the owner, and the seal last.
#[inline(always)]
fn write(at: u32, current: Current, time_ns: u64, token: u64, wanted: &Pause) {
    let start_ns = start_ns().unwrap_or(0);
    if let Some(entry) = PAUSES.get_ptr_mut(at) {
        let words = entry.cast::<u64>();
        // SAFETY: words of the entry, which belongs to this program until it is sealed.
        unsafe {
            words.add(word::THREAD).write_volatile(current.key());
            words.add(word::START_NS).write_volatile(start_ns);
            words.add(word::TIME_NS).write_volatile(time_ns);
            words.add(word::PLACE).write_volatile(wanted.place);
            words.add(word::REASON).write_volatile(u64::from(wanted.reason));
            words.add(word::SEALED).write_volatile(token);
        }
    }
}

/// Notes that the program has sent its own stop. A later stop from a program belongs to another tracer.
#[inline(always)]
fn note_sent(at: u32, token: u64) {
    if let Some(entry) = PAUSES.get_ptr_mut(at) {
        // SAFETY: a word of an entry that belongs to this program. If another pause has the entry by now, the token means nothing
        // there.
        unsafe { addr_of_mut!((*entry)[word::SENT]).write_volatile(token) };
    }
}

/// Frees an entry that stopped no process.
#[inline(always)]
fn free(at: u32) {
    if at != 0
        && let Some(entry) = PAUSES.get_ptr_mut(at)
    {
        // SAFETY: the first word of an entry that belongs to this program.
        unsafe { addr_of_mut!((*entry)[word::OWNER]).write_volatile(0) };
    }
}

/// Returns when the current process began, ns of CLOCK_BOOTTIME.
#[inline(always)]
fn start_ns() -> Option<u64> {
    let layout = TASK.load();
    // SAFETY: a helper without preconditions; any bytes are a valid word.
    unsafe {
        let task = bpf_get_current_task();
        let leader: u64 = kernel::at(task, layout.group_leader)?;
        kernel::at(leader, layout.start_boottime)
    }
}

const _: () = assert!(size_of::<Entry>() == size_of::<[u64; WORDS]>());
