//! The entries of paused threads: the map PAUSES, shared with the programs and between processes.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

use tracer_common::pause::{ENTRIES, MAGIC, WORDS, header, word};

use crate::{
    CaptureError,
    shared_maps::words::{Access, SharedWords, memory},
};

/// A thread that a program paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// The index of its entry.
    pub slot: u32,
    /// The token that identifies the pause.
    pub token: u64,
    /// The process id.
    pub pid: u32,
    /// The thread id.
    pub tid: u32,
    /// The start time of the process, ns of CLOCK_BOOTTIME; 0 if it is not known.
    pub start_ns: u64,
    /// The start time of the pause, ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The place where the thread stands: `tracer_common::pause::place`.
    pub place: u64,
    /// The reason of the pause: `record::hold_reason`.
    pub reason: u16,
    /// Whether the recorder has done what the thread waits for.
    pub served: bool,
}

/// The map of entries.
#[derive(Debug)]
pub struct Entries {
    words: SharedWords,
}

/// The size of the map in bytes.
pub(super) const BYTES: usize = ENTRIES as usize * WORDS * size_of::<u64>();

impl Entries {
    /// Maps the entries from the map's descriptor.
    ///
    /// # Errors
    /// Fails with the error of the mapping.
    pub fn new(map: impl AsFd) -> Result<Self, CaptureError> {
        let words = SharedWords::of_descriptor(map.as_fd(), BYTES, Access::Write)?;
        Ok(Self { words })
    }

    /// Creates entries that no program writes, in memory that has a descriptor for the guardians.
    ///
    /// # Errors
    /// Fails with the error of the system calls.
    pub fn in_memory() -> Result<(Self, OwnedFd), CaptureError> {
        let memory = memory("pauses", BYTES)?;
        Ok((Self::new(&memory)?, memory))
    }

    /// Returns a word of an entry.
    pub(super) fn word(&self, slot: u32, at: usize) -> &AtomicU64 {
        self.words.word(slot as usize * WORDS + at)
    }

    /// Marks the map with this layout and this recorder, which is alive.
    pub fn begin(&self, now_ns: u64) {
        self.words.word(header::MAGIC).store(MAGIC, Ordering::Release);
        let own = u64::from(std::process::id());
        self.words.word(header::RECORDER).store(own, Ordering::Release);
        self.words.word(header::RESUMES).store(now_ns, Ordering::Release);
        self.beat(now_ns);
    }

    /// Returns whether a map that was found has this layout.
    pub fn is_ours(&self) -> bool {
        self.words.word(header::MAGIC).load(Ordering::Acquire) == MAGIC
    }

    /// Returns the recorder's process id.
    pub fn recorder(&self) -> u32 {
        self.words.word(header::RECORDER).load(Ordering::Acquire) as u32
    }

    /// Gives a sign of life: programs pause processes for a while.
    pub fn beat(&self, now_ns: u64) {
        self.words.word(header::HEARTBEAT_NS).store(now_ns, Ordering::Release);
    }

    /// Withdraws the sign of life: programs pause no process from now on.
    pub fn stop_beating(&self) {
        self.beat(0);
    }

    /// Returns the time of the last sign of life, ns; 0 if the recorder has not begun, or has ended.
    pub fn heartbeat(&self) -> u64 {
        self.words.word(header::HEARTBEAT_NS).load(Ordering::Acquire)
    }

    /// Returns whether the recorder has given a sign of life within the last `ns` nanoseconds.
    pub fn has_beaten_within(&self, ns: u64, now_ns: u64) -> bool {
        let beat = self.heartbeat();
        beat != 0 && now_ns < beat.saturating_add(ns)
    }

    /// Returns the paused threads of a process.
    pub fn of_process(&self, pid: u32) -> Vec<Paused> {
        let all = (1..ENTRIES).filter_map(|slot| self.read(slot));
        all.filter(|paused| paused.pid == pid).collect()
    }

    /// Returns the paused threads, by process.
    pub fn by_process(&self) -> BTreeMap<u32, Vec<Paused>> {
        let mut all: BTreeMap<u32, Vec<Paused>> = BTreeMap::new();
        for paused in (1..ENTRIES).filter_map(|slot| self.read(slot)) {
            all.entry(paused.pid).or_default().push(paused);
        }
        all
    }

    /// Reads the thread of an entry; `None` if the entry is free, or being written.
    fn read(&self, slot: u32) -> Option<Paused> {
        let word = |at| self.word(slot, at).load(Ordering::Acquire);
        let token = word(word::OWNER);
        if token == 0 || word(word::SEALED) != token {
            return None;
        }
        let thread = word(word::THREAD);
        let paused = Paused {
            slot,
            token,
            pid: (thread >> 32) as u32,
            tid: thread as u32,
            start_ns: word(word::START_NS),
            time_ns: word(word::TIME_NS),
            place: word(word::PLACE),
            reason: word(word::REASON) as u16,
            served: word(word::SERVED) == token,
        };
        // Otherwise another thread has taken the entry since.
        (word(word::OWNER) == token).then_some(paused)
    }

    /// Returns whether the entry still belongs to this pause.
    pub fn has(&self, slot: u32, token: u64) -> bool {
        (1..ENTRIES).contains(&slot) && self.word(slot, word::OWNER).load(Ordering::Acquire) == token
    }

    /// Returns whether the recorder has done what a pause's thread waits for, or the pause is over.
    pub fn is_served(&self, slot: u32, token: u64) -> bool {
        !self.has(slot, token) || self.word(slot, word::SERVED).load(Ordering::Acquire) == token
    }

    /// Marks that the recorder has done what the thread waits for.
    pub fn serve(&self, slot: u32, token: u64) {
        if (1..ENTRIES).contains(&slot) {
            self.word(slot, word::SERVED).store(token, Ordering::Release);
        }
    }

    /// Frees an entry, unless another thread has taken it since.
    pub fn clear(&self, paused: &Paused) {
        let owner = self.word(paused.slot, word::OWNER);
        // A failure means that another process has cleared the entry.
        let _ = owner.compare_exchange(paused.token, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns whether another process has sent SIGSTOP to the process since it was paused, and no SIGCONT after that.
    pub fn is_stopped_by_others(&self, paused: &Paused) -> bool {
        self.word(paused.slot, word::STOPPED).load(Ordering::Acquire) == paused.token
    }

    /// Returns the value of SIGCONT by which the programs recognise tracer's own signal.
    pub fn resumes(&self) -> u64 {
        self.words.word(header::RESUMES).load(Ordering::Acquire)
    }
}
