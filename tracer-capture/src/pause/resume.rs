//! The rules by which a paused process is resumed. The recorder, its guardians and later tracers all follow them.
//!
//! A signal must go to a process, and not to a number: the process is opened first (pidfd), then compared with its entries.
//!
//! Other processes may stop the process, too. A program notes each of their SIGSTOPs in the entries (`tracer-ebpf/src/stops.rs`),
//! which keep the process stopped; a pending SIGTSTP does so, too. If that program is not attached, only a pending SIGSTOP shows
//! such a stop, and a SIGSTOP that coincides with tracer's own is not noticed.

use std::{
    fs, io, mem,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use tracer_common::pause::place::ANYWHERE;

use super::{
    entries::{Entries, Paused},
    place::{self, Stand},
};
use crate::{
    sys,
    target::process_stat::{Stat, is_exited},
};

/// The outcome of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Outcome {
    /// The process runs again.
    #[strum(to_string = "resumed")]
    Resumed,
    /// Another process has stopped it, too, and it stays stopped.
    #[strum(to_string = "left stopped: something else has also stopped it")]
    LeftStopped,
    /// The process or the thread has exited, or the id belongs to another process.
    #[strum(to_string = "exited")]
    Gone,
    /// The process never stopped, or another process has resumed it.
    #[strum(to_string = "not stopped")]
    NotStopped,
}

/// The result of one attempt to resume a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The stop is still on its way; the caller must try again.
    Later,
    /// The pause is over; the caller must clear its entries.
    Over(Outcome),
}

/// The time within which a stop that is not pending any more must show: the thread may have taken it, and wait for a processor.
const GRACE_NS: u64 = 2_000_000_000;

/// Threads whose states are read to see whether a process has stopped. A process can have thousands, and none may delay the others.
const LOOKED_AT: usize = 16;

/// Resumes a process. `threads` are all entries of the process: at least one.
///
/// # Errors
/// Fails if the process could not be examined or signalled, for want of descriptors or rights for example. It may still be stopped.
pub fn resume(threads: &[Paused], entries: &Entries, now_ns: u64) -> io::Result<Step> {
    let Some(first) = threads.first() else {
        return Ok(Step::Over(Outcome::Gone));
    };
    let Some(process) = open(first)? else {
        return Ok(Step::Over(Outcome::Gone));
    };
    let mut gone = 0;
    let mut is_stopped = false;
    let of_process = threads
        .iter()
        .any(|thread| thread.place == ANYWHERE)
        .then(|| process_state(first.pid))
        .transpose()?
        .flatten();
    for thread in threads {
        let state = if thread.place == ANYWHERE {
            of_process
        } else {
            Stat::try_of_thread(thread.pid, thread.tid)?.map(|stat| stat.state)
        };
        match state {
            Some('T' | 't') => {
                is_stopped = true;
                match place::of_thread(thread.pid, thread.tid, thread.place) {
                    Stand::There => return proceed(&process, threads, entries),
                    Stand::Unknown => return Ok(Step::Later),
                    Stand::Elsewhere => {}
                }
            }
            None | Some('Z' | 'X') => gone += 1,
            Some(_) => {}
        }
    }
    if gone == threads.len() {
        return Ok(Step::Over(Outcome::Gone));
    }
    if is_stopped {
        // Another process has stopped it, after the pause was over.
        return Ok(Step::Over(Outcome::LeftStopped));
    }
    let is_recent = threads
        .iter()
        .any(|thread| now_ns.saturating_sub(thread.time_ns) < GRACE_NS);
    if is_recent || pending(first.pid)? & bit(libc::SIGSTOP) != 0 {
        return Ok(Step::Later);
    }
    if threads.iter().any(|thread| thread.place == ANYWHERE) {
        // Every thread is inside a call that nothing interrupts, and would stop after it.
        match go_on(&process, entries.resumes()) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(Step::Over(Outcome::Gone)),
            sent => sent?,
        }
    }
    Ok(Step::Over(Outcome::NotStopped))
}

