//! Stops of processes by the recorder itself, for captures without eBPF.
//!
//! The recorder learns of the moment from a buffer, so the process has gone on by then: up to a millisecond, or as long as the recorder
//! got no processor. A thread of it may stand anywhere.

use std::{io, sync::atomic::Ordering};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tracer_common::pause::{STALE_NS, TRIES, place, slot, token, word};

use super::{entries::Entries, keeper::Pauses};
use crate::{sys, target::process_stat::Stat};

impl Pauses {
    /// Stops a process, with an entry for one of its threads. Returns the entry's index and token; `None` if the process was not
    /// stopped: it has exited, something else stops it already, or no entry is free.
    ///
    /// `time_ns` is a moment at which the process existed, ns of CLOCK_MONOTONIC: its id may belong to another one by now.
    pub fn stop(&self, (pid, tid): (u32, u32), time_ns: u64, reason: u16) -> Option<(u32, u64)> {
        // The keeper resumes a process for all of its entries, or for none.
        let turn = self.turn();
        let stopped = stop(&self.entries, (pid, tid), time_ns, reason);
        drop(turn);
        let stopped = stopped.inspect_err(|error| log::debug!("process {pid} cannot be paused: {error}"));
        // The keeper waits for nothing while there are no pauses.
        self.wake();
        stopped.ok()
    }
}

fn stop(entries: &Entries, (pid, tid): (u32, u32), then_ns: u64, reason: u16) -> io::Result<(u32, u64)> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let process = pidfd_open(id, PidfdFlags::empty())?;
    let stat = Stat::try_of_process(pid)?.ok_or_else(gone)?;
    // What was read belongs to the opened process only if that process has not exited in between.
    if stat.has_exited() || sys::has_ended(&process) {
        return Err(gone());
    }
    let [monotonic, boottime, _] = sys::clocks();
    if stat.start_ns() > then_ns.saturating_add(boottime.saturating_sub(monotonic)) {
        return Err(gone());
    }
    let is_stopped = matches!(stat.state, 'T' | 't');
    if is_stopped && entries.of_process(pid).is_empty() {
        return Err(io::Error::other("something else stops it already"));
    }
    let time_ns = sys::monotonic_ns();
    if !entries.has_beaten_within(STALE_NS, time_ns) {
        return Err(io::Error::other("the recorder's heartbeat is late"));
    }
    let token = token(tid, time_ns);
    let slot = entries.take(tid, token).ok_or(io::ErrorKind::StorageFull)?;
    entries.write(
        slot,
        (pid, tid),
        stat.start_ns(),
        (token, time_ns),
        (place::ANYWHERE, reason),
    );
    // A process that this recorder has stopped already waits for this entry, too. Another SIGSTOP would stay pending, and look like
    // one of another process.
    let sent = if is_stopped {
        Ok(())
    } else {
        pidfd_send_signal(&process, Signal::STOP)
    };
    entries.note_sent(slot, token);
    if let Err(error) = sent {
        entries.free(slot);
        return Err(error.into());
    }
    Ok((slot, token))
}

impl Entries {
    /// Takes a free entry; `None` if all that are tried are taken.
    fn take(&self, tid: u32, token: u64) -> Option<u32> {
        let is_taken = |&slot: &u32| {
            let owner = self.word(slot, word::OWNER);
            owner
                .compare_exchange(0, token, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        };
        (0..TRIES).map(|attempt| slot(tid, attempt)).find(is_taken)
    }

    /// Writes every word except the owner, and the seal last.
    fn write(
        &self,
        slot: u32,
        (pid, tid): (u32, u32),
        start_ns: u64,
        (token, time_ns): (u64, u64),
        (place, reason): (u64, u16),
    ) {
        let store = |at, value| self.word(slot, at).store(value, Ordering::Release);
        store(word::THREAD, u64::from(pid) << 32 | u64::from(tid));
        store(word::START_NS, start_ns);
        store(word::TIME_NS, time_ns);
        store(word::PLACE, place);
        store(word::REASON, u64::from(reason));
        store(word::SEALED, token);
    }

    /// Notes that the stop was sent.
    fn note_sent(&self, slot: u32, token: u64) {
        self.word(slot, word::SENT).store(token, Ordering::Release);
    }

    /// Frees an entry that stopped no process.
    fn free(&self, slot: u32) {
        self.word(slot, word::OWNER).store(0, Ordering::Release);
    }
}
