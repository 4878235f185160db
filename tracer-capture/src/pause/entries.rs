//! The entries of paused threads: the map PAUSES, shared with the programs and between processes.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::Ordering,
};

use tracer_common::pause::{ENTRIES, MAGIC, STALE_NS, WORDS, header, word};

use super::resume::Notes;
use crate::{
    CaptureError,
    mapped::{Access, Mapped},
};

/// A thread that a program paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Index of its entry.
    pub slot: u32,
    /// What the pause is known by.
    pub token: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// When the process began, ns of CLOCK_BOOTTIME; 0: not known.
    pub start_ns: u64,
    /// When it was paused, ns of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Where it stands: `tracer_common::pause::place`.
    pub place: u64,
    /// `record::hold_reason`.
    pub reason: u16,
    /// Whether the recorder has done what it waits for.
    pub served: bool,
}

/// The map.
#[derive(Debug)]
pub struct Entries {
    words: Mapped,
}

/// The size of the map.
const BYTES: usize = ENTRIES as usize * WORDS * size_of::<u64>();

impl Entries {
    /// Maps it from its descriptor.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: impl AsFd) -> Result<Self, CaptureError> {
        Self::of(map.as_fd())
    }

    fn of(map: BorrowedFd<'_>) -> Result<Self, CaptureError> {
        let words = Mapped::of_descriptor(map, BYTES, Access::Write)?;
        Ok(Self { words })
    }

    /// Marks the map as of this layout and of this recorder, which lives.
    pub fn begin(&self, now_ns: u64) {
        self.words.word(header::MAGIC).store(MAGIC, Ordering::Release);
        let own = u64::from(std::process::id());
        self.words.word(header::RECORDER).store(own, Ordering::Release);
        self.words.word(header::RESUMES).store(now_ns, Ordering::Release);
        self.beat(now_ns);
    }

    /// Whether a map that was found is of this layout.
    pub fn is_ours(&self) -> bool {
        self.words.word(header::MAGIC).load(Ordering::Acquire) == MAGIC
    }

    /// The recorder's process id.
    pub fn recorder(&self) -> u32 {
        self.words.word(header::RECORDER).load(Ordering::Acquire) as u32
    }

    /// Gives a sign of life: programs pause processes for a while.
    pub fn beat(&self, now_ns: u64) {
        self.words.word(header::HEARTBEAT_NS).store(now_ns, Ordering::Release);
    }

    /// Takes the sign of life back: programs pause nobody from now on.
    pub fn stop_beating(&self) {
        self.beat(0);
    }

    /// Whether the recorder has given a sign of life lately: programs pause processes.
    pub fn is_beating(&self, now_ns: u64) -> bool {
        self.has_beaten_within(STALE_NS, now_ns)
    }

    /// Whether it has given one in so many ns.
    pub fn has_beaten_within(&self, ns: u64, now_ns: u64) -> bool {
        let beat = self.words.word(header::HEARTBEAT_NS).load(Ordering::Acquire);
        beat != 0 && now_ns < beat.saturating_add(ns)
    }

    /// The paused threads, by process.
    pub fn by_process(&self) -> BTreeMap<u32, Vec<Paused>> {
        let mut all: BTreeMap<u32, Vec<Paused>> = BTreeMap::new();
        for paused in (1..ENTRIES).filter_map(|slot| self.read(slot)) {
            all.entry(paused.pid).or_default().push(paused);
        }
        all
    }

    /// The paused threads of one process.
    pub fn of_process(&self, pid: u32) -> Vec<Paused> {
        let all = (1..ENTRIES).filter_map(|slot| self.read(slot));
        all.filter(|paused| paused.pid == pid).collect()
    }

    /// The thread of an entry; `None` if the entry is free, or being written.
    fn read(&self, slot: u32) -> Option<Paused> {
        let word = |at| self.words.word(slot as usize * WORDS + at).load(Ordering::Acquire);
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
        // Else another thread has taken it since.
        (word(word::OWNER) == token).then_some(paused)
    }

    /// Whether the entry is still this pause's.
    pub fn has(&self, slot: u32, token: u64) -> bool {
        (1..ENTRIES).contains(&slot)
            && self
                .words
                .word(slot as usize * WORDS + word::OWNER)
                .load(Ordering::Acquire)
                == token
    }

    /// The recorder has done what the thread waits for.
    pub fn serve(&self, slot: u32, token: u64) {
        if (1..ENTRIES).contains(&slot) {
            let served = slot as usize * WORDS + word::SERVED;
            self.words.word(served).store(token, Ordering::Release);
        }
    }

    /// Frees an entry, unless another thread has taken it since.
    pub fn clear(&self, paused: &Paused) {
        let owner = self.words.word(paused.slot as usize * WORDS + word::OWNER);
        // A failure says that somebody else has cleared it.
        let _ = owner.compare_exchange(paused.token, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Notes for Entries {
    /// Whether somebody else has sent SIGSTOP to the process since it was paused, and no SIGCONT after that.
    fn is_stopped_by_others(&self, paused: &Paused) -> bool {
        let stopped = self.words.word(paused.slot as usize * WORDS + word::STOPPED);
        stopped.load(Ordering::Acquire) == paused.token
    }

    fn resumes(&self) -> u64 {
        self.words.word(header::RESUMES).load(Ordering::Acquire)
    }
}
