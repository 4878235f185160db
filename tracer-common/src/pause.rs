//! Paused processes: memory shared by the eBPF programs, the recorder, its guardians and later runs of tracer.
//!
//! A program that pauses a process writes an entry first. The process that resumes it clears the entry. So whichever process dies,
//! the entries name the threads that tracer stopped, and where; tracer never resumes any other thread.
//!
//! The memory is the map PAUSES: an array of [`Entry`]. The first one is the [`header`].

use crate::offset::ABSENT;

/// One paused thread. An entry is valid while `owner` is not 0 and equals `sealed`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// [`token`] of the pause; 0 if the entry is free. Taken and cleared by compare-and-swap only.
    pub owner: u64,
    /// The same token, after the other fields are written.
    pub sealed: u64,
    /// The same token, after the recorder has done the work that the process waits for.
    pub served: u64,
    /// Process id in the upper half, thread id in the lower half, both in the initial pid namespace.
    pub thread: u64,
    /// Start of the process, ns of CLOCK_BOOTTIME (`task_struct.start_boottime` of the group leader); 0 if not known.
    pub start_ns: u64,
    /// Time of the pause, ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Where the paused thread is: see [`place`].
    pub place: u64,
    /// One of `record::hold_reason`.
    pub reason: u64,
    /// The same token, after another process sent SIGSTOP to the process, and no SIGCONT since.
    pub stopped: u64,
    /// The same token, after the program sent its own SIGSTOP.
    pub sent: u64,
}

/// Entries for threads. No machine that was seen paused more threads at once. A thread without an entry is not paused, and counts
/// as a loss.
pub const SLOTS: u32 = 1024;
/// The number of entries tried for a thread: see [`slot`].
pub const TRIES: u32 = 8;
/// Entries of the map.
pub const ENTRIES: u32 = SLOTS + 1;
/// Words of an entry.
pub const WORDS: usize = size_of::<Entry>() / 8;

/// Words of an entry, by their index.
pub mod word {
    /// [`super::Entry::owner`].
    pub const OWNER: usize = 0;
    /// [`super::Entry::sealed`].
    pub const SEALED: usize = 1;
    /// [`super::Entry::served`].
    pub const SERVED: usize = 2;
    /// [`super::Entry::thread`].
    pub const THREAD: usize = 3;
    /// [`super::Entry::start_ns`].
    pub const START_NS: usize = 4;
    /// [`super::Entry::time_ns`].
    pub const TIME_NS: usize = 5;
    /// [`super::Entry::place`].
    pub const PLACE: usize = 6;
    /// [`super::Entry::reason`].
    pub const REASON: usize = 7;
    /// [`super::Entry::stopped`].
    pub const STOPPED: usize = 8;
    /// [`super::Entry::sent`].
    pub const SENT: usize = 9;
}

/// Words of the first entry.
pub mod header {
    /// The recorder's last heartbeat, ns of CLOCK_MONOTONIC; 0 if the recorder has not begun, or has ended.
    pub const HEARTBEAT_NS: usize = 0;
    /// Identifies the map: [`super::MAGIC`].
    pub const MAGIC: usize = 1;
    /// The recorder's process id.
    pub const RECORDER: usize = 2;
    /// The value (`si_value`) of the SIGCONT that resumes processes of this recorder: the recorder's start, ns of CLOCK_MONOTONIC.
    /// The programs ignore that signal, but not one with the value of another recorder.
    pub const RESUMES: usize = 3;
}

/// Identifies a map of this layout. Another layout gets another number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"pauses\x02\0");

/// Interval of the recorder's heartbeats, ns.
pub const HEARTBEAT_NS: u64 = 50_000_000;
/// Age of the last heartbeat, in ns, from which programs pause no process, and from which the next tracer resumes processes that are
/// paused. Guardians resume them a little later. A busy machine may give the recorder no processor for some 100 ms, and a process that
/// is not paused is lost.
pub const STALE_NS: u64 = 800_000_000;

/// The number of bits of a token that are a thread id: `PID_MAX_LIMIT` of include/linux/threads.h is 2^22.
const ID_BITS: u32 = 22;

/// Returns the token that identifies a pause, from the thread and the time. It is never 0. It repeats after 73 minutes at the
/// earliest.
#[must_use]
#[inline(always)]
pub const fn token(tid: u32, time_ns: u64) -> u64 {
    time_ns << ID_BITS | (tid as u64 & ((1 << ID_BITS) - 1))
}

/// Returns the entry to try for a thread at this attempt. The first entry of the map is the header.
#[must_use]
#[inline(always)]
pub const fn slot(tid: u32, attempt: u32) -> u32 {
    1 + (tid.wrapping_add(attempt.wrapping_mul(67))) % SLOTS
}

/// Where a paused thread is: at the end of a system call, or in user space with its stack at an address.
pub mod place {
    /// Set if the rest is a system call's number.
    pub const SYSCALL: u64 = 1 << 63;