/// Returns the state of a process that was stopped without a look at where its threads were: `T` if any thread is stopped, as the
/// others may be inside calls that nothing interrupts, and the one in the entry may have exited since. `None` if all have exited.
fn process_state(pid: u32) -> io::Result<Option<char>> {
    let tasks = match fs::read_dir(format!("/proc/{pid}/task")) {
        Ok(tasks) => tasks,
        Err(error) if is_exited(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = None;
    // The first one is the leader. A look at some suffices: after the grace the process goes on in any case.
    for task in tasks.take(LOOKED_AT) {
        let task = match task {
            Ok(task) => task,
            Err(error) if is_exited(&error) => break,
            Err(error) => return Err(error),
        };
        let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(stat) = tid.map(|tid| Stat::try_of_thread(pid, tid)).transpose()?.flatten() else {
            continue;
        };
        if stat.state == 'T' {
            return Ok(Some('T'));
        }
        if !stat.has_exited() {
            found = Some(stat.state);
        }
    }
    Ok(found)
}

/// Opens the process of an entry; `None` if it has exited, or if its id belongs to another process by now.
fn open(paused: &Paused) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(paused.pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(stat) = Stat::try_of_process(paused.pid)? else {
        return Ok(None);
    };
    let is_same = paused.start_ns == 0 || stat.began_at(paused.start_ns);
    // The data that was read belongs to the opened process only if that process has not exited in between.
    Ok((is_same && !sys::has_ended(&process)).then_some(process))
}

/// Resumes a process with a thread that stands where it was paused, unless another process has stopped it, too. With several paused
/// threads, a pending SIGSTOP may be that of another one of them.
fn proceed(process: &OwnedFd, threads: &[Paused], entries: &Entries) -> io::Result<Step> {
    let is_stopped_by_others = |thread: &Paused| entries.is_stopped_by_others(thread);
    let waiting = match threads {
        [only] => pending(only.pid)? & (bit(libc::SIGSTOP) | bit(libc::SIGTSTP)) != 0,
        _ => false,
    };
    if waiting || threads.iter().any(is_stopped_by_others) {
        return Ok(Step::Over(Outcome::LeftStopped));
    }
    match go_on(process, entries.resumes()) {
        // Another process has stopped it since the check: SIGCONT may have removed that stop.
        Ok(()) if threads.iter().any(is_stopped_by_others) => {
            // A failure means that the process has exited.
            let _ = pidfd_send_signal(process, Signal::STOP);
            Ok(Step::Over(Outcome::LeftStopped))
        }
        Ok(()) => Ok(Step::Over(Outcome::Resumed)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(Step::Over(Outcome::Gone)),
        // Without the right to signal it, the process is still stopped: its entries stay for a tracer that has this right.
        Err(error) => Err(error),
    }
}

/// Sends SIGCONT with the value by which the programs know it.
fn go_on(process: &OwnedFd, value: u64) -> io::Result<()> {
    // SAFETY: the structure consists of plain numbers.
    let mut info: Queued = unsafe { mem::zeroed() };
    info.signal = libc::SIGCONT;
    info.code = libc::SI_QUEUE;
    info.value = value;
    // SAFETY: the structure lives through the call, which only reads it.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGCONT,
            &raw const info,
            0,
        )
    };
    nix::errno::Errno::result(sent)?;
    Ok(())
}

/// `siginfo_t` of a queued signal (include/uapi/asm-generic/siginfo.h): libc offers no way to set its value.
#[repr(C, align(8))]
struct Queued {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    pid: i32,
    uid: u32,
    value: u64,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns the pending signals of a process that would stop it now: `ShdPnd` of /proc/PID/status without the signals that the
/// process blocks, ignores or handles itself.
fn pending(pid: u32) -> io::Result<u64> {
    let text = fs::read(format!("/proc/{pid}/status"))?;
    Ok(stopping(&String::from_utf8_lossy(&text)))
}

fn stopping(status: &str) -> u64 {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    mask("ShdPnd:") & !(mask("SigBlk:") | mask("SigCgt:") | mask("SigIgn:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_waits_counts_unless_the_process_deals_with_it() {
        let status = |shared: u64, caught: u64| {
            format!(
                "Name:\tx\nShdPnd:\t{shared:016x}\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t{caught:016x}\n"
            )
        };
        assert_eq!(stopping(&status(bit(libc::SIGSTOP), 0)), bit(libc::SIGSTOP));
        assert_eq!(stopping(&status(bit(libc::SIGTSTP), bit(libc::SIGTSTP))), 0);
        assert_eq!(stopping(""), 0);
    }

    fn paused(pid: u32, start_ns: u64) -> Paused {
        Paused {
            slot: 1,
            token: 1,
            pid,
            tid: pid,
            start_ns,
            time_ns: 0,
            place: tracer_common::pause::place::syscall(libc::SYS_mmap as u32),
            reason: 1,
            served: true,
        }
    }

    /// Entries in which nothing is noted.
    fn nothing() -> Entries {
        Entries::in_memory().unwrap().0
    }

    /// A child process that has stopped itself.
    struct Stopped(std::process::Child);

    impl Stopped {
        fn new() -> Self {
            let child = std::process::Command::new("/bin/sh")
                .args(["-c", "kill -STOP $$"])
                .spawn()
                .unwrap();
            while Stat::of_process(child.id()).is_none_or(|stat| stat.state != 'T') {
                std::thread::yield_now();
            }
            Self(child)
        }

        fn state(&self) -> Option<char> {
            Stat::of_process(self.0.id()).map(|stat| stat.state)
        }
    }

    impl Drop for Stopped {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_that_stands_elsewhere_stays_stopped() {
        let child = Stopped::new();
        let step = resume(&[paused(child.0.id(), 0)], &nothing(), u64::MAX).unwrap();
        assert_eq!(step, Step::Over(Outcome::LeftStopped));
        assert_eq!(child.state(), Some('T'));
    }

    /// The thread in the entry has exited, and the process is stopped all the same.
    #[test]
    fn a_process_that_the_recorder_stopped_goes_on_whatever_its_thread_did() {
        let mut child = Stopped::new();
        let own = Paused {
            tid: u32::MAX - 1,
            place: ANYWHERE,
            ..paused(child.0.id(), 0)
        };
        let step = resume(&[own], &nothing(), u64::MAX).unwrap();
        assert_eq!(step, Step::Over(Outcome::Resumed));
        // The shell ends after the signal that it sent to itself.
        assert!(child.0.wait().unwrap().success());
        assert_eq!(resume(&[own], &nothing(), u64::MAX).unwrap(), Step::Over(Outcome::Gone));
    }

    #[test]
    fn a_process_that_began_at_another_time_is_a_stranger() {
        let child = Stopped::new();
        assert_eq!(
            resume(&[paused(child.0.id(), 1)], &nothing(), u64::MAX).unwrap(),
            Step::Over(Outcome::Gone)
        );
        assert_eq!(child.state(), Some('T'));
    }

    #[test]
    fn a_process_that_does_not_stop_is_waited_for_and_then_given_up() {
        let own = paused(std::process::id(), 0);
        assert_eq!(resume(&[own], &nothing(), 1).unwrap(), Step::Later);
        assert_eq!(
            resume(&[own], &nothing(), u64::MAX).unwrap(),
            Step::Over(Outcome::NotStopped)
        );
    }
}
