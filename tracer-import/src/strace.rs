//! Output of `strace -f -ttt -T`: ioctls of the KFD and of DRM devices, and the processes that made them.
//!
//! ```text
//! 2153  1795650069.892967 ioctl(3, AMDKFD_IOC_GET_VERSION, 0x7ffd8ad6df20) = 0 <0.000244>
//! [pid  2153] 1795650069.993693 ioctl(3, AMDKFD_IOC_CREATE_EVENT, 0x7ffd8ad6df60 <unfinished ...>
//! 2153  1795650069.994034 <... ioctl resumed>) = 0 <0.000332>
//! 2153  1795650069.993074 clone3({flags=CLONE_VM|CLONE_THREAD, ...} => {parent_tid=[2155]}, 88) = 2155 <0.000350>
//! ```
//!
//! strace names threads. Which process one belongs to follows from the call that created it, if that is in the text.

mod command;
mod errno;

use std::collections::HashMap;

use tracer_core::event::{Event, Origin};
use tracer_core::tables::{Fact, Ioctl};

use crate::Took;
use crate::event_line::is_name;
use crate::threads::Threads;

/// Calls that were interrupted by lines of other threads, at most.
const MAX_OPEN: usize = 1 << 12;

/// What the lines so far have shown.
#[derive(Debug, Default)]
pub struct Strace {
    /// Time of the first and of the last line, ns since 1970.
    pub span_ns: Option<(u64, u64)>,
    /// Ioctls whose process is unknown.
    pub without_process: u64,
    threads: Threads,
    /// The beginnings of unfinished calls, by thread: time and text.
    open: HashMap<u32, (u64, String)>,
}

/// A line of one thread.
struct Line<'a> {
    /// The thread; 0 if strace followed one thread only, and does not name it.
    tid: u32,
    time_ns: u64,
    text: &'a str,
}

impl Strace {
    /// Takes a line; `None` if it is not one of strace.
    pub fn line(&mut self, line: &str, out: &mut impl FnMut(&Event<'_>)) -> Option<Took> {
        let line = Line::parse(line)?;
        let (first, last) = self.span_ns.unwrap_or((line.time_ns, line.time_ns));
        self.span_ns = Some((first.min(line.time_ns), last.max(line.time_ns)));
        Some(self.text(&line, out))
    }

    fn text(&mut self, line: &Line<'_>, out: &mut impl FnMut(&Event<'_>)) -> Took {
        // Another thread of the process runs a new program: its leader's number lives on.
        if line.text.starts_with("+++ superseded by execve") {
            self.open.remove(&line.tid);
            return Took::Nothing;
        }
        if line.text.starts_with("+++ ") {
            if let Some(pid) = self.threads.exit(line.tid) {
                out(&Event::Exit(origin(line.time_ns, pid, pid)));
            }
            return Took::Nothing;
        }
        if line.text.starts_with("--- ") {
            return Took::Nothing;
        }
        if let Some(begun) = line.text.strip_suffix("<unfinished ...>") {
            if self.open.len() >= MAX_OPEN {
                return Took::Malformed("too many unfinished calls".to_owned());
            }
            self.open.insert(line.tid, (line.time_ns, begun.to_owned()));
            return Took::Nothing;
        }
        if let Some(rest) = line.text.strip_prefix("<... ") {
            let Some((name, rest)) = rest.split_once(" resumed>") else {
                return Took::Malformed("a call that is resumed without its name".to_owned());
            };
            // Its beginning is before the text.
            let Some((time_ns, begun)) = self.open.remove(&line.tid) else {
                return if name == "ioctl" { Took::Lost(1) } else { Took::Nothing };
            };
            return self.call(line.tid, time_ns, &(begun + rest), out);
        }
        self.call(line.tid, line.time_ns, line.text, out)
    }