    /// Anywhere: the recorder stopped the process itself, without a program that saw where it was.
    pub const ANYWHERE: u64 = u64::MAX;

    /// Returns the place at the end of a system call.
    #[must_use]
    #[inline(always)]
    pub const fn syscall(number: u32) -> u64 {
        SYSCALL | number as u64
    }

    /// Returns the place in user space: the stack pointer when the probe was hit. The probed instruction may move it by a word.
    #[must_use]
    #[inline(always)]
    pub const fn stack(pointer: u64) -> u64 {
        pointer & !SYSCALL
    }
}

/// A file as the kernel identifies it: device, inode and time of the last change.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Inode; 0 if the file is not known.
    pub inode: u64,
    /// `super_block.s_dev` in the upper half (major << 20 | minor), nanoseconds of the last change in the lower half.
    pub device_nsec: u64,
    /// Seconds of the last change.
    pub seconds: u64,
}

/// Words of an entry of the map KNOWN: those of a [`FileKey`], and one that is not 0 after they are written.
pub const KNOWN_WORDS: usize = 4;
/// The number of files that can be known: a power of two.
pub const KNOWN_SLOTS: u32 = 1 << 14;
/// The number of entries tried for a file.
pub const KNOWN_TRIES: u32 = 8;
/// Since Linux 6.13 this bit of the nanoseconds says that the time was queried. It is not part of the time (`I_CTIME_QUERIED` of
/// include/linux/fs.h).
pub const CTIME_QUERIED: u32 = 1 << 31;

impl FileKey {
    /// Builds the key of a file on a device, in the kernel's form, that was changed at the given time.
    #[must_use]
    #[inline(always)]
    pub const fn new(device: u32, inode: u64, seconds: u64, nsec: u32) -> Self {
        Self {
            inode,
            device_nsec: (device as u64) << 32 | (nsec & !CTIME_QUERIED) as u64,
            seconds,
        }
    }

    /// Returns the device, in the kernel's form.
    #[must_use]
    pub const fn device(self) -> u32 {
        (self.device_nsec >> 32) as u32
    }

    /// Returns the entry of KNOWN to try at this attempt.
    #[must_use]
    #[inline(always)]
    pub const fn slot(self, attempt: u32) -> u32 {
        let mixed = (self.inode ^ self.device_nsec.rotate_left(17) ^ self.seconds.rotate_left(41))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 40) as u32).wrapping_add(attempt) & (KNOWN_SLOTS - 1)
    }
}

layout! {
    /// Byte offsets of the fields that the programs read in the kernel's structures, by its BTF; [`ABSENT`] if an offset is not
    /// known.
    pub struct TaskLayout {
        /// `task_struct.group_leader`.
        group_leader = ABSENT,
        /// `task_struct.start_boottime`.
        start_boottime = ABSENT,
        /// `task_struct.tgid`, 4 bytes.
        tgid = ABSENT,
        /// `task_struct.files`.
        files = ABSENT,
        /// `files_struct.fdt`.
        fdt = ABSENT,
        /// `fdtable.max_fds`, 4 bytes.
        max_fds = ABSENT,
        /// `fdtable.fd`.
        fd = ABSENT,
        /// `file.f_inode`.
        f_inode = ABSENT,
        /// `inode.i_sb`.
        i_sb = ABSENT,
        /// `inode.i_ino`.
        i_ino = ABSENT,
        /// Seconds of `inode`'s change time.
        i_ctime_sec = ABSENT,
        /// Nanoseconds of `inode`'s change time.
        i_ctime_nsec = ABSENT,
        /// `super_block.s_dev`, 4 bytes.
        s_dev = ABSENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_by_thread_and_time_and_are_never_free() {
        assert_ne!(token(7, 1000), token(8, 1000));
        assert_ne!(token(7, 1000), token(7, 1001));
        assert_ne!(token(1 << 21, 1), 0);
        // 73 minutes later.
        assert_eq!(token(7, 5 + (1 << 42)), token(7, 5));
    }

    #[test]
    fn no_thread_takes_the_header_and_attempts_differ() {
        for tid in [0, 1, SLOTS - 1, SLOTS, (1 << 22) - 1] {
            let slots: [u32; TRIES as usize] = core::array::from_fn(|attempt| slot(tid, attempt as u32));
            for (at, &one) in slots.iter().enumerate() {
                assert!((1..ENTRIES).contains(&one), "{one}");
                assert!(slots[..at].iter().all(|&other| other != one), "{slots:?}");
            }
        }
    }

    #[test]
    fn a_file_is_the_same_whether_its_time_was_asked_for() {
        let asked = FileKey::new(0x0fd0_0001, 77, 5, 9 | CTIME_QUERIED);
        assert_eq!(asked, FileKey::new(0x0fd0_0001, 77, 5, 9));
        assert_eq!(asked.device(), 0x0fd0_0001);
        assert!(asked.slot(KNOWN_TRIES) < KNOWN_SLOTS);
    }
}