    /// Takes a whole call.
    fn call(&mut self, tid: u32, time_ns: u64, text: &str, out: &mut impl FnMut(&Event<'_>)) -> Took {
        let Some((name, rest)) = text.split_once('(').filter(|(name, _)| is_name(name)) else {
            return Took::Foreign;
        };
        // The last one: arguments may contain the same signs.
        let Some((arguments, result)) = rest.rsplit_once(" = ") else {
            return Took::Malformed(format!("{name} without its result"));
        };
        let succeeded = result.split([' ', '\t']).next().and_then(|ret| ret.parse::<i64>().ok());
        match name {
            "ioctl" => self.ioctl(tid, time_ns, arguments, result, out),
            "clone" | "clone3" | "fork" | "vfork" => {
                let child = succeeded
                    .and_then(|child| u32::try_from(child).ok())
                    .filter(|&child| child > 0);
                let is_thread = arguments.contains("CLONE_THREAD");
                if let Some(child) = child
                    && let Some(parent) = self.threads.created(tid, child, is_thread)
                {
                    out(&Event::Fork(origin(time_ns, parent, tid), child));
                }
                Took::Nothing
            }
            "execve" | "execveat" if succeeded == Some(0) => {
                self.threads.exec(tid);
                let comm = program(arguments);
                out(&Event::Exec(origin(time_ns, tid, tid), comm.as_bytes()));
                Took::Nothing
            }
            name => Took::Unused(name.to_owned()),
        }
    }

    fn ioctl(
        &mut self,
        tid: u32,
        enter_ns: u64,
        arguments: &str,
        result: &str,
        out: &mut impl FnMut(&Event<'_>),
    ) -> Took {
        let mut parts = arguments.splitn(2, ", ");
        let fd = parts.next().and_then(|fd| fd.split('<').next()?.parse().ok());
        let Some((fd, rest)) = fd.zip(parts.next()) else {
            return Took::Malformed("an ioctl without its file".to_owned());
        };
        let Some(command) = command::parse(rest) else {
            return Took::Unused("ioctl of another device".to_owned());
        };
        let Some(took_ns) = duration(result) else {
            return Took::Malformed("an ioctl without its duration: run strace with -T".to_owned());
        };
        let pid = self.threads.process(tid);
        self.without_process += u64::from(pid.is_none());
        out(&Event::Logged(&Fact::Ioctl(Ioctl {
            pid: pid.unwrap_or_default(),
            tid,
            enter_ns,
            exit_ns: enter_ns.saturating_add(took_ns),
            device: command.device,
            fd,
            cmd: command.number,
            name: command.name,
            ret: errno::result(result),
            args: None,
            arg_in: None,
            arg_out: None,
        })));
        Took::Events(1)
    }

    /// Returns the calls whose ends are after the text.
    pub fn unfinished(&self) -> u64 {
        let ioctls = self.open.values().filter(|(_, begun)| begun.starts_with("ioctl("));
        ioctls
            .filter(|(_, begun)| begun.contains("AMDKFD_") || begun.contains("DRM_"))
            .count() as u64
    }
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (tid, rest) = match line.strip_prefix("[pid ") {
            Some(rest) => {
                let (tid, rest) = rest.split_once(']')?;
                (tid.trim().parse().ok()?, rest)
            }
            None => match line.split_once(' ') {
                Some((tid, rest)) if tid.bytes().all(|byte| byte.is_ascii_digit()) => (tid.parse().ok()?, rest),
                _ => (0, line),
            },
        };
        let (time, text) = rest.trim_start().split_once(' ')?;
        Some(Self {
            tid,
            time_ns: seconds(time)?,
            text: text.trim(),
        })
    }
}

fn origin(time_ns: u64, pid: u32, tid: u32) -> Origin {
    Origin { time_ns, pid, tid }
}

/// Parses `1795650069.892967`, the form of -ttt, in ns. Times of -r and -t have fewer digits or no point.
fn seconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.len() < 9 || decimals.len() != 6 || !digits(seconds) || !digits(decimals) {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(decimals.parse::<u64>().ok()? * 1000)
}

/// Returns the time in the call, which ends the line: `<0.000244>`.
fn duration(result: &str) -> Option<u64> {
    let (_, text) = result.strip_suffix('>')?.rsplit_once('<')?;
    let (seconds, decimals) = text.split_once('.')?;
    if decimals.len() != 6 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(decimals.parse::<u64>().ok()? * 1000)
}

/// Returns the name that the kernel gives to a program: the end of its path, at most 15 bytes.
fn program(arguments: &str) -> String {
    let path = arguments
        .strip_prefix('"')
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.chars().filter(char::is_ascii).take(15).collect()
}
